//! Ctrl-C and time limits.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{DEVICES, command, warpframe};

/// Pairs of 100,000 rows: without end.
pub const ENDLESS: &str = "SELECT count(*) FROM jets a JOIN jets b ON a.px + b.px < a.py * b.py JOIN jets c ON b.px + c.px < a.py;";

#[test]
fn a_time_limit_stops_a_statement() {
    for device in DEVICES {
        let statements = format!("SET statement_timeout = '1s'; {ENDLESS}");
        let failure =
            warpframe(&["data/jets.csv", "--device", device, "-c", &statements]).failure(1);
        assert!(
            failure.contains("the statement took longer than statement_timeout allows (1s)"),
            "{failure}"
        );
        let results = warpframe(&[
            "--device",
            device,
            "-c",
            "SET statement_timeout = 0; SELECT 1 AS x",
            "--format",
            "csv",
        ]);
        assert_eq!(results.results(), "x\n1\n");
    }
    let failure = warpframe(&["--device", "cpu", "-c", "SET statement_timeout = soon"]).failure(1);
    assert!(failure.contains("statement_timeout is a time such as '5s'"), "{failure}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_statement() {
    for device in DEVICES {
        let mut command = command(&["data/jets.csv", "--device", device]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        child.stdin.take().expect("it is piped").write_all(ENDLESS.as_bytes()).expect("it reads");
        // Before it begins, while it is planned, or while it runs: whichever, one is enough.
        std::thread::sleep(Duration::from_secs(3));
        let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(signal.expect("there is kill").success());
        let output = child.wait_with_output().expect("it ends");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{messages}");
        assert!(messages.contains("the statement was interrupted"), "{messages}");
    }
}
