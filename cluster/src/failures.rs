//! Which failures of a task are worth another try.
//!
//! Ballista runs a task again, up to four times, if the root of its failure is an I/O error; every
//! other failure ends the query. So a device that is gone becomes an I/O error, and what another
//! device would run into as well stays what it is: a row that fails, a plan that cannot run.

use std::io;

use ballista_core::error::BallistaError;
use datafusion::error::DataFusionError;
use warpframe::{Error, ErrorKind};

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
        let lasts = |error| Failure { error, lost_device: false };
        match error.find_root() {
            DataFusionError::External(root) => {
                if let Some(ours) = root.downcast_ref::<Error>() {
                    return Failure::of_ours(ours);
                }
                // Ballista's own, such as rows that could not be fetched.
                if root.is::<BallistaError>() {
                    return lasts(error);
                }
            }
            DataFusionError::IoError(_) => return lasts(error),
            _ => {}
        }
        lasts(ended(error.strip_backtrace()))
    }

    fn of_ours(error: &Error) -> Failure {
        let again = |lost_device| Failure {
            error: DataFusionError::IoError(io::Error::other(error.to_string())),
            lost_device,
        };
        match error.kind() {
            ErrorKind::Cuda { .. } => again(true),
            ErrorKind::Io { source, .. }
                if !matches!(
                    source.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) =>
            {
                again(false)
            }
            _ => Failure { error: ended(error.to_string()), lost_device: false },
        }
    }
}

/// A failure that ends the query, in words for whoever asked it: the client gets the `Debug` of
/// what is told to the scheduler.
fn ended(message: String) -> DataFusionError {
    BallistaError::General(message).into_datafusion()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
        assert!(told(shared).0.retryable);
    }

    #[test]
    fn a_failing_row_ends_the_query_and_tells_why() {
        let message = "Arrow error: Divide by zero error";
        let row = DataFusionError::ArrowError(
            Box::new(datafusion::arrow::error::ArrowError::DivideByZero),
            None,
        );
        let (task, lost) = told(row);
        assert!(!task.retryable && !lost && task.error.contains(message), "{task:?}");
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
