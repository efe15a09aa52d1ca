//! What is said of bodies and statements that are wrong, and of values that do not fit.

use super::*;

#[test]
fn a_wrong_body_is_told_in_its_lines_and_the_session_goes_on() {
    let session = session(&[]);
    for (body, line, column, said) in [
        ("double y = x;\n    return y + z;", 2, 16, "z"),
        ("return x +;", 1, 11, ""),
        ("return \"text\";", 1, 0, ""),
        ("double y = x;", 1, 0, ""),
        ("if (x > 0) return 1;", 1, 0, ""),
        ("int x = 0; return x;", 1, 0, ""),
        ("return nothing(x);", 1, 8, "nothing"),
        ("return row;", 1, 8, "row"),
    ] {
        let function =
            ScalarFunction::new("f", [("x", DataType::Float64)], DataType::Float64, body);
        let error = session.register_function(function).expect_err(body);
        let ErrorKind::UserCode { function, line: found, column: at, message, text } = error.kind()
        else {
            panic!("{body}: {error}");
        };
        assert_eq!((function.as_str(), *found), ("f", line), "{error}");
        assert!(column == 0 || *at == column, "{at} instead of {column}: {error}");
        assert!(message.contains(said) && !message.is_empty(), "{error}");
        assert_eq!(Some(text.as_str()), body.lines().nth(line as usize - 1), "{error}");
        let shown = error.to_string();
        assert!(
            *at == 0
                || shown
                    .lines()
                    .last()
                    .is_some_and(|last| last.find('^') == Some(*at as usize + 1)),
            "{shown}"
        );
    }
    // In a statement the places are the statement's.
    let text = "CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE\nLANGUAGE CUDA AS $$ return z;\n$$";
    let error = refused(&session, text);
    assert_eq!(error.location(), Some((2, 28)), "{error}");
    let error = refused(&session, &text.replace("return z;", "\n  return z;"));
    assert_eq!(error.location(), Some((3, 10)), "{error}");
    assert!(session.function_names().is_empty());
    assert_eq!(scalar(&session, "SELECT 1 + 1"), Cell::Int(2));
}

#[test]
fn statements_say_what_is_wrong_with_them() {
    let session = session(&["CREATE FUNCTION one() RETURNS BIGINT LANGUAGE CUDA AS 'return 1;'"]);
    let of = |rest: &str| format!("CREATE FUNCTION f{rest}");
    for (text, at, said) in [
        (of(" RETURNS INT"), Some((1, 19)), "expected ( and the arguments"),
        (of("(x) RETURNS INT LANGUAGE CUDA AS ''"), Some((1, 20)), "expected a data type"),
        (of("(x INT) LANGUAGE CUDA AS ''"), Some((1, 26)), "expected RETURNS, found LANGUAGE"),
        (of("(x INT) RETURNS INT AS 'return 1;'"), Some((1, 52)), "expected LANGUAGE CUDA"),
        (of("(x INT) RETURNS INT LANGUAGE CUDA"), Some((1, 51)), "expected AS $$ body $$"),
        (of("(x INT) RETURNS INT LANGUAGE SQL AS '1'"), Some((1, 38)), "LANGUAGE CUDA is known"),
        (of("(x INT) RETURNS INT STRICT STRICT LANGUAGE CUDA AS ''"), Some((1, 45)), "said before"),
        (of("(x INT) RETURNS INT LANGUAGE CUDA AS 'return 1;' QUICKLY"), Some((1, 67)), "VOLATILE"),
        (of("(x NUMBR) RETURNS INT LANGUAGE CUDA AS ''"), Some((1, 21)), "NUMBR"),
        (
            "CREATE FUNCTION one() RETURNS BIGINT LANGUAGE CUDA AS 'return 2;'".into(),
            Some((1, 17)),
            "OR REPLACE",
        ),
        (
            "CREATE FUNCTION upper(s INT) RETURNS INT LANGUAGE CUDA AS 'return s;'".into(),
            Some((1, 17)),
            "engine's",
        ),
        (
            "CREATE FUNCTION sum(s INT) RETURNS INT LANGUAGE CUDA AS 'return s;'".into(),
            Some((1, 17)),
            "engine's",
        ),
        (
            of("(x INT, x INT) RETURNS INT LANGUAGE CUDA AS 'return x;'"),
            Some((1, 17)),
            "two arguments",
        ),
        (
            of("(\"x y\" INT) RETURNS INT LANGUAGE CUDA AS 'return 1;'"),
            Some((1, 17)),
            "no name of an argument",
        ),
        (
            of("(x INT) RETURNS VARCHAR LANGUAGE CUDA AS 'return 1;'"),
            Some((1, 17)),
            "yield no strings",
        ),
        (of("(x INT[]) RETURNS INT LANGUAGE CUDA AS 'return 1;'"), Some((1, 17)), "no such type"),
        (of("(int INT) RETURNS INT LANGUAGE CUDA AS 'return 1;'"), None, ""),
    ] {
        let error = refused(&session, &text);
        assert!(error.to_string().contains(said), "{text}: {error}");
        assert!(at.is_none() || error.location() == at, "{text}: {:?} {error}", error.location());
    }
    assert_eq!(session.function_names(), ["one"]);
    create(
        &session,
        "CREATE FUNCTION IF NOT EXISTS one() RETURNS BIGINT LANGUAGE CUDA AS 'return 2;'",
    );
    assert_eq!(scalar(&session, "SELECT one()"), Cell::Int(1));
    // Another function under the same name, for a text that was planned before.
    create(
        &session,
        "CREATE OR REPLACE FUNCTION one() RETURNS BIGINT LANGUAGE CUDA AS 'return 3;'",
    );
    assert_eq!(scalar(&session, "SELECT one()"), Cell::Int(3));
    let error = session.sql("SELECT one('a')").expect_err("it takes none");
    assert!(error.to_string().contains("one"), "{error}");
    session.deregister_function("one").expect("it is there");
    assert!(session.sql("SELECT one()").is_err() && session.deregister_function("upper").is_err());
    create(&session, "CREATE FUNCTION two() RETURNS INT LANGUAGE CUDA AS $$ return 2; $$");
    create(&session, "DROP FUNCTION two");
    create(&session, "DROP FUNCTION IF EXISTS two");
    assert!(session.execute("DROP FUNCTION two").is_err() && session.sql("SELECT two()").is_err());
    for text in [
        "CREATE OR REPLACE FUNCTION f() RETURNS INT LANGUAGE CUDA AS $$ return 1; $$",
        "DROP FUNCTION f",
    ] {
        let error = session.sql(text).expect_err("it is no query");
        assert!(
            matches!(error.kind(), ErrorKind::NotAQuery { executes: true, .. })
                && error.to_string().contains("Session::execute"),
            "{error}"
        );
    }
    let plain = builder().build().expect("the device opens");
    let error = plain
        .execute("CREATE FUNCTION one() RETURNS BIGINT LANGUAGE CUDA AS 'return 1;'")
        .unwrap_err();
    assert!(error.to_string().contains("user_code(true)"), "{error}");
}

