//! What options of `COPY … TO` say.

use super::*;

const ROWS: &str = "SELECT 1 AS a, 'x' AS b, CAST(NULL AS VARCHAR) AS c, '' AS d, 'q\"q' AS e, \
                    DATE '2024-01-31' AS f, TIMESTAMP '2024-01-31 10:15:00' AS g";

fn text_of(session: &Session, files: &Files, options: &str) -> Result<String> {
    let path = files.path("o.csv").display().to_string();
    done(session, &format!("COPY ({ROWS}) TO '{path}' ({options})"))?;
    Ok(std::fs::read_to_string(path).expect("a file of text"))
}

#[test]
fn csv_files_are_written_as_the_options_say() -> Result<()> {
    both(|session, files| {
        let rows = "1,x,,\"\",\"q\"\"q\",2024-01-31,2024-01-31 10:15:00\n";
        for (options, expected) in [
            ("HEADER false", rows.to_string()),
            (
                "FORCE_QUOTE *, HEADER false",
                "\"1\",\"x\",,\"\",\"q\"\"q\",\"2024-01-31\",\"2024-01-31 10:15:00\"\n".into(),
            ),
            ("FORCE_QUOTE (A, c)", format!("\"a\",b,\"c\",d,e,f,g\n\"1\"{}", &rows[1..])),
            ("QUOTE '', HEADER false", "1,x,,,q\"q,2024-01-31,2024-01-31 10:15:00\n".into()),
            (
                "QUOTE '''', ESCAPE '\\', HEADER false",
                "1,x,,'',q\"q,2024-01-31,2024-01-31 10:15:00\n".into(),
            ),
            (
                "ESCAPE '\\', HEADER false",
                "1,x,,\"\",\"q\\\"q\",2024-01-31,2024-01-31 10:15:00\n".into(),
            ),
            (
                "NULL 'x', HEADER false",
                "1,\"x\",x,\"\",\"q\"\"q\",2024-01-31,2024-01-31 10:15:00\n".into(),
            ),
            (
                "DATEFORMAT '%d.%m.%y %H', TIMESTAMPFORMAT '%-H:%M', HEADER false",
                "1,x,,\"\",\"q\"\"q\",31.01.24 00,10:15\n".into(),
            ),
            ("PREFIX '[', SUFFIX ']', HEADER false", format!("[{}]", rows.trim_end())),
            ("COMPRESSION none, DELIM '|', HEADER 0", rows.replace(',', "|")),
        ] {
            assert_eq!(text_of(session, files, options)?, expected, "{options}");
        }
        Ok(())
    })
}

#[test]
fn what_is_escaped_and_quoted_is_read_again() -> Result<()> {
    both(|session, files| {
        let texts = "SELECT * FROM (VALUES (1, 'a\"b'), (2, 'a\\'), (3, '\\\"\\'), (4, ''), (5, NULL), (6, 'x')) t(n, s)";
        let expected = run(session, texts)?;
        for options in
            ["ESCAPE '\\'", "FORCE_QUOTE *", "QUOTE '''', ESCAPE '\\'", "DELIM ';', NULL 'x'"]
        {
            let path = files.path("o.csv").display().to_string();
            done(session, &format!("COPY ({texts}) TO '{path}' ({options})"))?;
            let read: Vec<String> = options
                .split(", ")
                .filter(|option| !option.starts_with("FORCE"))
                .map(|option| option.replace(' ', " => ").replace("NULL", "nullstr"))
                .collect();
            let read: String = read.iter().map(|option| format!(", {option}")).collect();
            let found = run(session, &format!("FROM read_csv('{path}'{read})"))?;
            assert!(found.equals(&expected)?, "{options}: {found:?}");
        }
        Ok(())
    })
}

#[test]
fn text_is_compressed_by_the_files_name_or_the_option() -> Result<()> {
    both(|session, files| {
        let rows = "SELECT i, 'text ' || i AS s FROM range(0, 200000) t(i)";
        let expected = run(session, rows)?;
        for (name, options, magic) in [
            ("t.csv.gz", "", vec![0x1f, 0x8b]),
            ("t.csv.zst", "", vec![0x28, 0xb5, 0x2f, 0xfd]),
            ("t.ndjson.gz", "", vec![0x1f, 0x8b]),
            ("t.json.zst", "(ARRAY)", vec![0x28, 0xb5, 0x2f, 0xfd]),
            ("zipped.csv", "(COMPRESSION gzip)", vec![0x1f, 0x8b]),
            ("packed.json", "(COMPRESSION 'zstd')", vec![0x28, 0xb5, 0x2f, 0xfd]),
        ] {
            let path = files.path(name).display().to_string();
            done(session, &format!("COPY ({rows}) TO '{path}' {options}"))?;
            assert!(std::fs::read(&path).expect("a file").starts_with(&magic), "{name}");
            assert!(run(session, &format!("FROM '{path}'"))?.equals(&expected)?, "{name}");
            // Without rows, and without a header, it is a file of its codec, too.
            let none = format!("COPY (SELECT 1 AS i WHERE false) TO '{path}' {options}");
            done(session, &none)?;
            assert!(std::fs::read(&path).expect("a file").starts_with(&magic), "{name}");
        }
        let path = files.path("t.csv.bz2").display().to_string();
        assert!(
            refused(session, &format!("COPY ({rows}) TO '{path}'")).to_string().contains(".zst")
        );
        Ok(())
    })
}

