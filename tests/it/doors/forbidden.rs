//! Sessions whose statements name no files.

use warpframe::Permission;

use super::*;

#[test]
fn statements_neither_read_nor_write_files_where_they_may_not() -> Result<()> {
    let files = Files::new();
    let prices = files.write("prices.csv", PRICES);
    let folder = files.path("out").display().to_string();
    let nobody = files.path("nobody.csv").display().to_string();
    let session =
        Session::builder().device(DeviceChoice::Sim).files(false).user_code(true).build()?;
    session.register_csv("prices", &prices)?;
    session.execute("CREATE VIEW dear AS FROM prices WHERE price > 2")?;
    session.execute("CREATE TABLE t (n BIGINT)")?;
    for statement in [
        format!("SELECT * FROM '{prices}'"),
        format!("FROM '{prices}'"),
        format!("SELECT * FROM '{nobody}'"),
        "SELECT * FROM 'nothing'".into(),
        format!("SELECT * FROM read_csv('{prices}')"),
        format!("SELECT * FROM read_csv(['{prices}', '{nobody}'], header => true)"),
        format!("SELECT * FROM READ_PARQUET('{nobody}')"),
        format!("SELECT * FROM read_json('{nobody}')"),
        format!("SELECT * FROM read_arrow('{nobody}')"),
        format!("SELECT * FROM parquet_metadata('{nobody}')"),
        format!("SELECT * FROM parquet_schema('{nobody}')"),
        format!("SELECT * FROM parquet_file_metadata('{nobody}')"),
        format!("SELECT * FROM parquet_kv_metadata('{nobody}')"),
        format!("SELECT * FROM sniff_csv('{prices}')"),
        format!("SELECT * FROM Glob('{prices}')"),
        format!("SELECT (SELECT content FROM read_text('{prices}')) FROM prices"),
        format!("CREATE VIEW v AS FROM read_blob('{prices}')"),
        format!("DESCRIBE SELECT * FROM glob('{folder}/*')"),
        format!("WITH a AS (FROM '{prices}') SELECT (SELECT count(*) FROM a) FROM prices"),
        format!("SELECT * FROM prices WHERE id IN (SELECT id FROM '{prices}')"),
        format!("INSERT INTO t SELECT id FROM '{prices}'"),
        format!("CREATE TABLE u AS FROM '{prices}'"),
        format!("CREATE VIEW v AS FROM '{prices}'"),
        format!("DELETE FROM t WHERE n IN (SELECT id FROM '{prices}')"),
        format!("UPDATE t SET n = (SELECT max(id) FROM '{prices}')"),
        format!("DESCRIBE '{prices}'"),
        format!("DESCRIBE SELECT * FROM '{prices}'"),
        format!("SUMMARIZE '{prices}'"),
        format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{prices}'"),
        format!("EXPORT DATABASE '{folder}'"),
        format!("IMPORT DATABASE '{folder}'"),
        "SET datafusion.catalog.location = '/tmp'".into(),
        "CREATE FUNCTION f() RETURNS BIGINT LANGUAGE CUDA AS '#include \"/etc/passwd\"'".into(),
    ] {
        let run = session.execute(&statement).and_then(|executed| match executed {
            warpframe::Executed::Rows(rows) => rows.collect().map(drop),
            _ => Ok(()),
        });
        let error = run.expect_err(&statement);
        let ErrorKind::Forbidden { needs: Permission::Files, .. } = error.kind() else {
            panic!("{statement}: {error:?}")
        };
        assert!(error.to_string().contains("SessionBuilder::files(false)"), "{statement}: {error}");
    }
    // Neither is of use to a prepared statement.
    let prepared = session.execute(&format!("PREPARE p AS SELECT * FROM '{prices}'"));
    assert!(prepared.and_then(|_| session.execute("EXECUTE p")).is_err());
    assert!(!files.path("out").exists());
    assert_eq!(
        scalar(&session, "SELECT count(*) FROM prices p JOIN dear d USING (id)"),
        Cell::Int(1)
    );
    // Methods are the program's own.
    let written = files.path("written.parquet");
    session.sql("FROM dear")?.collect()?.write_parquet(&written)?;
    assert_eq!(session.read_parquet(&written)?.num_rows(), 1);
    Ok(())
}
