use super::*;

/// The text of all blocks, where each begins, and the number of rows.
fn blocks(text: &str) -> Result<(String, Vec<u64>, usize)> {
    blocks_of(text, JsonLayout { null_is_object: true, ..JsonLayout::default() })
}

fn blocks_of(text: &str, layout: JsonLayout) -> Result<(String, Vec<u64>, usize)> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.json");
    std::fs::write(&path, text).expect("a file");
    let (mut all, mut lines, mut rows) = (String::new(), vec![], 0);
    for block in RowBlocks::open(&path, None, layout)? {
        let block = block?;
        all += std::str::from_utf8(&block.bytes).expect("it is cut between rows");
        lines.push(block.line);
        rows += block.rows;
    }
    Ok((all, lines, rows))
}

#[test]
fn rows_are_told_apart_however_they_stand() {
    for (text, rows, expected) in [
        ("", "", 0),
        (" \n", "", 0),
        ("{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}", 2),
        ("\u{feff}{\"a\":1}", "{\"a\":1}", 1),
        ("{\n \"a\": [1,\n {}]\n}{}", "{\n \"a\": [1,\n {}]\n}{}", 2),
        ("{\"a\":\"}{\\\"}\"} null\r\n", "{\"a\":\"}{\\\"}\"} {}  ", 2),
        ("[]", "", 0),
        (" [ ]\n", "", 0),
        ("[{\"a\":1},null,\n{}]\n", " {\"a\":1} {}   \n{}", 3),
    ] {
        assert_eq!(blocks(text).unwrap(), (rows.into(), vec![1; rows.len().min(1)], expected));
    }
    for (text, lines, rows) in [
        ("1\n-2.5e3 \"a b\\\"\"\ntrue null", false, 5),
        ("[1,\"x\",null,[2,3]]", false, 4),
        ("[1,2]\n[3]\n", true, 2),
        ("\"x", false, 0),
    ] {
        let found = blocks_of(text, JsonLayout { lines, ..JsonLayout::default() });
        assert_eq!(found.map_or(0, |(.., rows)| rows), rows, "{text}");
    }
}

#[test]
fn blocks_end_with_rows_and_know_their_lines() {
    let row = |number: usize| format!("{{\"a\": {number},\n \"b\": \"x\\\\\\\"{{\"}}\n");
    let text: String = (0..100_000).map(row).collect();
    let (all, lines, rows) = blocks(&text).unwrap();
    assert_eq!((all.trim_end(), rows), (text.trim_end(), 100_000));
    assert!(lines.len() > 3 && lines[1] > 2 && lines.is_sorted(), "{lines:?}");
}

#[test]
fn lines_that_are_no_json_become_blanks() {
    let layout = JsonLayout { line_by_line: true, null_is_object: true, lines: false };
    let bad = ["{\"a\":", "{\"a\":1}x", "}", "\"\\\"", "\0", "{\"a\":1},", "[1"];
    for pad in [1, 100_000] {
        let (mut text, mut expected) = (String::from("\u{feff}"), 0);
        for at in 0..pad {
            text += &format!("{{\"a\":{at}}} null\r\n\n{}\n", bad[at % bad.len()]);
            expected += 2;
        }
        text += "{}";
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.json");
        std::fs::write(&path, &text).expect("a file");
        let (mut rows, mut left_out, mut line) = (0, 0, 1);
        for block in RowBlocks::open(&path, None, layout).unwrap() {
            let block = block.unwrap();
            assert!(block.line == line && (block.line > 1 || block.begins_with_rows()));
            let (block, bad) = block.without_bad_lines();
            line += lines(&block.bytes);
            let mut cursor = Cursor::new(std::str::from_utf8(&block.bytes).unwrap());
            let mut found = 0;
            while cursor.peek() != 0 {
                assert!(cursor.value().unwrap().starts_with('{'));
                found += 1;
            }
            assert_eq!(found, block.rows);
            (rows, left_out) = (rows + found, left_out + bad);
        }
        assert_eq!((rows, left_out), (expected + 1, pad as u64));
    }
}

#[test]
fn what_is_no_row_is_an_error_with_its_line() {
    for (text, line) in [
        ("{\"a\":1}\n\n{\"a\":", 3),
        ("{\"a\":1},\n{}", 1),
        ("{}\n:\n", 2),
        ("{}\n\"x\n", 2),
        ("[{}\n{}]", 2),
        ("[{}\n,]", 2),
        ("[\n{},\n", 3),
        ("[{}]\n[{}]", 2),
        ("[1 2]", 1),
    ] {
        let error = blocks(text).map(|(all, ..)| all).unwrap_err().to_string();
        assert!(error.contains(&format!("line {line}: ")), "{text:?}: {error}");
    }
}
