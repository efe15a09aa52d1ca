//! Plans of queries in SQL: what their tables and settings become between one call and the next.

use warpframe::arrow::datatypes::DataType;

use super::*;
use crate::differential::data;

#[test]
fn sql_is_planned_once_and_follows_its_tables() -> Result<()> {
    let session = strict();
    let sql = "SELECT sum(x) FROM t WHERE x > 1";
    session.register_batches("t", [integers("x", 0..5)])?;
    let sum = |expected: i64, counts: (u64, u64), why: &str| {
        let (found, counted) = counted(&session, || run(&session, sql));
        assert_eq!(
            (Rows::of(&found).rows[0][0].clone(), counted),
            (Cell::Int(expected.into()), counts),
            "{why}"
        );
    };
    sum(9, MADE, "new");
    sum(9, FOUND, "again");
    session.register_batches("t", [integers("x", 0..50)])?;
    sum(1224, FOUND, "another table of the same schema");
    session.register_batches("t", [integers("x", -50..0)])?;
    let (found, counts) = counted(&session, || run(&session, sql));
    assert_eq!((Rows::of(&found).rows[0][0].clone(), counts), (Cell::Null, FOUND), "nothing left");

    let nullable = Int64Array::from(vec![Some(7), None]);
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let nullable =
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(nullable)]).expect("a column");
    session.register_batches("t", [nullable])?;
    sum(7, MADE, "nullable");
    session.register_batches("t", [batch(vec![("x", Arc::new(Int32Array::from(vec![2, 3])))])])?;
    sum(5, MADE, "another type");
    session.register_table("t", &session.from_arrow([integers("x", 0..4)])?)?;
    sum(5, FOUND, "a kept result with the first schema");

    session.deregister("t")?;
    let error = run(&session, sql).expect_err("it is gone");
    assert!(
        matches!(error.kind(), ErrorKind::TableNotFound { name, .. } if name == "t"),
        "{error:?}"
    );
    session.register_batches("t", [integers("y", 0..4)])?;
    let error = run(&session, sql).expect_err("another column");
    assert!(
        matches!(error.kind(), ErrorKind::ColumnNotFound { name, .. } if name == "x"),
        "{error:?}"
    );
    session.register_batches("t", [integers("x", 0..4)])?;
    sum(5, FOUND, "the first schema again");
    Ok(())
}

#[test]
fn tables_that_change_places_are_not_mistaken() -> Result<()> {
    let session = strict();
    let (a, b) = (integers("x", 0..10), integers("x", 5..30));
    session.register_batches("a", [a.clone()])?;
    session.register_batches("b", [b.clone()])?;
    let sql = "SELECT count(*) FROM a WHERE x NOT IN (SELECT x FROM b)";
    assert_eq!(scalar(&session, sql), Cell::Int(5));
    assert_eq!(
        scalar(&session, "SELECT count(*) FROM a JOIN a AS c ON a.x = c.x + 1"),
        Cell::Int(9)
    );
    session.register_batches("a", [b])?;
    session.register_batches("b", [a])?;
    let (found, counts) = counted(&session, || run(&session, sql));
    assert_eq!((Rows::of(&found).rows[0][0].clone(), counts), (Cell::Int(20), FOUND));
    // Two names of one table are one, of two tables two.
    let both = "SELECT count(*) FROM a JOIN b ON a.x = b.x";
    assert_eq!(scalar(&session, both), Cell::Int(5));
    let table = session.context();
    let provider = table.deregister_table("a").expect("a catalog").expect("registered");
    table.deregister_table("b").expect("a catalog");
    table.register_table("a", provider.clone()).expect("a catalog");
    table.register_table("b", provider).expect("a catalog");
    assert_eq!(scalar(&session, both), Cell::Int(25));
    Ok(())
}

#[test]
fn settings_that_change_are_heeded() -> Result<()> {
    let session = strict();
    let nulls = batch(vec![("x", Arc::new(Int64Array::from(vec![Some(1), None])))]);
    session.register_batches("t", [nulls.clone()])?;
    let sql = "SELECT x FROM t ORDER BY x LIMIT 1";
    assert_eq!(scalar(&session, sql), Cell::Int(1));
    assert_eq!(scalar(&session, sql), Cell::Int(1));
    let set = |order: &str| {
        let state = session.context().state_ref();
        let mut state = state.write();
        state
            .config_mut()
            .options_mut()
            .set("datafusion.sql_parser.default_null_ordering", order)
            .expect("a setting");
    };
    set("nulls_min");
    assert_eq!(scalar(&session, sql), Cell::Null);
    set("nulls_max");
    assert_eq!(scalar(&session, sql), Cell::Int(1));
    session.execute("SET join_order = off").expect("a setting");
    let (_, counts) = counted(&session, || run(&session, sql));
    assert_eq!(counts, FOUND, "the order of joins is no part of a plan");
    Ok(())
}

#[test]
fn whole_queries_are_found_and_answer_as_the_cpu() {
    let pair = Pair::new().samples();
    for query in ["q3", "q13", "q16", "q22"] {
        let sql = std::fs::read_to_string(data(&format!("queries/{query}.sql")))
            .expect("the query is there");
        for counts in [MADE, FOUND, FOUND] {
            let (_, counted) = counted(&pair.device, || Ok(pair.check(&sql)));
            assert_eq!(counted, counts, "{query}");
        }
    }
}

#[test]
fn deep_queries_are_found_on_a_small_stack() {
    let session = strict();
    session.register_batches("t", [integers("x", 0..10)]).expect("batches");
    for depth in [5, 12, 20] {
        // Limits keep the filters apart.
        let nested =
            |sql: String, level| format!("SELECT x FROM ({sql}) WHERE x + {level} > 3 LIMIT 100");
        let sql = (0..depth).fold("SELECT x FROM t".to_string(), nested);
        for _ in 0..3 {
            assert_eq!(
                run(&session, &sql).expect("a query that runs").num_rows(),
                6,
                "{depth} levels"
            );
        }
    }
}
