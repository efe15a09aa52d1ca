//! Options of files: what they mean, and mistakes in them.

use std::path::Path;

use super::*;

#[test]
fn options_have_their_meanings() {
    let (files, pair) = (Files::new(), Pair::new());
    let text = "made today\n# a comment\nWert;'Name';Tag\n1.234,5;'a;b';01.02.2024\nNA;-;02.02.2024\n7;c\n";
    let german = files.write("german.dat", text);
    let query = format!(
        "SELECT \"Wert\", \"Name\", \"Tag\" FROM read_csv('{german}', delim => ';', quote => '''', skip => 1, \
         comment => '#', header => true, nullstr => ['NA', '-'], decimal_separator => ',', thousands => '.', \
         dateformat => '%d.%m.%Y', null_padding => true, sample_size => -1) ORDER BY 1"
    );
    agree(&pair, &query);
    let rows = Rows::of(&run(&pair.device, &query).expect("it runs"));
    let text = |text: &str| Cell::Text(text.into());
    let float = |value: f64| Cell::Float(value);
    assert_eq!(rows.rows[0][..2], [float(7.0), text("c")]);
    assert_eq!(rows.rows[1][..2], [float(1234.5), text("a;b")]);
    assert_eq!(rows.rows[2][..2], [Cell::Null, Cell::Null]);
    assert_eq!(rows.rows[0][2], Cell::Null);

    let plain = files.write("plain.csv", "1,x,007\n2,y,8\n");
    let latin = files.write("latin.csv", b"a\ncaf\xe9\n");
    let ragged = files.write("ragged.csv", "a,b\n1,2\n3\n");
    for (query, expected) in [
        (format!("SELECT sum(a) FROM read_csv('{plain}', names => ['a', 'b', 'c'])"), Cell::Int(3)),
        (
            format!(
                "SELECT max(column_3) FROM read_csv('{plain}', all_varchar => true, header => false)"
            ),
            text("8"),
        ),
        (
            format!(
                "SELECT min(c) FROM read_csv('{plain}', columns => {{'a': 'INT', 'b': 'TEXT', 'c': 'VARCHAR'}}, header => false)"
            ),
            text("007"),
        ),
        (
            format!(
                "SELECT min(column_3) FROM read_csv('{plain}', types => 'column_3 VARCHAR', header => false)"
            ),
            text("007"),
        ),
        (format!("SELECT a FROM read_csv('{latin}', encoding => 'latin-1')"), text("café")),
        (format!("SELECT count(*) FROM read_csv('{ragged}', ragged => 'skip')"), Cell::Int(1)),
        (
            format!("SELECT count(*) - count(b) FROM read_csv('{ragged}', ragged => 'fill')"),
            Cell::Int(1),
        ),
    ] {
        agree(&pair, &query);
        assert_eq!(scalar(&pair.device, &query), expected, "{query}");
    }
}

#[test]
fn mistakes_are_told_at_their_places() {
    let (files, session) = (Files::new(), builder().build().expect("the device opens"));
    let prices = files.write("prices.csv", PRICES);
    let odd = files.write("odd.dat", PRICES);
    let at = |query: &str, part: &str| {
        Some((1, query.find(part).expect("it is in the query") as u64 + 1))
    };
    for (query, part, expected) in [
        (
            format!("SELECT * FROM read_csv('{prices}', delimm => ';')"),
            "delimm",
            "did you mean delim?",
        ),
        (
            format!("SELECT * FROM read_csv('{prices}', colour => ';')"),
            "colour",
            "known: delim, header",
        ),
        (format!("SELECT * FROM read_csv('{prices}', skip => 'x')"), "skip", "takes a number"),
        (format!("SELECT * FROM read_csv('{prices}', skip => 1 + 1)"), "skip", "takes a literal"),
        (
            format!("SELECT * FROM read_csv('{prices}', types => {{'id': 'NUMBR'}})"),
            "types",
            "NUMBR",
        ),
        (
            format!("SELECT * FROM read_csv('{prices}', ';')"),
            "';'",
            "expected an option as name => value",
        ),
        ("SELECT * FROM read_csv()".into(), "read_csv", "expected a file's path"),
        ("SELECT * FROM read_csv(7)".into(), "7", "or a list of them ['…', '…'], first; found 7"),
        (
            "SELECT * FROM read_json(['a.json', 7])".into(),
            "'a.json'",
            "read_json: expected a file's path",
        ),
        (
            "SELECT * FROM read_parquet([])".into(),
            "read_parquet",
            "read_parquet: the list of files is empty",
        ),
        (
            "SELECT * FROM read_arrow(path => 'a')".into(),
            "path",
            "read_arrow: expected a file's path",
        ),
        (
            format!("SELECT * FROM read_parquet('{prices}', delim => ';')"),
            "delim",
            "coerce_int96_timestamp_unit",
        ),
        (format!("SELECT * FROM '{odd}'"), &format!("'{odd}'"), "read_csv('…')"),
    ] {
        let error = refused(&session, &query);
        assert!(
            matches!(error.kind(), ErrorKind::Plan { message, .. } if message.contains(expected)),
            "{error}"
        );
        assert_eq!(error.location(), at(&query, part), "{query}");
    }
    let query = format!("SELECT * FROM read_csv(['{prices}', 'nowhere/t.csv'])");
    let error = refused(&session, &query);
    assert!(
        matches!(error.kind(), ErrorKind::Io { path, .. } if path == Path::new("nowhere/t.csv")),
        "{error}"
    );
    let absent = "SELECT * FROM 'nowhere/t.csv'";
    let error = refused(&session, absent);
    assert!(
        matches!(error.kind(), ErrorKind::Io { path, .. } if path == Path::new("nowhere/t.csv")),
        "{error}"
    );
    assert_eq!(error.location(), at(absent, "'nowhere"));
    let error = refused(
        &session,
        &format!("SELECT * FROM read_csv('{prices}', types => {{'nobody': 'INT'}})"),
    );
    assert!(
        matches!(error.kind(), ErrorKind::ColumnNotFound { name, .. } if name == "nobody"),
        "{error}"
    );
    let error = refused(&session, "SELECT * FROM 'nobody'");
    assert!(
        matches!(error.kind(), ErrorKind::TableNotFound { name, .. } if name == "nobody"),
        "{error}"
    );
    // A table of this name is that table.
    session.register_csv("a.csv", &prices).expect("it is a CSV file");
    assert_eq!(scalar(&session, "SELECT count(*) FROM 'a.csv'"), Cell::Int(3));
}
