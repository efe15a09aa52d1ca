//! Statements that are nested deep, and statements whose planning takes long.

use std::time::{Duration, Instant};

use warpframe::{ErrorKind, Session};

use crate::differential::{Cell, Pair, run, scalar};

fn both(check: impl Fn(&Session)) {
    let pair = Pair::new();
    for session in [&pair.device, &pair.cpu] {
        let made = "CREATE TABLE t AS SELECT i, i AS k FROM range(0, 6) t(i)";
        session.execute(made).expect("a table");
        check(session);
    }
}

fn counts(session: &Session, condition: &str, expected: i128) {
    let sql = format!("SELECT count(*) FROM t WHERE {condition}");
    assert_eq!(scalar(session, &sql), Cell::Int(expected), "{sql}");
}

/// An expression so many times within another.
fn nested(depth: usize, inner: &str, around: impl Fn(usize, String) -> String) -> String {
    (0..depth).fold(inner.into(), |inner, at| around(at, inner))
}

#[test]
fn conditions_may_be_nested_deep() {
    both(|session| {
        counts(session, &nested(40, "k > 0", |_, inner| format!("NOT ({inner})")), 5);
        counts(session, &nested(101, "k > 0", |_, inner| format!("NOT ({inner})")), 1);
        counts(
            session,
            &nested(60, "k > 0", |at, inner| format!("(({inner}) AND (i < {}))", at + 4)),
            3,
        );
        counts(
            session,
            &nested(24, "k > 4", |at, inner| format!("(i > {} OR (NOT ({inner})))", at + 9)),
            1,
        );
        counts(session, &format!("{}k{} > 0", "(".repeat(150), ")".repeat(150)), 5);
        counts(
            session,
            &format!("{} = 2", nested(60, "k - 2", |_, inner| format!("abs({inner})"))),
            2,
        );
    });
}

/// Nor is a statement with a fault in its midst read over and over.
#[test]
fn faults_within_nested_words_are_told_at_once() {
    both(|session| {
        let start = Instant::now();
        for around in ["NOT (", "CASE WHEN ", "CAST("] {
            let sql = format!("SELECT 1 FROM t WHERE {}k > > 0", around.repeat(40));
            let error = run(session, &sql).expect_err("a fault");
            assert!(matches!(error.kind(), ErrorKind::Parse { .. }), "{error:?}");
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    });
}

#[test]
fn parentheses_without_end_are_an_error() {
    both(|session| {
        let sql = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
        let error = run(session, &sql).expect_err("too deep");
        assert!(error.to_string().contains("nested too deeply"), "{error}");
    });
}

/// By the power of two, 24 levels would take hours.
#[test]
fn a_case_in_its_own_condition_takes_linear_time() {
    both(|session| {
        let start = Instant::now();
        let case =
            |at, inner| format!("CASE WHEN {inner} THEN i > {} ELSE i < {} END", at % 5, at % 3);
        let condition = nested(24, "k > 0", case);
        let mut expected = 0;
        for i in 0..6 {
            let holds =
                (0..24).fold(i > 0, |inner, at| if inner { i > at % 5 } else { i < at % 3 });
            expected += i128::from(holds);
        }
        counts(session, &condition, expected);
        let number = |_, inner| format!("CASE WHEN {inner} = 1 THEN 2 ELSE 1 END");
        counts(session, &format!("{} = 2", nested(24, "k", number)), 5);
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    });
}

#[test]
fn many_unions_are_planned_one_by_one() {
    both(|session| {
        let selects: Vec<String> = (0..600).map(|at| format!("SELECT {at} AS a")).collect();
        let start = Instant::now();
        let found = run(session, &selects.join(" UNION ALL ")).expect("rows");
        let expected: Vec<i64> = (0..600).collect();
        assert_eq!(found.column("a").unwrap().to_vec::<i64>().unwrap(), expected);
        assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
    });
}

/// Each reads the one before twice.
fn doubling(queries: usize) -> String {
    let next =
        |at: usize| format!("c{at} AS (SELECT a.i FROM c{0} a JOIN c{0} b ON a.i = b.i)", at - 1);
    let queries: Vec<String> = (1..=queries).map(next).collect();
    format!(
        "WITH c0 AS (SELECT i FROM t), {} SELECT count(*) FROM c{}",
        queries.join(", "),
        queries.len()
    )
}

#[test]
fn planning_obeys_the_timeout_and_interrupts() {
    both(|session| {
        assert_eq!(scalar(session, &doubling(3)), Cell::Int(6));
        let sum = format!("SELECT {} AS a FROM t", vec!["i"; 1990].join(" + "));
        for sql in [doubling(17), sum] {
            session.set_statement_timeout(Some(Duration::from_millis(500)));
            let start = Instant::now();
            let error = run(session, &sql).expect_err("it takes longer");
            assert!(
                matches!(error.kind(), ErrorKind::Interrupted { timeout: Some(_) }),
                "{error:?}"
            );
            assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
            session.set_statement_timeout(None);
        }
        let start = Instant::now();
        let error = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(session, &doubling(17)));
            while !running.is_finished() {
                std::thread::sleep(Duration::from_millis(100));
                session.interrupt();
            }
            running.join().expect("no panic").expect_err("it was stopped")
        });
        assert!(matches!(error.kind(), ErrorKind::Interrupted { timeout: None }), "{error:?}");
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
        assert_eq!(scalar(session, "SELECT count(*) FROM t"), Cell::Int(6));
    });
}

/// When this fails, DataFusion has mended what `session/rules/guards/seal.rs` keeps it from.
#[test]
fn datafusion_still_doubles_the_conditions_of_a_case() {
    use datafusion::prelude::SessionContext;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let length = |depth: usize| {
        let case = nested(depth, "x > 0", |at, inner| {
            format!("CASE WHEN {inner} THEN x > {at} ELSE x < {at} END")
        });
        let sql = format!("SELECT * FROM (VALUES (1), (2)) t(x) WHERE {case}");
        let plan = runtime
            .block_on(async { SessionContext::new().sql(&sql).await?.into_optimized_plan() });
        plan.expect("a plan").display_indent().to_string().len()
    };
    assert!(length(9) > 2 * length(5), "{} of {}", length(9), length(5));
}
