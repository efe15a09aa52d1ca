//! Strings, codes, bytes of fixed and varying length, UTF-8.

use parquet::basic::Encoding as Written;
use parquet::data_type::*;

use super::file::{File, Settings};
use super::numbers::{NULLS, NullPattern, with_nulls};
use super::*;

pub(super) const VIEWS: PageOutput = PageOutput::Views { utf8: true };

pub(super) fn written(values: &[Option<String>], optional: bool, settings: Settings) -> File {
    let values: Vec<_> =
        values.iter().map(|value| value.as_ref().map(|text| text.as_str().into())).collect();
    File::written::<ByteArrayType>("BYTE_ARRAY", &values, optional, settings)
}

pub(super) fn check(
    what: &str,
    values: &[Option<String>],
    optional: bool,
    settings: Settings,
    output: PageOutput,
) {
    let file = written(values, optional, settings);
    let expected: Vec<_> =
        values.iter().map(|value| value.as_ref().map(|text| text.as_bytes().to_vec())).collect();
    assert_decodes(&format!("{what} {settings:?}"), &file, output, &expected);
}

/// Texts of a kind: lengths, alphabets.
pub(super) fn texts(kind: &str, rows: usize) -> Vec<String> {
    let text = |(row, x): (usize, u64)| {
        let letters = |length: u64| {
            (0..length).map(|i| (b'a' + ((x >> (i % 50)) % 26) as u8) as char).collect()
        };
        match kind {
            "comments" => letters(10 + x % 34),
            "flags" => ["A", "N", "R"][(x % 3) as usize].to_string(),
            "empty" => String::new(),
            "mostly empty" => letters(if x.is_multiple_of(9) { 20 } else { 0 }),
            "zeros" => "\0".repeat((x % 9) as usize),
            "inline and not" => letters(x % 17),
            "long" => letters(if row % 50 == 3 { 40_000 } else { 100 + x % 200 }),
            "umlauts" => {
                ["ä", "Öl", "naïve café crème brûlée", "日本語のテキスト", "🦀🦀🦀🦀", "plain"]
                    [(x % 6) as usize]
                    .repeat(1 + (x >> 30) as usize % 3)
            }
            "numbers" => {
                String::from_utf8((0..x % 12).map(|i| (x >> (8 * (i % 8))) as u8 & 7).collect())
                    .unwrap()
            }
            other => panic!("{other}"),
        }
    };
    random(kind.len() as u64, rows).enumerate().map(text).collect()
}

pub(super) const KINDS: [&str; 9] = [
    "comments",
    "flags",
    "empty",
    "mostly empty",
    "zeros",
    "inline and not",
    "long",
    "umlauts",
    "numbers",
];

#[test]
fn plain_strings_become_views() {
    for kind in KINDS {
        let rows = if kind == "long" { 700 } else { 5000 };
        let values: Vec<_> = texts(kind, rows).into_iter().map(Some).collect();
        check(kind, &values, false, Settings::of(Some(Written::PLAIN)), VIEWS);
    }
    for rows in [1, 2, 31, 32, 33] {
        let values: Vec<_> = texts("comments", rows).into_iter().map(Some).collect();
        check("few", &values, false, Settings::of(Some(Written::PLAIN)), VIEWS);
    }
}

#[test]
fn plain_strings_have_nulls_and_pages_of_both_versions() {
    for settings in Settings::all(Some(Written::PLAIN)) {
        for nulls in NULLS {
            let values = with_nulls(nulls, texts("inline and not", 3000).into_iter());
            check("nulls", &values, true, settings, VIEWS);
        }
    }
}

#[test]
fn a_string_may_be_larger_than_many_windows() {
    let mut values: Vec<_> = texts("comments", 50).into_iter().map(Some).collect();
    values.insert(20, Some("x".repeat(300_000)));
    values.insert(40, Some("é".repeat(70_000)));
    check("long ones", &values, false, Settings::of(Some(Written::PLAIN)), VIEWS);
}

#[test]
fn strings_of_dictionaries_become_views_or_codes() {
    for output in [VIEWS, PageOutput::Codes { base: 0 }] {
        for kind in ["flags", "umlauts", "inline and not", "empty"] {
            let values: Vec<_> = texts(kind, 5000).into_iter().map(Some).collect();
            check(kind, &values, false, Settings::of(None), output);
        }
        for settings in Settings::all(None) {
            for nulls in NULLS {
                let values = with_nulls(nulls, texts("flags", 3000).into_iter());
                check("nulls", &values, true, settings, output);
            }
        }
    }
}