#[test]
fn values_beyond_a_decimals_digits_and_a_day_are_errors() {
    let session = session(&[
        "CREATE FUNCTION wide(n BIGINT) RETURNS DECIMAL(5, 2) LANGUAGE CUDA AS 'return n;'",
        "CREATE FUNCTION clock(n BIGINT) RETURNS TIME LANGUAGE CUDA AS 'return n;'",
    ]);
    assert_eq!(
        scalar(&session, "SELECT CAST(wide(column1) AS VARCHAR) FROM (VALUES (99999))"),
        Cell::Text("999.99".into())
    );
    for query in
        ["SELECT wide(column1) FROM (VALUES (100000))", "SELECT clock(column1) FROM (VALUES (-1))"]
    {
        let error = run(&session, query).expect_err("it does not fit");
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error}");
    }
    // Where nobody asks, nothing fails.
    assert_eq!(
        scalar(
            &session,
            "SELECT CASE WHEN column1 < 5 THEN wide(column1) END FROM (VALUES (100000))"
        ),
        Cell::Null
    );
}

#[test]
fn a_division_by_zero_is_an_error_of_the_simulator() {
    if std::env::var("WARPFRAME_DEVICE").is_ok_and(|device| device.starts_with("cuda")) {
        return;
    }
    let session =
        session(&["CREATE FUNCTION share(n BIGINT, of BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$
             long long rest = n % of;
             return n / of + rest;
         $$"]);
    assert_eq!(scalar(&session, "SELECT share(column1, 4) FROM (VALUES (10))"), Cell::Int(4));
    let error = run(&session, "SELECT share(1, column1) FROM (VALUES (0))")
        .expect_err("nothing is divided by zero");
    let ErrorKind::UserCode { function, line: 2, column, message, text } = error.kind() else {
        panic!("{error}")
    };
    assert!(
        function == "share" && message.contains("divided by zero") && text.contains("n % of"),
        "{error}"
    );
    assert_eq!(text.chars().nth(*column as usize - 1), Some('%'), "{error}");
    assert_eq!(scalar(&session, "SELECT share(column1, 4) FROM (VALUES (10))"), Cell::Int(4));
}

#[test]
fn a_loop_without_an_end_is_an_error_of_the_simulator() {
    if std::env::var("WARPFRAME_DEVICE").is_ok_and(|device| device.starts_with("cuda")) {
        return;
    }
    let session = session(&["CREATE FUNCTION stuck(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$
             long long m = n;
             while (m < 10) if (m > 5) m--; else m++;
             return m;
         $$"]);
    assert_eq!(scalar(&session, "SELECT stuck(column1) FROM (VALUES (10))"), Cell::Int(10));
    let error =
        run(&session, "SELECT stuck(column1) FROM (VALUES (3))").expect_err("it does not end");
    let ErrorKind::UserCode { function, line: 3, message, text, .. } = error.kind() else {
        panic!("{error}")
    };
    assert!(
        function == "stuck" && message.contains("does not end") && text.contains("while"),
        "{error}"
    );
    assert_eq!(scalar(&session, "SELECT stuck(column1) FROM (VALUES (11))"), Cell::Int(11));
}