#[test]
fn json_files_are_written_as_the_options_say() -> Result<()> {
    both(|session, files| {
        let path = files.path("o.json").display().to_string();
        let rows = "SELECT DATE '2024-01-31' AS d, [DATE '2024-02-01'] AS l, TIMESTAMP '2024-01-31 10:15:00' AS t";
        let formats = "DATEFORMAT '%d.%m.%Y', TIMESTAMPFORMAT '%H:%M', ARRAY";
        done(session, &format!("COPY ({rows}) TO '{path}' ({formats})"))?;
        let text = std::fs::read_to_string(&path).expect("a file");
        assert_eq!(text, "[\n{\"d\":\"31.01.2024\",\"l\":[\"01.02.2024\"],\"t\":\"10:15\"}\n]\n");
        Ok(())
    })
}

#[test]
fn parquet_files_are_written_as_the_options_say() -> Result<()> {
    both(|session, files| {
        let path = files.path("o.parquet").display().to_string();
        let options = "PARQUET_VERSION 'v2', COMPRESSION gzip, COMPRESSION_LEVEL 5, ROW_GROUP_SIZE 4, \
                       KV_METADATA {made_by: 'us', 'b c': 3}";
        done(session, &format!("COPY (SELECT i FROM range(0, 10) t(i)) TO '{path}' ({options})"))?;
        let one = |query: String| scalar(session, &query);
        let groups = format!("SELECT num_row_groups FROM parquet_file_metadata('{path}')");
        assert_eq!(one(groups), Cell::Int(3));
        let version = format!("SELECT format_version FROM parquet_file_metadata('{path}')");
        assert_eq!(one(version), Cell::Int(2));
        let codec = format!("SELECT DISTINCT compression FROM parquet_metadata('{path}')");
        assert_eq!(one(codec), Cell::Text("GZIP".into()));
        let note = |key: &str| {
            let key = format!("CAST(key AS VARCHAR) = '{key}'");
            format!("SELECT CAST(value AS VARCHAR) FROM parquet_kv_metadata('{path}') WHERE {key}")
        };
        assert_eq!(one(note("made_by")), Cell::Text("us".into()));
        assert_eq!(one(note("b c")), Cell::Text("3".into()));
        assert_eq!(one(format!("SELECT sum(i) FROM '{path}'")), Cell::Int(45));
        Ok(())
    })
}

#[test]
fn options_that_are_none_or_do_not_go_together_are_told() -> Result<()> {
    both(|session, files| {
        for (name, options, message) in [
            ("o.csv", "FOO 3", "known: header, delimiter, quote, escape, force_quote, null"),
            ("o.csv", "FOO 3", "overwrite, overwrite_or_ignore, append, filename_pattern"),
            ("o.csv", "COMPRESION gzip", "did you mean compression?"),
            ("o.csv", "ROW_GROUP_SIZE 3", "CSV has no option named \"row_group_size\""),
            ("o.json", "DELIM ','", "known: array, dateformat, timestampformat, compression"),
            ("o.parquet", "ARRAY", "known: compression, compression_level, row_group_size"),
            ("o.parquet", "PARQUET_VERSION V3", "one of V1, V2, not \"V3\""),
            ("o.parquet", "KV_METADATA 3", "keys and texts"),
            ("o.arrow", "HEADER", "known: compression"),
            ("o.csv", "COMPRESSION lzma", "one of auto, gzip, zstd, none, uncompressed"),
            ("o.csv", "FORCE_QUOTE (nobody)", "nobody"),
            ("o.csv", "DELIM '\"'", "the delimiter is the quote"),
            ("o.csv", "NULL 'a,b'", "the text of NULL"),
            ("o.csv", "DATEFORMAT '%q'", "%q"),
            ("o.csv", "APPEND", "append is of folders"),
            ("o.csv", "FILENAME_PATTERN 'x'", "filename_pattern is of folders"),
            ("o", "FORMAT csv, PARTITION_BY a, OVERWRITE, APPEND", "do not go together"),
            ("o", "FORMAT csv, PARTITION_BY a, PER_THREAD_OUTPUT", "do not go together"),
            ("o", "FORMAT csv, PARTITION_BY a, APPEND, FILENAME_PATTERN 'x'", "{uuid}"),
            (
                "o",
                "FORMAT csv, PARTITION_BY a, FILENAME_PATTERN '../x'",
                "no part of a file's name",
            ),
        ] {
            let path = files.path(name).display().to_string();
            let error = refused(session, &format!("COPY ({ROWS}) TO '{path}' ({options})"));
            assert!(error.to_string().contains(message), "{options}: {error}");
            assert!(!files.path(name).exists(), "{options}");
        }
        Ok(())
    })
}

