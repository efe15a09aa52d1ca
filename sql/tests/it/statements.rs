//! Statements that are more than a query.

use crate::{DEVICES, Files, warpframe};

fn csv(device: &str, sql: &str) -> String {
    warpframe(&["data/jets.csv", "--device", device, "--format", "csv", "-c", sql]).results()
}

#[test]
fn a_created_table_stays_on_the_device() {
    let sql = "CREATE TABLE heavy AS SELECT jetid, px FROM jets WHERE \"E\" > 50;
        EXPLAIN ANALYZE SELECT sum(px) AS s FROM heavy";
    let text = warpframe(&["data/jets.csv", "--device", "sim", "--strict", "-c", sql]).results();
    // Nothing of it goes up a second time.
    assert!(text.contains("bytes to the device 0,"), "{text}");
    assert!(text.contains("1 row on the device in "), "{text}");
    // Of the file's table it would.
    let text = warpframe(&[
        "data/jets.csv",
        "--device",
        "sim",
        "--strict",
        "-c",
        "EXPLAIN ANALYZE SELECT sum(px) FROM jets",
    ]);
    let text = text.results();
    assert!(!text.contains("bytes to the device 0,"), "{text}");
}

#[test]
fn created_tables_hold_their_rows() {
    for device in DEVICES {
        let sql = "CREATE TABLE t AS SELECT jetid, count(*) AS n FROM jets GROUP BY jetid;
            CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS other;
            SELECT sum(n) AS n FROM t;
            CREATE OR REPLACE TABLE t AS SELECT max(n) > 0 AS some FROM t;
            SELECT * FROM t;
            DROP TABLE t; DROP TABLE IF EXISTS t; SHOW TABLES";
        assert_eq!(csv(device, sql), "n\n100000\nsome\ntrue\ntable\njets\n", "{device}");
    }
}

#[test]
fn tables_are_made_and_filled_by_statements() {
    for device in DEVICES {
        let sql = "CREATE TABLE t (a INT, b TEXT, c DECIMAL(9, 2));
            INSERT INTO t VALUES (1, 'x', 1.005), (2, NULL, -3);
            INSERT INTO t (c, a) SELECT 7, count(*) FROM jets;
            SELECT * FROM t ORDER BY a";
        assert_eq!(csv(device, sql), "a,b,c\n1,x,1.01\n2,,-3.00\n100000,,7.00\n", "{device}");
    }
    let refused =
        |sql: &str| warpframe(&["data/jets.csv", "--device", "cpu", "-c", sql]).failure(1);
    let messages = refused("CREATE TABLE t (a INT);\nINSERT INTO t VALUES (1, 2)");
    assert!(messages.contains("rows of 2 values for 1 column: a"), "{messages}");
    let messages = refused("INSERT INTO jets VALUES (1, 2, 3, 4, 5)");
    assert!(
        messages.contains("its rows are those of its files") && messages.contains("column 13"),
        "{messages}"
    );
    let messages = refused("CREATE TABLE t (a INT);\nINSERT INTO t (b) SELECT 1");
    assert!(
        messages.contains("line 2, column 16") && messages.contains("none of table \"t\""),
        "{messages}"
    );
    let messages = refused("CREATE TABLE t (a INT NOT NULL); INSERT INTO t VALUES (NULL)");
    assert!(messages.contains("column \"a\" of table \"t\" is NOT NULL"), "{messages}");
}

#[test]
fn a_table_is_not_replaced_by_accident() {
    let run = warpframe(&[
        "data/jets.csv",
        "--device",
        "cpu",
        "-c",
        "CREATE TABLE jets AS SELECT 1 AS x",
    ]);
    let messages = run.failure(1);
    let expected = "\
error: there is a table named \"jets\"; CREATE OR REPLACE replaces it
  --> -c, line 1, column 14
    |
  1 | CREATE TABLE jets AS SELECT 1 AS x
    |              ^^^^
";
    assert_eq!(messages, expected);
}

#[test]
fn tables_and_queries_are_described() {
    for device in DEVICES {
        let expected = "column,type,nullable\njetid,BIGINT,true\npx,DOUBLE,true\npy,DOUBLE,true\npz,DOUBLE,true\nE,DOUBLE,true\n";
        assert_eq!(csv(device, "DESCRIBE jets"), expected);
        assert_eq!(
            csv(device, "DESCRIBE SELECT count(*) AS n FROM jets"),
            "column,type,nullable\nn,BIGINT,false\n"
        );
    }
}

#[test]
fn explain_names_the_parts_of_device_and_cpu() {
    let explain = |device: &str, sql: &str| {
        warpframe(&["data/jets.csv", "--device", device, "-c", &format!("EXPLAIN {sql}")]).results()
    };
    let text = explain("sim", "SELECT jetid, sum(px) FROM jets GROUP BY jetid");
    assert!(text.lines().all(|line| line.starts_with("device  ")), "{text}");
    let wide = "SELECT arrow_cast(total, 'Decimal256(50, 2)') FROM (SELECT sum(px) AS total FROM jets GROUP BY jetid)";
    let text = explain("sim", wide);
    assert!(
        text.contains("cpu     ") && text.contains("Projection") && text.contains("device  "),
        "{text}"
    );
    let text = explain("cpu", "SELECT jetid, sum(px) FROM jets GROUP BY jetid");
    assert!(text.starts_with("cpu\n") && text.contains("AggregateExec"), "{text}");
}

