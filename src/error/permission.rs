//! What statements may do where a session allows it.

use std::fmt;

/// What a session allows or forbids its statements.
///
/// ```
/// use warpframe::{DeviceChoice, ErrorKind, Permission, Session};
/// let session = Session::builder().device(DeviceChoice::Cpu).files(false).build()?;
/// let error = session.sql("FROM 'data/jets.csv'").unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::Forbidden { needs: Permission::Files, .. }));
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Permission {
    /// To read and write files: [`SessionBuilder::files`](crate::SessionBuilder::files).
    Files,
    /// To bring code that runs on this machine:
    /// [`SessionBuilder::user_code`](crate::SessionBuilder::user_code).
    UserCode,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Permission::Files => {
                "statements read and write no files where SessionBuilder::files(false) says so"
            }
            Permission::UserCode => {
                "it is code that runs on this machine, which SessionBuilder::user_code(true) allows"
            }
        })
    }
}
