//! What binds tighter than what in SQL.

use warpframe::{DeviceChoice, Session};

use crate::differential::{Cell, Pair, Rows};
use crate::tables::Shape;

/// Each means the same with the parentheses, as PostgreSQL has it, and something else with others.
#[test]
fn operators_bind_as_in_postgresql() {
    let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a CPU session");
    let value = |sql: &str| {
        let frame = session.sql(&format!("SELECT {sql}")).and_then(|frame| frame.collect());
        Rows::of(&frame.unwrap_or_else(|error| panic!("{error}\n  {sql}"))).rows[0][0].clone()
    };
    for (sql, bound) in [
        ("true IS DISTINCT FROM true AND false", "(true IS DISTINCT FROM true) AND false"),
        ("true IS DISTINCT FROM false OR false", "(true IS DISTINCT FROM false) OR false"),
        ("false IS NOT DISTINCT FROM true OR true", "(false IS NOT DISTINCT FROM true) OR true"),
        (
            "NOT true IS DISTINCT FROM false AND false",
            "(NOT (true IS DISTINCT FROM false)) AND false",
        ),
        (
            "false AND true IS DISTINCT FROM true OR true",
            "(false AND (true IS DISTINCT FROM true)) OR true",
        ),
        ("1 IS DISTINCT FROM 1 IS NULL", "(1 IS DISTINCT FROM 1) IS NULL"),
        ("true IS DISTINCT FROM 1 = 2", "true IS DISTINCT FROM (1 = 2)"),
        ("false IS DISTINCT FROM 2 BETWEEN 1 AND 3", "false IS DISTINCT FROM (2 BETWEEN 1 AND 3)"),
        ("NULL IS DISTINCT FROM 1 + 1", "NULL IS DISTINCT FROM (1 + 1)"),
        ("false IS DISTINCT FROM NOT true", "false IS DISTINCT FROM (NOT true)"),
        ("1 + 2 || 'x'", "(1 + 2) || 'x'"),
        ("'x' || 1 + 2", "'x' || (1 + 2)"),
        ("'3' || '4' = '34'", "('3' || '4') = '34'"),
        ("false = 'a' LIKE 'b'", "false = ('a' LIKE 'b')"),
        ("'true' LIKE 't%' = true", "('true' LIKE 't%') = true"),
        ("false = 5 BETWEEN 1 AND 3", "false = (5 BETWEEN 1 AND 3)"),
        ("false = 5 IN (1, 2)", "false = (5 IN (1, 2))"),
        ("false = 5 NOT IN (1, 5)", "false = (5 NOT IN (1, 5))"),
        ("false = 'a' ~ 'b'", "false = ('a' ~ 'b')"),
        ("[1, 2] @> [1] = true", "([1, 2] @> [1]) = true"),
        ("4 | 1 & 1", "(4 | 1) & 1"),
        ("1 << 2 | 1", "(1 << 2) | 1"),
        ("1 | 2 + 4", "1 | (2 + 4)"),
        ("2 & 3 = 2", "(2 & 3) = 2"),
        ("NOT 1 = 2", "NOT (1 = 2)"),
        ("NOT 1 IN (2)", "NOT (1 IN (2))"),
        ("NOT NULL IS NULL", "NOT (NULL IS NULL)"),
        ("1 = 2 IS NULL", "(1 = 2) IS NULL"),
        ("1 IS NULL = false", "(1 IS NULL) = false"),
        ("-2 * 3", "(-2) * 3"),
        ("- 7 % 4", "(-7) % 4"),
        ("-'3'::int + 1", "(-('3'::int)) + 1"),
        ("2 + 3 * 4 - 1", "(2 + (3 * 4)) - 1"),
        ("7 - 2 - 1", "(7 - 2) - 1"),
        ("1 BETWEEN 0 AND 2 AND false", "(1 BETWEEN 0 AND 2) AND false"),
        ("NOT 1 BETWEEN 0 AND 2 OR true", "(NOT (1 BETWEEN 0 AND 2)) OR true"),
        ("2 BETWEEN 1 + 0 AND 1 + 1", "2 BETWEEN (1 + 0) AND (1 + 1)"),
        ("true OR true AND false", "true OR (true AND false)"),
        ("[1, 2, 3, 4][6 ^ 6:1 + 1]", "[1, 2, 3, 4][(6 ^ 6):(1 + 1)]"),
        ("[1, 2, 3, 4][1 | 2:5 & 4]", "[3, 4]"),
        ("[1, 2, 3, 4][length('ab' || 'c'):4:1 + 2]", "[3]"),
        ("[1, 2, 3, 4][5 ^ 7]", "2"),
        ("extract(hour FROM TIMESTAMP '2020-01-01T00:00:00' + INTERVAL '1 hour')", "1.0"),
    ] {
        assert_eq!(
            value(&format!("({sql}) IS NOT DISTINCT FROM ({bound})")),
            Cell::Int(1),
            "{sql}"
        );
    }
    let pair = Pair::of(Shape::random(200, 12).batches());
    let rows = pair.check("SELECT id FROM t WHERE k IS DISTINCT FROM k2 AND b");
    assert_eq!(rows, pair.check("SELECT id FROM t WHERE (k IS DISTINCT FROM k2) AND (b)"));
    assert!(rows > 0 && rows < 150);
}

/// When this fails, sqlparser has mended what `session/rules/dialect.rs` mends.
#[test]
fn sqlparser_still_takes_in_too_much() {
    use datafusion::sql::sqlparser::ast::Expr;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;
    let parsed = |sql: &str| {
        let parser = Parser::new(&GenericDialect {}).try_with_sql(sql);
        parser.and_then(|mut parser| parser.parse_expr()).expect("an expression")
    };
    assert!(matches!(parsed("a IS DISTINCT FROM b AND c"), Expr::IsDistinctFrom(..)));
    assert!(matches!(parsed("a LIKE b = c"), Expr::Like { .. }));
}
