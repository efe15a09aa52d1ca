//! Forms that the parser lacks are written out with names that stand for something. What a user
//! types that looks like them means what it says, or is an error.

use warpframe::{Result, Session};

use crate::lifted::text;

fn session() -> Result<Session> {
    let session = Session::builder().device(warpframe::DeviceChoice::Cpu).build()?;
    session.execute("CREATE TABLE t AS FROM (VALUES (1, 2), (3, 4)) v(a, b)")?;
    session.execute("CREATE TABLE u AS FROM (VALUES (1, 5), (3, 6)) v(a, c)")?;
    Ok(session)
}

#[test]
fn names_that_stand_for_something_are_not_for_users_to_write() -> Result<()> {
    let session = session()?;
    for (sql, says) in [
        ("FROM t ASOF JOIN u MATCH_CONDITION ('POSITIONAL')", "write the comparison in ON"),
        ("FROM t ASOF JOIN u MATCH_CONDITION (\"POSITIONAL\")", "write the comparison in ON"),
        ("FROM t ASOF JOIN u MATCH_CONDITION ([positional])", "write the comparison in ON"),
        ("FROM t ASOF JOIN u MATCH_CONDITION ([positional join])", "Expected"),
        ("FROM t LIMIT [share of rows]('50')", "Expected"),
        ("FROM t ASOF JOIN u MATCH_CONDITION (NULL)", "write the comparison in ON"),
        (
            "FROM t ASOF JOIN u MATCH_CONDITION ('ASOF LEFT') ON t.a >= u.a",
            "write the comparison in ON",
        ),
        ("FROM t LIMIT \"share of rows\"('50')", "no function named \"share of rows\""),
        ("SELECT \"share of rows\"('50')", "no function named \"share of rows\""),
        ("SELECT coalesce(\"columns as arguments\"('a|b')) FROM t", "no function named"),
        ("FROM t UNPIVOT (v FOR n IN (\"all columns but\"(a)))", "no function named"),
        (
            "FROM t PIVOT (sum(b) FOR a IN (1, 3) DEFAULT ON NULL (\"pivot groups\"(a)))",
            "DEFAULT ON NULL",
        ),
    ] {
        let error = session.sql(sql).and_then(|frame| frame.collect()).expect_err(sql);
        assert!(error.to_string().contains(says), "{sql}: {error}");
    }
    let error = session.execute("INSERT INTO t (\"columns by name\") SELECT 1 AS a").unwrap_err();
    assert!(error.to_string().contains("is none of table"), "{error}");
    Ok(())
}

#[test]
fn parentheses_around_a_with_query_mean_nothing() -> Result<()> {
    let session = session()?;
    let drawn =
        |with: &str| text(&session, &format!("WITH c AS {with} SELECT a.r = b.r FROM c a, c b"));
    assert_eq!(drawn("((SELECT random() r))")?, "1");
    assert_eq!(drawn("NOT MATERIALIZED (SELECT random() r)")?, "0");
    Ok(())
}

#[test]
fn the_forms_themselves_mean_what_they_say() -> Result<()> {
    let session = session()?;
    for (sql, expected) in [
        ("FROM t POSITIONAL JOIN u", "1 2 1 5 | 3 4 3 6"),
        ("SELECT t.a, c FROM t ASOF LEFT JOIN u ON t.a > u.a", "1 - | 3 5"),
        ("FROM t LIMIT 50%", "1 2"),
        ("SELECT coalesce(*COLUMNS('a|b')) FROM t", "1 | 3"),
        ("UNPIVOT t ON * EXCLUDE (a) INTO NAME n VALUE v", "1 b 2 | 3 b 4"),
        ("PIVOT t ON a USING sum(b)", "2 4"),
    ] {
        assert_eq!(text(&session, sql)?, expected, "{sql}");
        // A view keeps its query as a text.
        session.execute(&format!("CREATE OR REPLACE VIEW form AS {sql}"))?;
        assert_eq!(text(&session, "FROM form")?, expected, "{sql}");
    }
    // An array of columns that have such words for names is one in a view, too.
    session.execute("CREATE VIEW array AS SELECT [share, of, rows][2] FROM (SELECT 1 AS share, 2 AS of, 3 AS rows)")?;
    assert_eq!(text(&session, "FROM array")?, "2");
    // An export keeps views as texts, too.
    session.execute("CREATE VIEW half AS FROM t LIMIT 50%")?;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("all");
    session.execute(&format!("EXPORT DATABASE '{}'", folder.display()))?;
    let again = Session::builder().device(warpframe::DeviceChoice::Cpu).build()?;
    again.execute(&format!("IMPORT DATABASE '{}'", folder.display()))?;
    assert_eq!(text(&again, "FROM half")?, "1 2");
    assert_eq!(text(&again, "FROM form")?, "2 4");
    Ok(())
}
