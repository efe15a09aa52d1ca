//! Files of JSON: lines, and members of an array.

use std::path::Path;

use super::*;

#[test]
fn json_files_are_read() {
    let (files, pair) = (Files::new(), Pair::new());
    let json = files.write(
        "t.ndjson",
        "{\"id\": 1, \"s\": \"x\", \"l\": [1, 2]}\n{\"id\": 2, \"f\": 0.5}\n\n{}\n",
    );
    files.write("many/1.json", "{\"a\": 1}\n");
    files.write("many/2.json", "{\"b\": \"x\"}\n{\"a\": 2}\n");
    let many = files.path("many").display().to_string();
    for (query, rows) in [
        (format!("SELECT id, s, f FROM '{json}'"), 3),
        (format!("SELECT sum(id), count(*), max(f) FROM '{json}' WHERE id > 0"), 1),
        (format!("SELECT l FROM '{json}'"), 3),
        (format!("SELECT * FROM '{many}'"), 3),
        (format!("SELECT count(*) FROM read_json('{json}') j JOIN '{many}' t ON t.a = j.id"), 1),
    ] {
        assert_eq!(agree(&pair, &query), rows, "{query}");
    }
    // Changed files are read anew.
    let sum = format!("SELECT sum(id) FROM '{json}'");
    assert_eq!(scalar(&pair.device, &sum), Cell::Int(3));
    files.write("t.ndjson", "{\"id\": 7, \"other\": true}\n");
    assert_eq!(scalar(&pair.device, &sum), Cell::Int(7));
    agree(&pair, &format!("SELECT * FROM '{json}'"));
    for (name, content) in [("bad.json", "{\"a\": 1}\n{\"a\": \n"), ("none.json", "{}\n")] {
        let path = files.write(name, content);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
    // Members of an array, over several lines; mixed with lines in one table; in folders.
    let array =
        files.write("t.json", " \n[\n  {\"id\": 1,\n \"s\": \"[]},{\"},\n {\"id\": 2}\n]\n");
    assert_eq!(agree(&pair, &format!("SELECT * FROM '{array}' WHERE id > 0")), 2);
    files.write("mixed/1.json", "[{\"a\": 1}, {\"a\": 2}]");
    files.write("mixed/2.json", "{\"a\": 3}\n");
    let mixed = files.path("mixed").display().to_string();
    assert_eq!(scalar(&pair.device, &format!("SELECT sum(a) FROM '{mixed}'")), Cell::Int(6));
    assert_eq!(agree(&pair, &format!("SELECT * FROM '{mixed}'")), 3);
    files.write("hive/k=1/x.json", "[{\"a\": 1}]");
    files.write("hive/k=2/x.json", "{\"a\": 2}\n{\"a\": 3}\n");
    let hive = files.path("hive").display().to_string();
    assert_eq!(agree(&pair, &format!("SELECT k, sum(a) FROM '{hive}' GROUP BY k")), 2);
    // Beyond ten megabytes, where files of lines are cut into ranges.
    let members: Vec<String> =
        (0..300_000).map(|i| format!("{{\"a\": {i}, \"b\": \"some text in it\"}}")).collect();
    let large = files.write("large.json", format!("[{}]", members.join(",")));
    for session in [&pair.device, &pair.cpu] {
        assert_eq!(
            scalar(session, &format!("SELECT count(*) FROM '{large}' WHERE a % 2 = 1")),
            Cell::Int(150_000)
        );
    }
    for (name, content) in
        [("cut.json", "[{\"a\": 1},"), ("cut2.json", "[{\"a\": 1}"), ("text.json", "[1, 2]")]
    {
        let path = files.write(name, content);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
    let error = refused(&pair.device, &format!("SELECT * FROM read_json('{json}', delim => ';')"));
    assert!(
        matches!(error.kind(), ErrorKind::Plan { message, .. } if message.contains("delim")),
        "{error}"
    );
}