/// The files below a folder, by their paths there.
fn files_in(folder: &std::path::Path) -> Vec<String> {
    let mut found = vec![];
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let below = path.strip_prefix(folder).expect("it lies below");
                    found.push(below.display().to_string());
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn folders_are_overwritten_or_filled_as_the_options_say() -> Result<()> {
    both(|session, files| {
        let folder = files.path("out");
        let copy = |rows: &str, options: &str| {
            let path = folder.display();
            format!("COPY ({rows}) TO '{path}' (FORMAT csv, PARTITION_BY k {options})")
        };
        let rows = "SELECT i % 2 AS k, i FROM range(0, 6) t(i)";
        let count = || scalar(session, &format!("SELECT count(*) FROM '{}'", folder.display()));
        done(session, &copy(rows, ""))?;
        assert_eq!(files_in(&folder), ["k=0/data.csv", "k=1/data.csv"]);
        let error = refused(session, &copy(rows, "")).to_string();
        assert!(error.contains("OVERWRITE_OR_IGNORE"), "{error}");
        done(session, &copy(rows, ", APPEND"))?;
        assert_eq!((files_in(&folder).len(), count()), (4, Cell::Int(12)));
        done(session, &copy(rows, ", APPEND, FILENAME_PATTERN 'part_{uuid}'"))?;
        assert_eq!(files_in(&folder).iter().filter(|name| name.contains("part_")).count(), 2);
        done(
            session,
            &copy(rows, ", OVERWRITE_OR_IGNORE, FILENAME_PATTERN 'x_{i}', FILE_EXTENSION 'dat'"),
        )?;
        assert!(files_in(&folder).contains(&"k=1/x_0.dat".to_string()));
        assert_eq!((files_in(&folder).len(), count()), (8, Cell::Int(18)));
        // From the folder into itself.
        let again = format!("SELECT k, i + 1 AS i FROM '{}'", folder.display());
        done(session, &copy(&again, ", OVERWRITE, FILENAME_PATTERN 'abc'"))?;
        assert_eq!(files_in(&folder), ["k=0/abc0.csv", "k=1/abc0.csv"]);
        assert_eq!(count(), Cell::Int(18));
        // What fails leaves all as it was.
        let failing =
            "SELECT i AS k, 1 / (i - 3) AS i FROM range(0, 6) t(i) WHERE i / (i - 3) > -9";
        refused(session, &copy(failing, ", OVERWRITE"));
        assert_eq!(files_in(&folder), ["k=0/abc0.csv", "k=1/abc0.csv"]);
        done(session, &copy(rows, ", OVERWRITE, WRITE_PARTITION_COLUMNS"))?;
        let text = std::fs::read_to_string(folder.join("k=1/data.csv")).expect("a file");
        assert_eq!(text, "k,i\n1,1\n1,3\n1,5\n");
        assert!(
            files.path("").read_dir().expect("a folder").count() == 1,
            "nothing is left behind"
        );
        Ok(())
    })
}

#[test]
fn per_thread_output_makes_a_folder_of_files() -> Result<()> {
    both(|session, files| {
        let folder = files.path("many");
        let path = folder.display();
        let rows = "SELECT i FROM range(0, 1200000) t(i)";
        done(session, &format!("COPY ({rows}) TO '{path}' (FORMAT parquet, PER_THREAD_OUTPUT)"))?;
        assert_eq!(files_in(&folder), ["data_0.parquet", "data_1.parquet"]);
        let sum = scalar(session, &format!("SELECT sum(i) FROM '{path}'"));
        assert_eq!(sum, Cell::Int(1_199_999 * 600_000));
        let none = format!(
            "COPY (SELECT 1 AS i WHERE false) TO '{path}' (FORMAT parquet, PER_THREAD_OUTPUT, OVERWRITE)"
        );
        done(session, &none)?;
        assert_eq!(files_in(&folder), ["data_0.parquet"]);
        assert_eq!(scalar(session, &format!("SELECT count(i) FROM '{path}'")), Cell::Int(0));
        Ok(())
    })
}
