//! Compressed files of text.

use std::io::Write;
use std::path::Path;

use super::*;

#[test]
fn compressed_files_are_read() {
    let (files, pair) = (Files::new(), Pair::new());
    let rows: String = (0..20_000).map(|i| format!("{i}\tname {}\n", i % 7)).collect();
    let text = format!("id\tname\n{rows}");
    let mut gzip = flate2::write::GzEncoder::new(vec![], Default::default());
    gzip.write_all(text.as_bytes()).expect("memory takes it");
    let gzip = gzip.finish().expect("memory takes it");
    let path = files.write("t.tsv.gz", &gzip);
    let query = format!("SELECT name, count(*), sum(id) FROM '{path}' GROUP BY name");
    assert_eq!(agree(&pair, &query), 7);
    let before = pair.device.take_host_reads();
    assert_eq!(before, Vec::<String>::new());
    for (name, content) in
        [("cut.csv.gz", &gzip[..gzip.len() / 2]), ("no.csv.zst", text.as_bytes())]
    {
        let path = files.write(name, content);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
}

/// JSON in each codec, of one stream and of two, which tools write that compress in parts.
#[test]
fn compressed_json_is_read() {
    let (files, pair) = (Files::new(), Pair::new());
    let lines =
        |from: usize| (from..from + 500).map(|i| format!("{{\"a\": {i}}}\n")).collect::<String>();
    let pack = |name: &str, text: &str| -> Vec<u8> {
        let mut packed = vec![];
        let done = match name {
            "gz" => flate2::write::GzEncoder::new(&mut packed, Default::default())
                .write_all(text.as_bytes()),
            "bz2" => bzip2::write::BzEncoder::new(&mut packed, Default::default())
                .write_all(text.as_bytes()),
            "xz" => liblzma::write::XzEncoder::new(&mut packed, 6).write_all(text.as_bytes()),
            _ => zstd::stream::copy_encode(text.as_bytes(), &mut packed, 3),
        };
        done.expect("memory takes it");
        packed
    };
    for codec in ["gz", "zst", "bz2", "xz"] {
        let two = [pack(codec, &lines(0)), pack(codec, &lines(500))].concat();
        let path = files.write(&format!("t.ndjson.{codec}"), two);
        let query = format!("SELECT count(*), sum(a) FROM '{path}'");
        assert_eq!(agree(&pair, &query), 1);
        assert_eq!(
            scalar(&pair.device, &format!("SELECT sum(a) FROM '{path}'")),
            Cell::Int(499_500),
            "{codec}"
        );
        let array = pack(codec, "[{\"a\": 1}, {\"a\": 2}]");
        let path = files.write(&format!("t.json.{codec}"), &array);
        assert_eq!(agree(&pair, &format!("SELECT * FROM '{path}'")), 2);
        let path = files.write(&format!("cut.json.{codec}"), &array[..array.len() / 2]);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
    let path = files.write("not.json.gz", "{}");
    assert!(
        refused(&pair.device, &format!("SELECT * FROM '{path}'"))
            .to_string()
            .contains("as gzip does")
    );
}
