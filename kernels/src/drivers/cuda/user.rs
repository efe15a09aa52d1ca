//! Kernels of users, and streams of other programs.

use std::ffi::c_void;

use cudarc::driver::sys;

use super::CudaEvent;
use super::calls::{CallQueue, call};
use super::code::CudaFunction;
use crate::drivers::driver::{UserArgument, UserGrid};
use crate::error::{ErrorKind, Result};

/// Submits a kernel that a user wrote.
///
/// # Safety
/// As of [`Driver::launch_user`](crate::Driver::launch_user).
pub(super) unsafe fn launch(
    queue: &CallQueue,
    of: &CudaFunction,
    kernel: &str,
    grid: &UserGrid,
    arguments: &[UserArgument],
) -> Result<()> {
    let refused = |log: String| -> crate::Error {
        ErrorKind::Compile { kernel: kernel.to_string(), log }.into()
    };
    queue.bind()?;
    for (at, argument) in arguments.iter().enumerate() {
        let given = match argument {
            UserArgument::Memory { .. } => 8,
            UserArgument::Number { size, .. } => usize::from(*size),
        };
        match parameter(of, at) {
            Some(size) if size == given => {}
            Some(size) => {
                return Err(refused(format!(
                    "parameter {at} has {size} bytes, the argument {given}"
                )));
            }
            None => {
                return Err(refused(format!(
                    "was given {} arguments, it takes {at}",
                    arguments.len()
                )));
            }
        }
    }
    if parameter(of, arguments.len()).is_some() {
        return Err(refused(format!("was given {} arguments, it takes more", arguments.len())));
    }
    queue.launched(&format!("{kernel} (a user's)").into());
    let word = |argument: &UserArgument| match argument {
        UserArgument::Memory { address, .. } => *address,
        UserArgument::Number { word, .. } => *word,
    };
    let words: Vec<u64> = arguments.iter().map(word).collect();
    let mut parameters: Vec<*mut c_void> =
        words.iter().map(|word| std::ptr::from_ref(word).cast_mut().cast()).collect();
    let UserGrid { blocks: [x, y, z], threads: [a, b, c], shared } = *grid;
    // SAFETY: before it returns, the driver reads of each word as many bytes as the parameter has,
    // at most 8 as was compared above; words are little-endian. What the addresses lead to is the
    // caller's promise.
    let launched = unsafe {
        let (stream, none) = (queue.stream(), std::ptr::null_mut());
        call!(cuLaunchKernel(
            of.function,
            x,
            y,
            z,
            a,
            b,
            c,
            shared,
            stream,
            parameters.as_mut_ptr(),
            none
        ))
    };
    queue.check(launched).map_err(|error| match error.kind() {
        ErrorKind::Cuda { call, code } => {
            let shape =
                format!("{x} x {y} x {z} blocks of {a} x {b} x {c} threads, {shared} bytes shared");
            ErrorKind::Cuda { call, code: format!("{code} (the user's kernel {kernel}, {shape})") }
                .into()
        }
        _ => error,
    })
}

/// The size of a kernel's parameter, if it has one of this number.
fn parameter(of: &CudaFunction, at: usize) -> Option<usize> {
    let (mut offset, mut size) = (0, 0);
    // SAFETY: a live function of the bound context; writes both numbers. An index beyond its
    // parameters is refused.
    unsafe { call!(cuFuncGetParamInfo(of.function, at, &mut offset, &mut size)) }
        .ok()
        .map(|()| size)
}

/// Lets later work of a stream wait for what another was given so far.
///
/// # Safety
/// Both streams are live and of the queue's context.
pub(super) unsafe fn order(
    queue: &CallQueue,
    first: sys::CUstream,
    then: sys::CUstream,
) -> Result<()> {
    queue.bind()?;
    // The driver keeps what was recorded until nobody waits for it.
    let event = CudaEvent::new(queue)?;
    // SAFETY: the caller's promise; the event was just made.
    queue.check(unsafe {
        call!(cuEventRecord(event.0, first))
            .and_then(|()| call!(cuStreamWaitEvent(then, event.0, 0)))
    })
}
