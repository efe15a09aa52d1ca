//! Footers and pages that cannot be.

use datafusion::parquet::basic::Encoding;

use super::*;

#[test]
fn footers_that_cannot_be_are_errors() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let session = builder().build().expect("the device opens");
    let mut long = b"PAR1".to_vec();
    long.extend_from_slice(&[0x15; 400]);
    long.extend_from_slice(&0x7FFF_FFFFu32.to_le_bytes());
    long.extend_from_slice(b"PAR1");
    // Groups within groups, each of one child, without end.
    let mut deep = b"PAR1".to_vec();
    let footer = {
        let mut bytes = vec![0x15, 0x02, 0x19, 0xFC];
        let count = 200_000u32;
        let (mut left, mut size) = (count, vec![]);
        while left >= 0x80 {
            size.push(left as u8 | 0x80);
            left >>= 7;
        }
        size.push(left as u8);
        bytes.extend_from_slice(&size);
        for _ in 0..count {
            // Repetition, name, one child.
            bytes.extend_from_slice(&[0x35, 0x00, 0x18, 1, b'a', 0x15, 0x02, 0x00]);
        }
        bytes.extend_from_slice(&[0x16, 0x00, 0x19, 0x0C, 0x00]);
        bytes
    };
    deep.extend_from_slice(&footer);
    deep.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    deep.extend_from_slice(b"PAR1");
    // A list of two thousand million row groups.
    let mut wide = b"PAR1".to_vec();
    let groups = [
        0x15, 0x02, 0x19, 0x1C, 0x48, 1, b'm', 0x15, 0x00, 0x00, 0x16, 0x00, 0x19, 0xFC, 0xFF,
        0xFF, 0xFF, 0xFF, 0x07,
    ];
    wide.extend_from_slice(&groups);
    wide.extend_from_slice(&(groups.len() as u32).to_le_bytes());
    wide.extend_from_slice(b"PAR1");
    for (content, words) in [
        (b"PAR1PAR1".to_vec(), "longer than the file"),
        (long, "longer than the file"),
        (deep, "deeper than"),
        (wide, "2147483647 elements"),
    ] {
        std::fs::write(&path, &content).expect("the file can be written");
        let error = session.register_parquet("t", &path).expect_err(words);
        let ErrorKind::File { path: file, message } = error.kind() else { panic!("{error:?}") };
        assert!(*file == path && message.contains(words), "{error}");
    }
    assert_eq!(scalar(&session, "SELECT 1"), Cell::Int(1));
}

/// As many bytes as a page claims to have, or values, are not asked for: the process would end.
#[test]
fn pages_that_claim_too_much_are_errors() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let column = "required binary s (STRING);";
    let values = || vec![vec![Values::Bytes(vec![b"one", b"two", b"three"])]];
    let delta =
        |encoding| plain().set_dictionary_enabled(false).set_column_encoding("s".into(), encoding);
    for (properties, version) in [
        (delta(Encoding::DELTA_LENGTH_BYTE_ARRAY), 1),
        (delta(Encoding::DELTA_BYTE_ARRAY), 1),
        (plain(), 0),
    ] {
        write(&path, column, &values(), properties);
        let mut bytes = std::fs::read(&path).expect("it was written");
        match version {
            // The count of a DELTA header, of one block of 128 values in four parts: 80 01 04 03.
            1 => {
                let at = bytes
                    .windows(4)
                    .position(|w| w == [0x80, 0x01, 0x04, 0x03])
                    .expect("the head of deltas");
                // Room for more digits of the count is taken from the first value and what follows,
                // which says nothing then.
                bytes[at + 3..at + 8].copy_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 0x7F]);
            }
            // Of a dictionary page's header: field 7, a struct, its field 1, three values; then two
            // digits more of them.
            _ => {
                let at = bytes
                    .windows(4)
                    .position(|w| w == [0x4C, 0x15, 0x06, 0x15])
                    .expect("a dictionary's header");
                bytes[at + 2] = 0x7E;
            }
        }
        std::fs::write(&path, &bytes).expect("the file can be written");
        for session in both(&path) {
            blames(&session, "SELECT s FROM t", &path, &["\"s\"", "damaged"]);
            assert_eq!(scalar(&session, "SELECT 1"), Cell::Int(1));
        }
    }
}
