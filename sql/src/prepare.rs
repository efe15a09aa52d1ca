//! `--prepare`: kernels that do not depend on a query are compiled ahead.

use std::io::Write;
use std::time::Instant;

use warpframe::device::{Device, MemoryLimit};
use warpframe::prepare_kernels;

use crate::arguments::Arguments;
use crate::report::Failure;

/// Prepares kernels for the architectures that were named, or for this machine's GPU, and says what
/// was done.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut architectures = arguments.arch.clone();
    if architectures.is_empty() {
        let device = Device::cuda(0, MemoryLimit::default())?;
        architectures.push(device.properties().architecture.clone());
    }
    for architecture in &architectures {
        let start = Instant::now();
        let prepared = prepare_kernels(architecture)?;
        let line = format!(
            "{architecture}: {} kernels compiled, {} found, in {:.1} s, kept in {}",
            prepared.compiled,
            prepared.found,
            start.elapsed().as_secs_f64(),
            prepared.directory.display()
        );
        writeln!(out, "{line}")?;
    }
    Ok(())
}
