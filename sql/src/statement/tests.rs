use warpframe::ExplainFormat;

use super::*;

fn requests(text: &str) -> Vec<Request> {
    split(text).into_iter().map(|statement| statement.unwrap().request().unwrap()).collect()
}

fn request(text: &str) -> Request {
    let mut all = requests(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn refused(text: &str) -> (String, Option<(u64, u64)>) {
    let failure = split(text).remove(0).unwrap().request().unwrap_err();
    (failure.to_string(), failure.place().map(|place| (place.line, place.column)))
}

fn name(text: &str, line: u64, column: u64) -> Name {
    Name { text: text.into(), place: Place { line, column } }
}

fn sql(text: &str) -> Sql {
    Sql(text.into())
}

#[test]
fn semicolons_end_statements_unless_quoted_or_commented() {
    let text = "SELECT ';' AS \"a;b\"; -- no; nothing\n;; /* ; */ SELECT 2";
    assert_eq!(
        requests(text),
        [
            Request::Query(sql("SELECT ';' AS \"a;b\"")),
            Request::Query(sql("\n           SELECT 2"))
        ]
    );
    assert!(split("  \n-- only a comment\n ; ").is_empty());
}

#[test]
fn queries_keep_their_place_and_their_characters() {
    let text = "SELECT 'é';\n\n  SELECT 'ü', -- inside\n  2;";
    assert_eq!(
        requests(text),
        [
            Request::Query(sql("SELECT 'é'")),
            Request::Query(sql("\n\n  SELECT 'ü', -- inside\n  2"))
        ]
    );
}

#[test]
fn statements_before_an_unterminated_string_are_whole() {
    let mut parts = split("SELECT 1;\nSELECT 'x");
    assert_eq!(parts.len(), 2);
    let failure = parts.pop().unwrap().unwrap_err();
    assert_eq!(failure.place(), Some(Place { line: 2, column: 8 }));
    assert!(parts.pop().unwrap().is_ok());
}

#[test]
fn a_text_is_whole_when_closed_by_a_semicolon() {
    for whole in ["", "  ", "-- nothing", "SELECT 1;", "SELECT 1; -- done", "SELECT ';';"] {
        assert!(is_whole(whole), "{whole}");
    }
    for part in ["SELECT 1", "SELECT 1; SELECT", "SELECT ';", "SELECT 1; /* ", "SELECT \"a"] {
        assert!(!is_whole(part), "{part}");
    }
}

#[test]
fn tables_are_made_of_queries() {
    let forms = [
        (
            "create table T as select 1",
            Existing::Refuse,
            name("t", 1, 14),
            "                  select 1",
        ),
        (
            "CREATE OR REPLACE TABLE t AS VALUES (1)",
            Existing::Replace,
            name("t", 1, 25),
            &(" ".repeat(29) + "VALUES (1)"),
        ),
        (
            "CREATE TEMP TABLE IF NOT EXISTS \"T\" AS\nSELECT 1",
            Existing::Keep,
            name("T", 1, 33),
            "\nSELECT 1",
        ),
    ];
    for (text, existing, table, query) in forms {
        assert_eq!(request(text), Request::CreateTable { table, existing, query: sql(query) });
    }
    for text in
        ["CREATE VIEW v AS SELECT 1", "create or replace temp view v as select 1", "DELETE FROM t"]
    {
        assert_eq!(request(text), Request::Execute(sql(text)));
    }
    for text in
        ["CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'f'", "CREATE OR REPLACE EXTERNAL TABLE t"]
    {
        assert_eq!(request(text), Request::Execute(sql(text)));
    }
    let described = RowSource::Query(sql("    FROM 'it''s.csv'"));
    assert_eq!(request("DESCRIBE 'it''s.csv'"), Request::Describe(described));
    for text in ["CREATE TABLE t (a INT)", "create or replace temp table \"T\" (\n a INT)"] {
        assert_eq!(request(text), Request::Execute(sql(text)));
    }
    assert_eq!(refused("CREATE TABLE t").1, Some((1, 15)));
    assert_eq!(refused("CREATE OR REPLACE TABLE IF NOT EXISTS t AS SELECT 1").1, Some((1, 1)));
}

#[test]
fn tables_are_dropped_shown_and_described() {
    assert_eq!(
        request("DROP TABLE t"),
        Request::DropTable { table: name("t", 1, 12), if_exists: false, text: sql("DROP TABLE t") }
    );
    let text = sql("drop table if exists t");
    assert_eq!(
        request(&text.0),
        Request::DropTable { table: name("t", 1, 22), if_exists: true, text: sql(&text.0) }
    );
    assert_eq!(request("show tables"), Request::ShowTables);
    assert_eq!(request("DESCRIBE t"), Request::Describe(RowSource::Table(name("t", 1, 10))));
    assert_eq!(request("DESC SELECT 1"), Request::Describe(RowSource::Query(sql("     SELECT 1"))));
    assert_eq!(refused("DROP TABLE t u").0, "expected the end of the statement, found u");
    assert_eq!(refused("DROP TABLE").1, Some((1, 11)));
}

#[test]
fn explain_holds_a_query() {
    let query = sql("                SELECT 1");
    assert_eq!(
        request("EXPLAIN ANALYZE SELECT 1"),
        Request::Explain { analyze: true, format: ExplainFormat::Indent, query }
    );
    let explained =
        |analyze, format, query: &str| Request::Explain { analyze, format, query: sql(query) };
    assert_eq!(
        request("EXPLAIN SELECT 1"),
        explained(false, ExplainFormat::Indent, "        SELECT 1")
    );
    assert_eq!(
        request("EXPLAIN FORMAT tree SELECT 1"),
        explained(false, ExplainFormat::Tree, &(" ".repeat(20) + "SELECT 1"))
    );
    let text = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1";
    assert_eq!(request(text), explained(true, ExplainFormat::Json, &(" ".repeat(31) + "SELECT 1")));
    assert_eq!(
        request("EXPLAIN (SELECT 1)"),
        explained(false, ExplainFormat::Indent, "        (SELECT 1)")
    );
    let unknown = refused("EXPLAIN FORMAT xml SELECT 1");
    assert_eq!(
        unknown,
        ("no format of EXPLAIN named \"xml\"; known: indent, tree, json".into(), Some((1, 16)))
    );
    assert_eq!(refused("EXPLAIN").0, "expected a query, found the end of the statement");
    let verbose = refused("EXPLAIN VERBOSE SELECT 1");
    assert_eq!(
        verbose,
        ("expected a query (EXPLAIN has no VERBOSE), found VERBOSE".into(), Some((1, 9)))
    );
}

#[test]
fn prepared_queries_are_told_from_other_statements() {
    let prepare = |text: &str, from: usize| Request::Prepare {
        query: sql(&(" ".repeat(from) + &text[from..])),
        text: sql(text),
    };
    let text = "PREPARE p AS SELECT 1 AS a";
    assert_eq!(request(text), prepare(text, 13));
    let text = "prepare p (INT, DECIMAL(5, 2)) as with q as (select $1) from q";
    assert_eq!(request(text), prepare(text, 34));
    for text in ["PREPARE p AS INSERT INTO t SELECT 1", "PREPARE", "PREPARE p", "PREPARE p AS"] {
        assert_eq!(request(text), Request::Execute(sql(text)));
    }
}

#[test]
fn copies_name_rows_file_and_format() {
    let rows = RowSource::Table(name("t", 1, 6));
    let (file, options) = (name("o.x", 1, 11), vec![]);
    assert_eq!(
        request("COPY t TO 'o.x'"),
        Request::Copy { rows, file, format: None, options, partition_by: vec![] }
    );
    let copy_with = |format, options: &[(&str, u64, &str)]| Request::Copy {
        rows: RowSource::Query(sql("      SELECT (1)")),
        file: name("o.x", 1, 22),
        format,
        options: options
            .iter()
            .map(|(text, at, value)| (name(text, 1, *at), value.to_string()))
            .collect(),
        partition_by: vec![],
    };
    let copy = |format| copy_with(format, &[]);
    assert_eq!(
        request("COPY (SELECT (1)) TO 'o.x' (HEADER, DELIMITER ';', ROW_GROUP_SIZE = 10)"),
        copy_with(
            None,
            &[("header", 29, "true"), ("delimiter", 37, ";"), ("row_group_size", 52, "10")]
        )
    );
    assert_eq!(
        request("COPY (SELECT (1)) TO 'o.x' STORED AS csv OPTIONS ('format.header' false)"),
        copy_with(Some(name("csv", 1, 38)), &[("format.header", 51, "false")])
    );
    assert_eq!(request("COPY (SELECT (1)) TO 'o.x'"), copy(None));
    assert_eq!(request("COPY (SELECT (1)) TO 'o.x' FORMAT CSV"), copy(Some(name("csv", 1, 35))));
    assert_eq!(
        request("COPY (SELECT (1)) TO 'o.x' WITH (FORMAT csv)"),
        copy(Some(name("csv", 1, 41)))
    );
    assert_eq!(refused("COPY (SELECT 1 TO 'o.x'").0, "expected ), found the end of the statement");
    assert_eq!(refused("COPY () TO 'o.x'").0, "expected a query, found )");
    let from = |format, options| Request::CopyFrom {
        table: name("t", 1, 6),
        file: name("o.x", 1, 13),
        format,
        options,
    };
    assert_eq!(request("COPY t FROM 'o.x'"), from(None, vec![]));
    let skip = vec![(name("skip", 1, 32), "1".to_string())];
    assert_eq!(
        request("COPY t FROM 'o.x' (FORMAT csv, skip 1)"),
        from(Some(name("csv", 1, 27)), skip)
    );
    for text in
        ["COPY t TO 'o' PARTITIONED BY (a, \"B\")", "COPY t TO 'o' (PARTITION_BY (a, \"B\"))"]
    {
        let Request::Copy { partition_by, .. } = request(text) else { panic!("{text}") };
        assert_eq!(
            partition_by.iter().map(|name| name.text.as_str()).collect::<Vec<_>>(),
            ["a", "B"],
            "{text}"
        );
    }
    let Request::Copy { rows, .. } = request("COPY s.t (a, \"B\") TO 'o'") else {
        panic!("no copy")
    };
    assert_eq!(rows, RowSource::Query(sql("   SELECT a, \"B\" FROM s.t")));
    assert_eq!(refused("COPY t () TO 'o'").0, "expected a column's name, found )");
    let (message, place) = refused("COPY t (a) FROM 'o'");
    assert!(message.contains("INSERT INTO t (a, b) SELECT"), "{message}");
    assert_eq!(place, Some((1, 8)));
    assert_eq!(refused("COPY t INTO 'o.x'").0, "expected TO or FROM, found INTO");
    assert!(refused("COPY (SELECT 1) FROM 'o.x'").0.contains("not into a query"));
    assert!(refused("COPY t FROM 'o' (PARTITION_BY a)").0.contains("leave PARTITION_BY out"));
    assert_eq!(
        refused("COPY t TO 'o.x' (DELIMITER)").0,
        "expected a value of the option delimiter, found )"
    );
    assert_eq!(refused("COPY t TO o").1, Some((1, 11)));
}

#[test]
fn options_are_set_to_any_spelling_of_a_value() {
    let set =
        |value: &str, at| Request::Set { option: name("memory_limit", 1, at), value: value.into() };
    assert_eq!(request("SET memory_limit = '2GiB'"), set("2GiB", 5));
    assert_eq!(request("SET memory_limit TO 50%"), set("50%", 5));
    assert_eq!(request("SET MEMORY_LIMIT=1000"), set("1000", 5));
    assert_eq!(refused("SET memory_limit").0, "expected = or TO, found the end of the statement");
}

#[test]
fn what_is_not_known_is_for_the_engine_to_judge() {
    assert_eq!(request("MERGE INTO t"), Request::Query(sql("MERGE INTO t")));
    assert_eq!(
        request("INSERT INTO t VALUES (1)"),
        Request::Execute(sql("INSERT INTO t VALUES (1)"))
    );
}

#[test]
fn values_stand_where_their_names_stand() {
    let values =
        [("n", "3"), ("day", "it's")].map(|(name, value)| (name.to_string(), value.to_string()));
    let of = |text: &str| with_values(text, &values.clone().into());
    assert_eq!(
        of("SELECT $n, '$n', $day, $other").as_deref(),
        Some("SELECT 3, '$n', 'it''s', $other")
    );
    assert_eq!(of("SELECT $other"), None);
    for (value, written) in [
        ("007", "'007'"),
        ("-00.5", "'-00.5'"),
        ("0", "0"),
        ("-0.5", "(-0.5)"),
        ("+1", "(+1)"),
        ("0e1", "0e1"),
        ("1e3", "1e3"),
        ("inf", "'inf'"),
        ("", "''"),
    ] {
        let values = [("v".to_string(), value.to_string())];
        assert_eq!(with_values("$v", &values.into()).as_deref(), Some(written));
    }
}

#[test]
fn a_value_is_a_token_of_its_own_whatever_stands_beside_it() {
    let values = [("x", "-1"), ("n", "5"), ("s", "it")];
    let values = values.map(|(name, value)| (name.to_string(), value.to_string()));
    for (text, written) in [
        ("SELECT 5-$x, 2", "SELECT 5-(-1), 2"),
        ("SELECT 2*-$x", "SELECT 2*-(-1)"),
        ("SELECT $x::VARCHAR", "SELECT (-1)::VARCHAR"),
        ("SELECT 'a'$s", "SELECT 'a' 'it'"),
        ("SELECT $s'a'", "SELECT 'it' 'a'"),
        ("SELECT 1 WHERE 2=$n AND 1", "SELECT 1 WHERE 2=5 AND 1"),
        ("SELECT 2$n", "SELECT 2 5"),
        ("LIMIT $n%", "LIMIT 5%"),
    ] {
        assert_eq!(with_values(text, &values.clone().into()).as_deref(), Some(written), "{text}");
    }
}
