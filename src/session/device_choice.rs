//! Which devices a session has.

use crate::error::{Error, ErrorKind, Result};
use warpframe_device::{Device, MemoryLimit, SimOptions};

/// Most devices of a session.
const MOST_DEVICES: usize = 16;

/// Where queries shall run.
///
/// ```
/// use warpframe::DeviceChoice;
/// assert_eq!("cuda:1".parse::<DeviceChoice>()?, DeviceChoice::Cuda(1));
/// assert_eq!(DeviceChoice::Cuda(1).to_string(), "cuda:1");
/// assert_eq!("cuda:0,1".parse::<DeviceChoice>()?, DeviceChoice::Gpus(vec![0, 1]));
/// assert!("gpu".parse::<DeviceChoice>().is_err());
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DeviceChoice {
    /// The first GPU, or the CPU where there is none.
    #[default]
    Auto,
    /// The GPU of this ordinal; its absence is an error.
    Cuda(usize),
    /// The GPUs of these ordinals, which run large queries together; results lie on the first. One
    /// may be named twice, for tests.
    Gpus(Vec<usize>),
    /// All GPUs of the machine, as [`DeviceChoice::Gpus`].
    AllGpus,
    /// The CPU simulator of a GPU: slow, for tests.
    Sim,
    /// So many simulated GPUs with memories of their own.
    Sims(usize),
    /// DataFusion's CPU engine.
    Cpu,
}

impl std::str::FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let ordinals = lower.strip_prefix("cuda:").map(|ordinals| {
            ordinals.split(',').map(str::parse).collect::<std::result::Result<Vec<usize>, _>>()
        });
        let sims = lower.strip_prefix("sim:").map(str::parse);
        match (lower.as_str(), ordinals, sims) {
            ("auto", ..) => Ok(DeviceChoice::Auto),
            ("cuda", ..) => Ok(DeviceChoice::Cuda(0)),
            ("cuda:all", ..) => Ok(DeviceChoice::AllGpus),
            (_, Some(Ok(ordinals)), _) => Ok(match ordinals.as_slice() {
                [one] => DeviceChoice::Cuda(*one),
                _ => DeviceChoice::Gpus(ordinals),
            }),
            ("sim", ..) => Ok(DeviceChoice::Sim),
            (_, _, Some(Ok(count @ 1..=MOST_DEVICES))) => Ok(DeviceChoice::Sims(count)),
            ("cpu", ..) => Ok(DeviceChoice::Cpu),
            _ => Err(setting(format!(
                "device {text:?}: expected auto, cuda, cuda:N, cuda:N,M, cuda:all, sim, sim:N or cpu"
            ))),
        }
    }
}

impl std::fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceChoice::Auto => write!(f, "auto"),
            DeviceChoice::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            DeviceChoice::Gpus(ordinals) => {
                let ordinals: Vec<String> = ordinals.iter().map(usize::to_string).collect();
                write!(f, "cuda:{}", ordinals.join(","))
            }
            DeviceChoice::AllGpus => write!(f, "cuda:all"),
            DeviceChoice::Sim => write!(f, "sim"),
            DeviceChoice::Sims(count) => write!(f, "sim:{count}"),
            DeviceChoice::Cpu => write!(f, "cpu"),
        }
    }
}

impl DeviceChoice {
    /// Opens the devices, the first one first; none where queries shall run on the CPU.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`] of one that is not there.
    pub(super) fn open(&self, sim: &SimOptions, limit: MemoryLimit) -> Result<Vec<Device>> {
        Ok(match self {
            DeviceChoice::Cpu => vec![],
            DeviceChoice::Auto => vec![Device::cuda(0, limit)?],
            DeviceChoice::Cuda(ordinal) => vec![Device::cuda(*ordinal, limit)?],
            DeviceChoice::Gpus(ordinals) => of_gpus(ordinals, limit)?,
            DeviceChoice::AllGpus => {
                let all: Vec<usize> = (0..Device::cuda_count()?.max(1)).collect();
                of_gpus(&all, limit)?
            }
            DeviceChoice::Sim => vec![Device::sim(sim.clone(), limit)?],
            DeviceChoice::Sims(count) => {
                let open = |_| Ok(Device::sim(sim.clone(), limit)?);
                (0..*count).map(open).collect::<Result<_>>()?
            }
        })
    }
}

/// These GPUs. Where one is named several times, these share its memory.
fn of_gpus(ordinals: &[usize], limit: MemoryLimit) -> Result<Vec<Device>> {
    let open = |ordinal: &usize| {
        let same = ordinals.iter().filter(|other| *other == ordinal).count();
        let limit = match limit {
            MemoryLimit::Percent(percent) => MemoryLimit::Percent(percent / same as f64),
            bytes => bytes,
        };
        Ok(Device::cuda(*ordinal, limit)?)
    };
    match ordinals {
        [] => Err(setting("no GPU is named".into())),
        [_, ..] if ordinals.len() > MOST_DEVICES => {
            Err(setting(format!("{} GPUs: at most {MOST_DEVICES}", ordinals.len())))
        }
        _ => ordinals.iter().map(open).collect(),
    }
}

/// A setting that means nothing.
pub(super) fn setting(message: String) -> Error {
    ErrorKind::Parse { path: None, line: 0, column: 0, message }.into()
}
