//! What the command line asks for.

use super::harness::Outcome;
use super::sweeps::SWEEPS;

/// See the module documentation of `main.rs`.
pub struct Options {
    pub rows: Vec<usize>,
    pub only: Vec<String>,
    pub repeats: usize,
    /// Runs whose results are compared with the first one's.
    pub checks: usize,
    pub sweeps: Vec<&'static str>,
    /// Plans are made anew in each run.
    pub plan_anew: bool,
    /// Bytes a millisecond.
    pub copy: f64,
}

impl Options {
    pub fn parse(arguments: impl Iterator<Item = String>) -> Outcome<Options> {
        let (rows, only, sweeps) = Default::default();
        let mut options =
            Options { rows, only, repeats: 7, checks: 0, sweeps, plan_anew: false, copy: 4.1e9 };
        let mut arguments = arguments;
        while let Some(name) = arguments.next() {
            // Cargo adds these.
            if name == "--bench" || name == "--test" {
                continue;
            }
            if name == "--plan-anew" {
                options.plan_anew = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{name} lacks its value"))?;
            match name.as_str() {
                "--rows" => {
                    options.rows.extend(value.split(',').map(count).collect::<Outcome<Vec<_>>>()?)
                }
                "--only" => options.only.push(value),
                "--checks" => options.checks = count(&value)?,
                "--repeats" => options.repeats = count(&value)?.max(1),
                "--copy" => options.copy = value.parse::<f64>()? * 1e6,
                "--sweep" if value == "all" => {
                    options.sweeps = SWEEPS.map(|(name, _)| name).to_vec()
                }
                "--sweep" => match SWEEPS.iter().find(|(name, _)| *name == value) {
                    Some((name, _)) => options.sweeps.push(name),
                    None => {
                        return Err(format!(
                            "no sweep {value:?}: {}, all",
                            SWEEPS.map(|(name, _)| name).join(", ")
                        )
                        .into());
                    }
                },
                _ => return Err(format!("no option {name}").into()),
            }
        }
        Ok(options)
    }
}

/// A count, perhaps as `1e8`.
fn count(text: &str) -> Outcome<usize> {
    if let Ok(count) = text.parse() {
        return Ok(count);
    }
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.fract() == 0.0 && number < 2f64.powi(53) => {
            Ok(number as usize)
        }
        _ => Err(format!("{text:?} is no count").into()),
    }
}
