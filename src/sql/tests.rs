use super::*;
use crate::sql::ExplainFormat;

fn name(text: &str, line: u64, column: u64) -> Name {
    Name { text: text.into(), place: (line, column) }
}

/// A text's statements, with the places where they begin.
fn split(text: &str) -> Vec<(String, (u64, u64))> {
    let text = Text::from(text);
    let of = |statement: &Text<'_>| {
        let start = statement.start();
        (statement.as_str().to_string(), (start.line, start.column))
    };
    text.statements().iter().map(of).collect()
}

fn refused(text: &str) -> (String, Option<(u64, u64)>) {
    let text = Text::from(text);
    let error = Statement::of(&text).unwrap_err();
    match error.kind() {
        crate::ErrorKind::Plan { message, .. } | crate::ErrorKind::Parse { message, .. } => {
            (message.clone(), error.location())
        }
        other => panic!("{other:?}"),
    }
}

fn with<T>(text: &str, look: impl FnOnce(Statement<'_>) -> T) -> T {
    look(Statement::of(&Text::from(text)).unwrap())
}

#[test]
fn semicolons_end_statements_unless_quoted_or_commented() {
    let text = "SELECT ';' AS \"a;b\"; -- no; nothing\n;; /* ; */ SELECT 2";
    let expected = [("SELECT ';' AS \"a;b\"".into(), (1, 1)), ("SELECT 2".to_string(), (2, 12))];
    assert_eq!(split(text), expected);
    assert!(split("  \n-- only a comment\n ; ").is_empty());
    let text = "SELECT 'é';\n\n  SELECT 'ü', -- inside\n  2;";
    let expected =
        [("SELECT 'é'".into(), (1, 1)), ("SELECT 'ü', -- inside\n  2".to_string(), (3, 3))];
    assert_eq!(split(text), expected);
}

#[test]
fn statements_before_an_unterminated_string_are_whole() {
    let text = Text::from("SELECT 1;\nSELECT 'x");
    let parts = text.statements();
    assert_eq!((parts.len(), parts[0].as_str()), (2, "SELECT 1"));
    let location = parts[1].error().map(|error| (error.location.line, error.location.column));
    assert_eq!(location, Some((2, 8)));
    assert!(parts[0].error().is_none());
}

#[test]
fn parts_of_a_text_keep_their_places() {
    let text = Text::from("DESCRIBE\n  jets x");
    let rest = text.behind(1);
    assert_eq!((rest.as_str(), rest.start().line, rest.start().column), ("jets x", 2, 3));
    let query = rest.after("FROM");
    assert_eq!((query.as_str(), query.place_of("x")), ("FROM jets x", Some((2, 8))));
    assert_eq!(text.between(0, 2).as_str(), "DESCRIBE\n  jets");
    assert_eq!(text.behind(9).as_str(), "");
}

#[test]
fn explain_holds_a_query() {
    for (text, expected) in [
        ("EXPLAIN ANALYZE SELECT 1", (true, ExplainFormat::Indent, "SELECT 1")),
        ("EXPLAIN SELECT 1", (false, ExplainFormat::Indent, "SELECT 1")),
        ("EXPLAIN FORMAT tree SELECT 1", (false, ExplainFormat::Tree, "SELECT 1")),
        ("EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1", (true, ExplainFormat::Json, "SELECT 1")),
        ("EXPLAIN (SELECT 1)", (false, ExplainFormat::Indent, "(SELECT 1)")),
    ] {
        with(text, |statement| match statement {
            Statement::Explain { analyze, format, query } => {
                assert_eq!((analyze, format, query.as_str()), expected, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        });
    }
    let unknown = refused("EXPLAIN FORMAT xml SELECT 1");
    let message = "no format of EXPLAIN named \"xml\"; known: indent, tree, json";
    assert_eq!(unknown, (message.into(), Some((1, 16))));
    assert_eq!(refused("EXPLAIN").0, "expected a query, found the end of the statement");
    let verbose = refused("EXPLAIN VERBOSE SELECT 1");
    let message = "expected a query (EXPLAIN has no VERBOSE), found VERBOSE";
    assert_eq!(verbose, (message.into(), Some((1, 9))));
}

#[test]
fn tables_are_described_by_name_and_by_query() {
    for (text, expected) in [
        ("DESCRIBE t", "FROM t"),
        ("DESC TABLE s.t", "FROM s.t"),
        ("DESC SELECT 1", "SELECT 1"),
        ("DESCRIBE 'it''s.csv'", "FROM 'it''s.csv'"),
    ] {
        with(text, |statement| match statement {
            Statement::Describe(query) => assert_eq!(query.as_str(), expected),
            other => panic!("{text}: {other:?}"),
        });
    }
}

#[test]
fn copies_name_rows_file_and_format() {
    let copy = |text: &str, rows: &str, format: Option<Name>, options: &[(&str, u64, &str)]| {
        with(text, |statement| match statement {
            Statement::Copy(copy) => {
                assert_eq!(copy.rows.as_str(), rows, "{text}");
                assert_eq!((copy.file.text.as_str(), &copy.format), ("o.x", &format), "{text}");
                let value = |to: &str| CopyValue::Text(to.into());
                let named = options.iter().map(|(of, at, to)| (name(of, 1, *at), value(to)));
                assert_eq!(copy.options, named.collect::<Vec<_>>(), "{text}");
            }
            other => panic!("{text}: {other:?}"),
        });
    };
    let csv = |at| Some(name("csv", 1, at));
    copy("COPY t TO 'o.x'", "FROM t", None, &[]);
    copy(
        "COPY (SELECT (1)) TO 'o.x' (HEADER, DELIMITER ';', ROW_GROUP_SIZE = 10)",
        "SELECT (1)",
        None,
        &[("header", 29, "true"), ("delimiter", 37, ";"), ("row_group_size", 52, "10")],
    );
    copy(
        "COPY (SELECT (1)) TO 'o.x' STORED AS csv OPTIONS ('format.header' false)",
        "SELECT (1)",
        csv(38),
        &[("format.header", 51, "false")],
    );
    copy("COPY (SELECT (1)) TO 'o.x' FORMAT CSV", "SELECT (1)", csv(35), &[]);
    copy("COPY (SELECT (1)) TO 'o.x' WITH (FORMAT csv)", "SELECT (1)", csv(41), &[]);
    copy("COPY s.t (a, \"B\") TO 'o.x'", "SELECT a, \"B\" FROM s.t", None, &[]);
    for text in
        ["COPY t TO 'o' PARTITIONED BY (a, \"B\")", "COPY t TO 'o' (PARTITION_BY (a, \"B\"))"]
    {
        with(text, |statement| {
            let Statement::Copy(copy) = statement else { panic!("{text}") };
            let by: Vec<_> = copy.partition_by.iter().map(|name| name.text.as_str()).collect();
            assert_eq!(by, ["a", "B"], "{text}");
        });
    }
    let texts = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
    let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
    for (option, expected) in [
        ("FORCE_QUOTE *", CopyValue::All),
        ("FORCE_QUOTE A", CopyValue::List(texts(&["a"]))),
        ("FORCE_QUOTE (A, \"B c\")", CopyValue::List(texts(&["a", "B c"]))),
        ("FORCE_QUOTE ['a', 'B']", CopyValue::List(texts(&["a", "B"]))),
        (
            "KV_METADATA {A: 'x', 'b c': -3}",
            CopyValue::Pairs(vec![pair("A", "x"), pair("b c", "-3")]),
        ),
        ("KV_METADATA {}", CopyValue::Pairs(vec![])),
        ("APPEND", CopyValue::Text("true".into())),
        ("APPEND false", CopyValue::Text("false".into())),
    ] {
        with(&format!("COPY t TO 'o' ({option}, NULL 'x')"), |statement| {
            let Statement::Copy(copy) = statement else { panic!("{option}") };
            assert_eq!((copy.options.len(), &copy.options[0].1), (2, &expected), "{option}");
        });
    }
    with("COPY t FROM 'o.x' (FORMAT csv, skip 1)", |statement| {
        let Statement::CopyFrom(copy) = statement else { panic!("no copy") };
        assert_eq!((copy.table, copy.file), (name("t", 1, 6), name("o.x", 1, 13)));
        assert_eq!(copy.format, csv(27));
        assert_eq!(copy.options, [(name("skip", 1, 32), "1".to_string())]);
    });
}

#[test]
fn what_is_wrong_with_a_copy_is_told_at_its_place() {
    for (text, message, place) in [
        ("COPY (SELECT 1 TO 'o.x'", "expected ), found the end of the statement", (1, 24)),
        ("COPY () TO 'o.x'", "expected a query, found )", (1, 7)),
        ("COPY t () TO 'o'", "expected a column's name, found )", (1, 9)),
        ("COPY t INTO 'o.x'", "expected TO or FROM, found INTO", (1, 8)),
        ("COPY t TO 'o.x' (DELIMITER)", "expected a value of the option delimiter", (1, 27)),
        ("COPY t TO 'o' (k {a 'x'})", "expected :, found 'x'", (1, 21)),
        ("COPY t TO 'o' (k {a: 'x' b: 1})", "expected , or }, found b", (1, 26)),
        ("COPY t FROM 'o' (k (1, 2))", "the option k takes one value", (1, 18)),
        ("COPY t TO o", "expected a file's name in single quotes", (1, 11)),
        ("COPY t (a) FROM 'o'", "INSERT INTO t (a, b) SELECT", (1, 8)),
        ("COPY (SELECT 1) FROM 'o.x'", "not into a query", (1, 22)),
        ("COPY t FROM 'o' (PARTITION_BY a)", "leave PARTITION_BY out", (1, 31)),
    ] {
        let (found, at) = refused(text);
        assert!(found.contains(message), "{text}: {found}");
        assert_eq!(at, Some(place), "{text}");
    }
}

#[test]
fn options_are_set_to_any_spelling_of_a_value() {
    for (text, expected) in [
        ("SET memory_limit = '2GiB'", "2GiB"),
        ("SET memory_limit TO 50%", "50%"),
        ("SET MEMORY_LIMIT=1000", "1000"),
    ] {
        with(text, |statement| match statement {
            Statement::Set { option, value } => {
                assert_eq!((option, value.as_str()), (name("memory_limit", 1, 5), expected));
            }
            other => panic!("{text}: {other:?}"),
        });
    }
    assert_eq!(refused("SET memory_limit").0, "expected = or TO, found the end of the statement");
}

#[test]
fn statements_are_told_by_their_first_words() {
    let is = |text: &str, wanted: fn(&Statement<'_>) -> bool| {
        with(text, |statement| assert!(wanted(&statement), "{text}: {statement:?}"));
    };
    for text in ["SELECT 1", "FROM t", "(SELECT 1)", "BEGIN", "\"SHOW\" x", ""] {
        is(text, |statement| matches!(statement, Statement::Query));
    }
    for text in
        ["INSERT INTO t VALUES (1)", "create or replace temp table t (a INT)", "DROP TABLE t"]
    {
        is(text, |statement| matches!(statement, Statement::Other));
    }
    for text in ["CREATE FUNCTION f", "create or replace aggregate f"] {
        is(text, |statement| matches!(statement, Statement::CreateFunction));
    }
    is("SHOW TABLES", |statement| matches!(statement, Statement::Show));
    is("show timer", |statement| matches!(statement, Statement::ShowOption(_)));
    is("drop function if exists F", |statement| {
        matches!(statement, Statement::DropFunction { function, if_exists: true }
            if function.text == "f")
    });
    is("attach 'a.wf'", |statement| {
        matches!(statement, Statement::Attach(attach) if attach.folder.text == "a.wf"
            && attach.name.is_none() && !attach.read_only && !attach.if_not_exists)
    });
    is("ATTACH DATABASE IF NOT EXISTS 'a.wf' AS B (READ_ONLY TRUE)", |statement| {
        matches!(statement, Statement::Attach(attach) if attach.read_only && attach.if_not_exists
            && attach.name.as_ref().is_some_and(|name| name.text == "b"))
    });
    is(
        "DETACH DATABASE IF EXISTS b",
        |statement| matches!(statement, Statement::Detach { database, if_exists: true } if database.text == "b"),
    );
    let folder = "expected a folder in single quotes, found the end of the statement";
    assert_eq!(refused("EXPORT DATABASE").0, folder);
}
