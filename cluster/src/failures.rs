//! Which failures of a task are worth another try.
//!
//! Ballista runs a task again, up to four times, if the root of its failure is an I/O error; every
//! other failure ends the query. So a device that is gone becomes an I/O error, and what another
//! device would run into as well stays what it is: a row that fails, a plan that cannot run.

use std::io;
use std::sync::Arc;

use ballista_core::error::BallistaError;
use datafusion::error::DataFusionError;
use warpframe::{Error, ErrorKind, Fault};

/// What stands before the `Debug` of the message of a failure that ends a query, where the client
/// gets it.
const BEFORE_FAILURE: &str = "Task failed due to runtime execution error: General(\"";

/// What rows run into, as failures of tasks name it before their messages.
const FAULTS: [Fault; 6] =
    [Fault::DivideByZero, Fault::Overflow, Fault::Cast, Fault::Domain, Fault::Rows, Fault::Length];

fn tag(fault: Fault) -> String {
    format!("[{fault:?}] ")
}

/// An error that ends a query, as its client reads it.
fn tagged(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Arithmetic { fault, .. } => format!("{}{error}", tag(*fault)),
        _ => error.to_string(),
    }
}

/// The failure of a query, by what the scheduler says of it: without what Ballista says around it,
/// if it is one that executors told.
pub(crate) fn of_job(text: &str) -> Error {
    let Some((_, told)) = text.split_once(BEFORE_FAILURE) else {
        let message = format!("the cluster failed: {}", text.trim_end());
        return ErrorKind::Plan { message, location: None }.into();
    };
    let told = told.trim_end().trim_end_matches("\")");
    let told = told.replace("\\n", "\n").replace("\\\"", "\"").replace("\\\\", "\\");
    for fault in FAULTS {
        if let Some(account) = told.strip_prefix(&tag(fault)) {
            let account = Some(account.into());
            return ErrorKind::Arithmetic { fault, operation: None, account }.into();
        }
    }
    ErrorKind::Plan { message: told, location: None }.into()
}

/// A task's failure, as Ballista takes it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: DataFusionError,
    /// The process will fail at everything from now on: what lost a context of CUDA does not get it
    /// back.
    pub(crate) lost_device: bool,
}

impl Failure {
    pub(crate) fn of(error: DataFusionError) -> Failure {
        match Cause::of(&error) {
            Cause::Known => Failure { error, lost_device: false },
            Cause::Passing { message, lost_device } => {
                Failure { error: DataFusionError::IoError(io::Error::other(message)), lost_device }
            }
            // The client gets the `Debug` of what is told to the scheduler: this is the shortest.
            Cause::Final => {
                let message = tagged(&ours(error));
                let error = BallistaError::General(message).into_datafusion();
                Failure { error, lost_device: false }
            }
        }
    }
}

/// Why a task failed.
enum Cause {
    /// Ballista takes it as it is.
    Known,
    Passing {
        message: String,
        lost_device: bool,
    },
    /// The query fails.
    Final,
}

/// A failure in this engine's words.
fn ours(error: DataFusionError) -> Error {
    match error {
        // Ballista's writers put one around errors of the plans below them.
        DataFusionError::External(external) => match external.downcast::<BallistaError>() {
            Ok(ballistas) => match *ballistas {
                BallistaError::DataFusionError(inner) => ours(*inner),
                BallistaError::ArrowError(inner) => {
                    Error::from(DataFusionError::ArrowError(inner, None))
                }
                other => ErrorKind::Plan { message: other.to_string(), location: None }.into(),
            },
            Err(external) => Error::from(DataFusionError::External(external)),
        },
        DataFusionError::Shared(inner) => match Arc::try_unwrap(inner) {
            Ok(inner) => ours(inner),
            Err(inner) => Error::from(DataFusionError::Shared(inner)),
        },
        DataFusionError::Context(_, inner) => ours(*inner),
        error => Error::from(error),
    }
}

impl Cause {
    fn of(error: &DataFusionError) -> Cause {
        let root = error.find_root();
        match root {
            DataFusionError::IoError(_) => Cause::Known,
            DataFusionError::External(external) => {
                match (external.downcast_ref::<Error>(), external.downcast_ref::<BallistaError>()) {
                    (Some(ours), _) => Cause::of_ours(ours),
                    (_, Some(ballistas)) => Cause::of_ballistas(ballistas),
                    _ => Cause::Final,
                }
            }
            _ => Cause::Final,
        }
    }

