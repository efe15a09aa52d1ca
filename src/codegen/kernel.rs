//! From statements to a running kernel: the text around them, compilation, launch.

use std::borrow::Cow;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::parts::{in_parts, is_long};
use super::prepared::PreparedKernel;
use super::statements::Code;
use crate::error::Result;
use crate::user_code::{Definition, in_users_words};
use warpframe_device::{Argument, Device, Grid, KernelSource, LaunchBounds, Parts};

/// Threads in each block of a generated kernel.
pub(crate) const THREADS: u32 = 256;

/// Most parameters of a kernel, in words of 8 bytes: CUDA allows 32,764 bytes. If there are more,
/// they lie in memory.
const MOST_PARAMETERS: usize = 4095;

/// Whether a kernel finds its parameters in memory. So it does if there are many, and if the body
/// is in parts: a part takes the address of the parameters, and each thread would have to copy
/// those of a launch to have an address.
fn through_memory(prepared: &PreparedKernel, body: &Code) -> bool {
    prepared.params.count() > MOST_PARAMETERS || is_long(body)
}

/// A generated kernel, compiled.
#[derive(Debug)]
pub(crate) struct Generated {
    kernel: warpframe_device::Kernel,
    arguments: Vec<Argument>,
    threads: u32,
    /// See [`through_memory`].
    through_memory: bool,
    /// What users wrote of it, for what there is to say where it fails.
    definitions: Arc<[Arc<Definition>]>,
}

/// The source of a kernel, and its name. The text declares the parameters, then has `body` as it
/// is. The name is `stem`, which names the kind of sink, and a hash of the text.
pub(crate) fn source_of(
    stem: &str,
    prepared: &PreparedKernel,
    code: &Code,
    bounds: LaunchBounds,
) -> (KernelSource, String) {
    let LaunchBounds { threads, blocks } = bounds;
    let (declarations, body) = (prepared.params.declarations(), code.text());
    let defined: String = code.definitions().iter().map(|definition| definition.text()).collect();
    let mut includes = code.headers().and(prepared.params.headers()).includes();
    if !defined.is_empty() {
        includes.push_str("#include \"user.cuh\"\n");
    }
    let through_memory = through_memory(prepared, code);
    let body = &*if is_long(code) { Cow::Owned(in_parts(code)) } else { Cow::Borrowed(body) };
    let hash = Sha256::new()
        .chain_update(declarations)
        .chain_update(threads.to_le_bytes())
        .chain_update(blocks.to_le_bytes())
        .chain_update(body)
        .finalize();
    let name = format!("{stem}_{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3]);
    let head = format!(
        "{includes}\n{defined}using namespace wf;\n\nstruct {name}_params {{\n{declarations}}};\n\n"
    );
    let threads_of = format!("constexpr u32 THREADS = {threads};\n");
    let text = match through_memory {
        false => {
            format!(
                "{head}WF_KERNEL_BOUNDS({threads}, {blocks}, {name}, {name}_params) {{\n{threads_of}{body}\n}}\n"
            )
        }
        true => format!(
            "{head}struct {name}_place {{\n    const {name}_params* at;\n}};\n\n\
             WF_KERNEL_BOUNDS({threads}, {blocks}, {name}, {name}_place) {{\n{threads_of}\
             const {name}_params* const parameters = p.at;\n{{\nconst {name}_params& p = *parameters;\n{body}\n}}\n}}\n"
        ),
    };
    (KernelSource::new(&name, text), name)
}

impl Generated {
    pub(crate) fn new(
        device: &Device,
        stem: &str,
        prepared: &PreparedKernel,
        body: &Code,
    ) -> Result<Self> {
        Self::with_threads(device, stem, prepared, body, THREADS)
    }

    /// Compiles a kernel with `threads` threads in each block.
    pub(crate) fn with_threads(
        device: &Device,
        stem: &str,
        prepared: &PreparedKernel,
        body: &Code,
        threads: u32,
    ) -> Result<Self> {
        Self::with_bounds(device, stem, prepared, body, LaunchBounds { threads, blocks: 1 })
    }

    /// Compiles a kernel with these launch bounds.
    pub(crate) fn with_bounds(
        device: &Device,
        stem: &str,
        prepared: &PreparedKernel,
        body: &Code,
        bounds: LaunchBounds,
    ) -> Result<Self> {
        let (declarations, text) = (prepared.params.declarations(), body.text());
        let parts = Parts { stem, declarations, body: text, bounds };
        let definitions: Arc<[_]> = body.definitions().into();
        let known = device.kernel_of(parts, || {
            let (source, name) = source_of(stem, prepared, body, bounds);
            (source, name, prepared.params.named_in(text))
        });
        let known = known.map_err(|error| in_users_words(error.into(), &definitions))?;
        let arguments = prepared.params.arguments(&known.named, prepared.rows);
        let through_memory = through_memory(prepared, body);
        Ok(Generated {
            kernel: known.kernel,
            arguments,
            threads: bounds.threads,
            through_memory,
            definitions,
        })
    }

    /// Submits the kernel with as many blocks as the device runs at once, but no more than tiles.
    /// The number of blocks depends on how the kernel was compiled, so no result may depend on it.
    pub(crate) fn fill(&self, device: &Device, tiles: u64, shared: u32) -> Result<()> {
        let blocks = u64::from(device.full_grid(&self.kernel, self.threads, shared)?);
        self.launch(device, tiles.clamp(1, blocks) as u32, shared)
    }

    /// Submits the kernel.
    pub(crate) fn launch(&self, device: &Device, blocks: u32, shared: u32) -> Result<()> {
        self.launched(device, blocks, shared)
            .map_err(|error| in_users_words(error.into(), &self.definitions))
    }

    fn launched(&self, device: &Device, blocks: u32, shared: u32) -> warpframe_device::Result<()> {
        let grid = Grid { blocks, threads: self.threads, shared };
        if self.through_memory {
            let words: Vec<u8> =
                self.arguments.iter().flat_map(|argument| argument.to_bytes()).collect();
            let place = device.upload("kernel parameters", &words)?;
            // What is freed after the launch is given out again only to what runs behind it.
            // SAFETY: as below; the structure's one field is the address of the words, as many as
            // `Params` declared.
            return unsafe {
                device.launch(&self.kernel, grid, &[Argument::of_all(&place, &self.arguments)])
            };
        }
        // SAFETY: `Params` declared the structure and collected the arguments in one list, so they
        // match; every pointer came from a live buffer that the caller's `PreparedKernel` keeps,
        // whose length the generator derived from the same row counts that bound the kernel's
        // loops.
        unsafe { device.launch(&self.kernel, grid, &self.arguments) }
    }
}

/// Shared memory left for what kernels use besides their dynamic shared memory.
const RESERVED: u64 = 4096;

/// Dynamic shared memory that a block may ask for.
pub(crate) fn most_shared(device: &Device) -> u64 {
    u64::from(device.properties().shared_per_block).saturating_sub(RESERVED)
}
