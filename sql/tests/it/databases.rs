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

#[test]
fn attached_databases_stay_and_are_read_by_name() {
    for device in DEVICES {
        let files = Files::new();
        let (own, other) = (files.path("own.wf"), files.path("Other.wf"));
        let run = |first: &[&str], statements: &[&str]| {
            let mut arguments = first.to_vec();
            arguments.extend(["--device", device, "--csv"]);
            arguments.extend(statements.iter().flat_map(|statement| ["-c", statement]));
            warpframe(&arguments)
        };
        let attach = format!("ATTACH '{other}'");
        // Without a database of the session's own, too.
        run(&[], &[&attach, "CREATE TABLE other.t AS SELECT 1 AS i"]).results();
        run(&[&own], &[&attach, "CREATE TABLE t AS SELECT i + 1 AS i FROM other.main.t"]).results();
        let joined = "SELECT count(*) AS n FROM public.t JOIN other.t ON public.t.i > other.t.i";
        let read = format!("{attach} AS other (READ_ONLY)");
        assert_eq!(run(&[&own], &[&read, joined]).results(), "n\n1\n", "{device}");
        let told = run(&[], &[&read, "DELETE FROM other.t"]).failure(1);
        assert!(told.contains("the database \"other\" is attached READ_ONLY"), "{told}");
        let told = run(&[], &[&read, "DETACH othe"]).failure(1);
        assert!(told.contains("no database named \"othe\""), "{told}");
        assert!(told.contains("did you mean other?"), "{told}");
        let told = run(&["--no-files"], &[&attach]).failure(1);
        assert!(told.contains("ATTACH"), "{told}");
        // What is written before a database leaves stays.
        run(&[], &[&attach, "INSERT INTO other.t VALUES (5)", "DETACH other"]).results();
        assert_eq!(run(&[&other], &["SELECT sum(i) AS n FROM t"]).results(), "n\n6\n", "{device}");
        let listed = run(&[&own], &[&attach, "SHOW DATABASES"]).results();
        assert!(listed.contains(&format!("other,{other},false")), "{listed}");
    }
}
