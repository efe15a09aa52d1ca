//! Databases on the command line.

use crate::{DEVICES, Files, warpframe};

#[test]
fn what_a_run_makes_the_next_one_finds() {
    for device in DEVICES {
        let files = Files::new();
        let path = files.path("my.wf");
        let run = |statements: &[&str]| {
            let mut arguments = vec![path.as_str(), "--device", device, "--csv"];
            arguments.extend(statements.iter().flat_map(|statement| ["-c", statement]));
            warpframe(&arguments)
        };
        run(&["CREATE TABLE t AS SELECT 1 AS i", "CREATE VIEW v AS SELECT i + 1 AS j FROM t"])
            .results();
        assert_eq!(run(&["FROM v"]).results(), "j\n2\n", "{device}");
        // What went well before a failure stays.
        run(&["INSERT INTO t VALUES (5)", "SELECT nope"]).failure(1);
        assert_eq!(run(&["SELECT sum(i) AS n FROM t"]).results(), "n\n6\n", "{device}");
    }
}

#[test]
fn a_file_beside_a_database_is_a_table_that_stays_a_file() {
    let files = Files::new();
    let (path, csv) = (files.path("my.wf"), files.write("x.csv", "a\n1\n2\n"));
    let made = [&path, &csv, "--csv", "-c", "CREATE TABLE t AS SELECT sum(a) AS n FROM x"];
    warpframe(&made).results();
    assert_eq!(warpframe(&[&path, "--csv", "-c", "FROM t"]).results(), "n\n3\n");
    let gone = warpframe(&[&path, "--csv", "-c", "FROM x"]).failure(1);
    assert!(gone.contains("no table named \"x\""), "{gone}");
}