    fn of_ours(error: &Error) -> Cause {
        let message = error.to_string();
        match error.kind() {
            ErrorKind::Cuda { .. } | ErrorKind::DeviceLost { .. } => {
                Cause::Passing { message, lost_device: true }
            }
            ErrorKind::Io { source, .. }
                if !matches!(
                    source.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) =>
            {
                Cause::Passing { message, lost_device: false }
            }
            _ => Cause::Final,
        }
    }

    /// What Ballista's writers made of errors of the plans below them.
    fn of_ballistas(error: &BallistaError) -> Cause {
        match error {
            BallistaError::FetchFailed(..)
            | BallistaError::IoError(_)
            | BallistaError::Cancelled => Cause::Known,
            BallistaError::DataFusionError(inner) => Cause::of(inner),
            _ => Cause::Final,
        }
    }
}

#[cfg(test)]
mod tests {
    use ballista_core::serde::protobuf::FailedTask;

    use super::*;

    fn told(error: impl Into<DataFusionError>) -> (FailedTask, bool) {
        let Failure { error, lost_device } = Failure::of(error.into());
        (FailedTask::from(BallistaError::from(error)), lost_device)
    }

    fn cuda() -> Error {
        let code = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access".into();
        Error::from(ErrorKind::Cuda { call: "cuStreamSynchronize", code })
    }

    #[test]
    fn a_lost_device_is_worth_another_try() {
        let (task, lost) = told(cuda());
        assert!(task.retryable && task.count_to_failures && lost, "{task:?}");
        assert!(task.error.contains("an illegal memory access"), "{task:?}");
        // However deep it lies.
        let shared = DataFusionError::Shared(Arc::new(cuda().into())).context("a stage");
        let (task, lost) = told(BallistaError::from(shared).into_datafusion());
        assert!(task.retryable && lost, "{task:?}");
    }

    #[test]
    fn a_failing_row_ends_the_query_and_tells_why() {
        let row = DataFusionError::ArrowError(
            Box::new(datafusion::arrow::error::ArrowError::DivideByZero),
            None,
        );
        let (task, lost) = told(BallistaError::from(row).into_datafusion());
        assert!(!task.retryable && !lost, "{task:?}");
        let told_by_job = |task: &FailedTask| {
            of_job(&format!("Job failed due to stage 1 failed: {}\n", task.error))
        };
        let error = told_by_job(&task);
        let is_fault = |error: &Error, of: Fault| matches!(error.kind(), ErrorKind::Arithmetic { fault, .. } if *fault == of);
        assert!(is_fault(&error, Fault::DivideByZero), "{error:?}");
        assert_eq!(error.to_string(), "Divide by zero error");
        let ours = ErrorKind::Arithmetic {
            fault: Fault::Cast,
            operation: None,
            account: Some("no \"x\"\nhere".into()),
        };
        let error = told_by_job(&told(Error::from(ours)).0);
        assert!(is_fault(&error, Fault::Cast), "{error:?}");
        assert_eq!(error.to_string(), "no \"x\"\nhere");
        assert!(of_job("no executors").to_string().contains("no executors"));
        let what = ErrorKind::Unsupported { what: "maps".into(), why: "they are rare".into() };
        let (task, lost) = told(Error::from(what));
        assert!(!task.retryable && !lost && task.error.contains("they are rare"), "{task:?}");
    }

    #[test]
    fn files_may_be_there_later_unless_there_are_none() {
        let of = |kind: io::ErrorKind| {
            told(Error::from(ErrorKind::Io { path: "a.parquet".into(), source: kind.into() })).0
        };
        assert!(of(io::ErrorKind::TimedOut).retryable);
        assert!(!of(io::ErrorKind::NotFound).retryable);
    }

    #[test]
    fn rows_that_could_not_be_fetched_stay_so() {
        let fetch = BallistaError::FetchFailed("one".into(), 1, 0, "no route".into());
        let (task, _) = told(fetch.into_datafusion());
        assert!(format!("{task:?}").contains("FetchPartitionError"), "{task:?}");
    }
}