#[test]
fn explain_analyze_runs_and_accounts_for_kernels() {
    let sql =
        "EXPLAIN ANALYZE SELECT jetid, sum(px) FROM jets GROUP BY jetid ORDER BY jetid LIMIT 5";
    let text = warpframe(&["data/jets.csv", "--device", "sim", "-c", sql]).results();
    let parts = [
        "device  ",
        "5 rows on the device in ",
        " ms in kernels\nlaunches ",
        "host waits ",
        "kernel modules found",
        "kernel  ",
    ];
    for part in parts {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = warpframe(&["data/jets.csv", "--device", "cpu", "-c", sql]).results();
    assert!(text.contains("\n\n5 rows in "), "{text}");
}

#[test]
fn explain_analyze_tells_below_a_sort_how_it_was_done() {
    let explain = |sql: &str| {
        warpframe(&["data/jets.csv", "--device", "sim", "--strict", "-c", sql]).results()
    };
    let text = explain("EXPLAIN ANALYZE SELECT * FROM jets ORDER BY px");
    let (plan, account) = text.split_once("\n\n").expect("a plan and an account");
    let at = plan.lines().position(|line| line.contains("Sort: jets.px")).expect("a sort");
    let line = plan.lines().nth(at + 1).expect("a line below it");
    assert!(
        line.starts_with("device      sort: by a prefix of 32 of 64 bits, with row numbers ("),
        "{text}"
    );
    assert!(!account.contains("sort: by"), "{text}");
    // Of two operators that sort each has its own line.
    let text = explain(
        "EXPLAIN ANALYZE SELECT *, row_number() OVER (ORDER BY px) AS n FROM jets ORDER BY py DESC",
    );
    let lines: Vec<&str> = text.lines().collect();
    for operator in ["Sort: jets.py", "Window: "] {
        let at = lines.iter().position(|line| line.contains(operator)).expect("an operator");
        assert!(lines[at + 1].contains("sort: by "), "{operator} in {text}");
    }
    assert_eq!(text.matches("sort: by ").count(), 2, "{text}");
    assert!(!explain("EXPLAIN SELECT * FROM jets ORDER BY px").contains("sort: by"));
}

#[test]
fn explain_analyze_tells_what_the_host_read_of_files() {
    let files = Files::new();
    let path = files.path("lists.parquet");
    let copy = format!("COPY (SELECT jetid AS n, [jetid, 7] AS l FROM jets LIMIT 5) TO '{path}'");
    assert_eq!(warpframe(&["data/jets.csv", "--device", "sim", "-c", &copy]).results(), "");
    let explain =
        |sql: &str| warpframe(&[&path, "--device", "sim", "--strict", "-c", sql]).results();
    let both = explain(
        "SELECT l FROM lists; EXPLAIN ANALYZE SELECT n FROM lists; EXPLAIN ANALYZE SELECT l FROM lists",
    );
    // Of the first statement, nobody asked; by the last one, it is in device memory.
    assert!(!both.contains("by the host"), "{both}");
    let text = explain("EXPLAIN ANALYZE SELECT l, n FROM lists");
    let line = format!("\ncolumn \"l\" of {path} is read by the host: it is nested\n");
    assert!(text.contains(&line) && text.matches("by the host").count() == 1, "{text}");
    let text = warpframe(&[&path, "--device", "cpu", "-c", "EXPLAIN ANALYZE SELECT l FROM lists"])
        .results();
    assert!(!text.contains("by the host"), "{text}");
}

#[test]
fn explain_analyze_shows_the_order_of_joins() {
    let query = "EXPLAIN ANALYZE SELECT count(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey \
                 JOIN part ON l_partkey = p_partkey WHERE p_size = 15";
    let explain = |set: &str| {
        let tables =
            ["data/tpch/lineitem.parquet", "data/tpch/orders.parquet", "data/tpch/part.parquet"];
        warpframe(&[
            tables[0],
            tables[1],
            tables[2],
            "--device",
            "sim",
            "-c",
            &format!("{set}{query}"),
        ])
        .results()
    };
    let (ordered, own) = (explain(""), explain("SET join_order = off; "));
    assert!(
        ordered.contains("\njoins   in the order of estimated rows")
            && ordered.contains("    (about "),
        "{ordered}"
    );
    assert!(!own.contains("\njoins   ") && own.contains("    (about "), "{own}");
}

#[test]
fn explain_comes_in_the_format_asked_for() {
    let text = csv("sim", "EXPLAIN SELECT count(*) FROM jets");
    assert!(text.starts_with("plan\n") && text.contains("device  "), "{text}");
}

#[test]
fn copies_are_files_that_read_back() {
    for device in DEVICES {
        let files = Files::new();
        let (parquet, csv, odd) =
            (files.path("top.parquet"), files.path("all.csv"), files.path("top.out"));
        let query = "SELECT jetid, px FROM jets WHERE jetid IN (1, 2)";
        let sql = format!(
            "COPY ({query}) TO '{parquet}'; COPY jets TO '{csv}'; COPY ({query}) TO '{odd}' FORMAT parquet"
        );
        assert_eq!(warpframe(&["data/jets.csv", "--device", device, "-c", &sql]).results(), "");
        let same = "SELECT count(*) AS n FROM (SELECT * FROM top UNION ALL SELECT jetid, px FROM jets WHERE jetid IN (1, 2))";
        let n = warpframe(&[
            &parquet,
            "data/jets.csv",
            "--device",
            device,
            "--format",
            "csv",
            "-c",
            same,
        ])
        .results();
        let one = warpframe(&[
            &parquet,
            "--device",
            device,
            "--format",
            "csv",
            "-c",
            "SELECT 2 * count(*) AS n FROM top",
        ]);
        assert_eq!(n, one.results());
        assert_eq!(std::fs::read(&odd).unwrap()[..4], *b"PAR1");
        assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), 100_001);
    }
}