#[test]
fn bytes_of_fixed_length_become_views() {
    for length in [1, 4, 12, 13, 16, 33] {
        let kind = format!("FIXED_LEN_BYTE_ARRAY({length})");
        let bytes = |x: u64| (0..length).map(|i| (x >> (i % 57)) as u8).collect::<Vec<u8>>();
        let values = with_nulls(NullPattern::Some, random(length as u64, 3000).map(bytes));
        let written: Vec<_> = values
            .iter()
            .map(|v| v.as_ref().map(|v| FixedLenByteArray::from(ByteArray::from(v.clone()))))
            .collect();
        for encoding in [None, Some(Written::PLAIN)] {
            let file = File::written::<FixedLenByteArrayType>(
                &kind,
                &written,
                true,
                Settings::of(encoding),
            );
            assert_decodes(&kind, &file, PageOutput::Views { utf8: false }, &values);
        }
    }
}

#[test]
fn decimals_are_read_from_bytes_of_varying_length() {
    let bytes = |x: u64| {
        let value = (x as i64 >> (x % 60)) as i128;
        let all = value.to_be_bytes();
        let kept = 1 + (x % 3) as usize + (128 - value.unsigned_abs().leading_zeros() as usize) / 8;
        all[16 - kept..].to_vec()
    };
    let read = |bytes: &Vec<u8>| {
        let mut all = [if bytes[0] & 128 != 0 { 255 } else { 0 }; 16];
        all[16 - bytes.len()..].copy_from_slice(bytes);
        i128::from_be_bytes(all)
    };
    for nulls in NULLS {
        let values = with_nulls(nulls, random(4, 3000).map(bytes));
        let written: Vec<_> = values.iter().map(|v| v.clone().map(ByteArray::from)).collect();
        for encoding in [None, Some(Written::PLAIN)] {
            let file = File::written::<ByteArrayType>(
                "BYTE_ARRAY",
                &written,
                true,
                Settings::of(encoding),
            );
            let wide: Vec<_> =
                values.iter().map(|v| v.as_ref().map(|v| read(v).to_le_bytes().to_vec())).collect();
            assert_decodes(
                "wide",
                &file,
                PageOutput::Decimal { width: 16, bound: None, factor: 1 },
                &wide,
            );
            let narrow: Vec<_> = values
                .iter()
                .map(|v| v.as_ref().map(|v| (read(v) as i64).to_le_bytes().to_vec()))
                .collect();
            assert_decodes(
                "narrow",
                &file,
                PageOutput::Decimal { width: 8, bound: None, factor: 1 },
                &narrow,
            );
        }
    }
}

/// A page of PLAIN strings.
pub(super) fn plain(strings: &[&[u8]]) -> Vec<u8> {
    strings.iter().flat_map(|s| [&(s.len() as u32).to_le_bytes()[..], s].concat()).collect()
}

#[test]
fn strings_that_are_no_utf8_are_damage_and_bytes_are_not() {
    let long = [b'x'; 300];
    let wrong: [&[u8]; 14] = [
        &[0x80],
        &[0xc3],
        &[0xc0, 0x80],
        &[0xc1, 0xbf],
        &[0xe0, 0x80, 0x80],
        &[0xed, 0xa0, 0x80],
        &[0xf0, 0x80, 0x80, 0x80],
        &[0xf4, 0x90, 0x80, 0x80],
        &[0xf5, 0x80, 0x80, 0x80],
        &[0xe2, 0x82],
        b"a string of many bytes and a \xff",
        b"\xe2\x82 in the middle of it",
        &[0xff],
        b"abc\xf0\x9f\xa6",
    ];
    for device in [device(0), device(7)].into_iter().chain(gpu()) {
        let fault = |strings: &[&[u8]], utf8| {
            let rows = strings.len() as u32;
            let file =
                File::by_hand(Physical::ByteArray, PageEncoding::Plain, rows, plain(strings));
            decode_all(&device, &[TestChunk { file: &file, output: PageOutput::Views { utf8 } }])
                .err()
        };
        for wrong in wrong {
            assert!(std::str::from_utf8(wrong).is_err());
            assert_eq!(fault(&[b"good", wrong, b"good"], true), Some((0, 37)), "{wrong:x?}");
            assert_eq!(fault(&[b"good", wrong, b"good"], false), None, "{wrong:x?}");
            for before in [0, 1, 2, 3, 61, 62, 63, 64, 255, 256] {
                let long = [&long[..before], wrong, &long].concat();
                assert_eq!(
                    fault(&[b"good", &long, b"good"], true),
                    Some((0, 37)),
                    "{wrong:x?} behind {before}"
                );
            }
        }
        // Characters of which one half stands in each string.
        assert_eq!(fault(&["é".as_bytes(), &[0xc3], &[0xa9]], true), Some((0, 37)));
        for right in ["", "é", "\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}", "\u{d7ff}\u{e000}"] {
            for before in [0, 1, 2, 3, 61, 62, 63, 64, 255, 256] {
                let long = [&long[..before], right.as_bytes(), &long].concat();
                assert_eq!(fault(&[right.as_bytes(), &long], true), None, "{right}");
            }
        }
        // Lengths of strings have bytes that are not ASCII.
        assert_eq!(fault(&[&[b'y'; 200], &[b'z'; 129], &[b'y'; 255]], true), None);
    }
}