#[test]
fn copies_that_cannot_be_made_say_why() {
    let files = Files::new();
    let copy = |target: &str| {
        warpframe(&["--device", "cpu", "-c", &format!("COPY (SELECT 1 AS x) TO '{target}'")])
            .failure(1)
    };
    let messages = copy(&files.path("x.xlsx"));
    assert!(
        messages.contains(".tsv, .parquet, .json") && messages.contains("line 1, column 25"),
        "{messages}"
    );
    let messages = copy(&files.path("no/such/directory/x.csv"));
    assert!(messages.contains("no/such/directory/x.csv"), "{messages}");
}

#[test]
fn options_are_set_and_unknown_ones_refused() {
    let sql = "SET format = 'ndjson'; SELECT 1 AS x; SET format TO csv; SELECT 2 AS x";
    assert_eq!(warpframe(&["--device", "cpu", "-c", sql]).results(), "{\"x\":1}\nx\n2\n");

    let sql = "SET memory_limit = '8KiB'; SELECT array_agg(jetid), array_agg(px) FROM jets";
    let messages =
        warpframe(&["data/jets.csv", "--device", "sim", "--strict", "-c", sql]).failure(1);
    assert!(messages.contains("out of device memory"), "{messages}");

    let refused = |sql: &str| warpframe(&["--device", "cpu", "-c", sql]).failure(1);
    assert!(
        refused("SET colour = 'red'").contains("no option named \"colour\"; SHOW ALL lists them")
    );
    assert!(refused("SET memroy_limit = 1").contains("did you mean memory_limit?"));
    assert!(refused("SET memory_limit = 1").contains("there is no device"));
    assert!(refused("SET join_order = off").contains("there is no device"));
    assert!(refused("SET join_order = mine").contains("join_order is on or off, not \"mine\""));
    assert!(refused("SET max_rows = many").contains("max_rows is a number, not \"many\""));
}

#[test]
fn the_timer_tells_of_each_statement_and_leaves_results_alone() {
    let run =
        warpframe(&["--device", "cpu", "--format", "csv", "-c", "SET timer = on; SELECT 1 AS x"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "x\n1\n"));
    assert_eq!(run.messages.lines().filter(|line| line.starts_with("time: ")).count(), 2);
}

#[test]
fn what_the_device_has_no_memory_for_runs_on_the_cpu_with_a_note() {
    let sql =
        "SELECT cardinality(array_agg(jetid)) AS n, cardinality(array_agg(px)) AS m FROM jets";
    let asked = |sql: &str| {
        warpframe(&[
            "data/jets.csv",
            "--device",
            "sim",
            "--memory-limit",
            "30kB",
            "--format",
            "csv",
            "-c",
            sql,
        ])
    };
    let run = asked(sql);
    assert_eq!(run.code, Some(0), "{}", run.messages);
    assert!(
        run.messages.starts_with("note: the CPU took over: out of device memory: "),
        "{}",
        run.messages
    );
    assert_eq!(run.messages.lines().count(), 1, "{}", run.messages);
    let expected =
        warpframe(&["data/jets.csv", "--device", "cpu", "--format", "csv", "-c", sql]).results();
    assert_eq!(run.out, expected);
    let plan = asked(&format!("EXPLAIN ANALYZE {sql}")).out;
    assert!(
        plan.contains("a part planned for the device ran on the CPU: out of device memory: "),
        "{plan}"
    );
}

/// A plan has constants of the query's, which a terminal must not obey.
#[test]
fn plans_have_no_control_characters() {
    for device in DEVICES {
        for format in ["indent", "tree", "json"] {
            let sql = format!(
                "EXPLAIN FORMAT {format} SELECT chr(27) || '[2J' || chr(155) AS c FROM (VALUES (1)) v(a)"
            );
            let plan = warpframe(&["--device", device, "-c", &sql]).results();
            assert!(plan.contains("[2J"), "{device}: {plan}");
            assert!(!plan.chars().any(|c| c.is_control() && c != '\n'), "{device}: {plan:?}");
        }
    }
}
