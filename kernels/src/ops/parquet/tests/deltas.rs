//! The DELTA encodings: integers, decimals, strings.

use parquet::basic::Encoding as Written;
use parquet::data_type::*;

use super::file::{File, Settings};
use super::numbers::{NULLS, NullPattern, check as check_numbers, with_nulls};
use super::strings::{KINDS, VIEWS, check, texts, written};
use super::*;

const PACKED: Option<Written> = Some(Written::DELTA_BINARY_PACKED);

#[test]
fn integers_are_added_up() {
    let output = |width| PageOutput::Integer { width };
    let shifts = [0, 1, 20, 40, 63];
    for shift in shifts {
        // Differences of up to 64 bits, which wrap.
        let make = move |x: u64| (x >> shift) as i64;
        check_numbers::<Int64Type>("INT64", PACKED, output(8), make, |x| x.to_le_bytes().to_vec());
    }
    for shift in [32, 40, 60] {
        let make = move |x: u64| (x >> shift) as i32;
        check_numbers::<Int32Type>("INT32", PACKED, output(4), make, |x| x.to_le_bytes().to_vec());
    }
    let small = |x: u64| (x % 211) as i32 - 100;
    check_numbers::<Int32Type>("INT32", PACKED, output(1), small, |x| {
        (*x as i8).to_le_bytes().to_vec()
    });
    check_numbers::<Int32Type>("INT32", PACKED, output(2), small, |x| {
        (*x as i16).to_le_bytes().to_vec()
    });
    let widened = |bits, signed| PageOutput::Widened { width: 8, bits, signed, factor: 1 };
    check_numbers::<Int32Type>(
        "INT32",
        PACKED,
        widened(8, true),
        |x| x as i32,
        |x| i64::from(*x as i8).to_le_bytes().to_vec(),
    );
    check_numbers::<Int32Type>(
        "INT32",
        PACKED,
        widened(32, false),
        |x| x as i32,
        |x| u64::from(*x as u32).to_le_bytes().to_vec(),
    );
    let decimal = |width| PageOutput::Decimal { width, bound: Some(10u128.pow(18)), factor: 1 };
    let narrow = |x: u64| x as i64 / 10;
    let wide = |x: &i64| i128::from(*x).to_le_bytes().to_vec();
    check_numbers::<Int64Type>("INT64", PACKED, decimal(16), narrow, wide);
    check_numbers::<Int32Type>("INT32", PACKED, decimal(8), small, |x| {
        i64::from(*x).to_le_bytes().to_vec()
    });
}

#[test]
fn the_example_of_the_kernels_is_added_up() {
    let content = [&[0x80, 1, 4, 8, 0x0e, 3, 2, 0, 0, 0, 0xc0, 0x3f][..], &[0; 6]].concat();
    let file = File::by_hand(Physical::Int64, PageEncoding::DeltaBinaryPacked, 8, content);
    let values = [7i64, 5, 3, 1, 2, 3, 4, 5];
    let expected: Vec<_> = values.iter().map(|value| Some(value.to_le_bytes().to_vec())).collect();
    assert_decodes("deltas", &file, PageOutput::Integer { width: 8 }, &expected);
}

#[test]
fn equal_and_ascending_integers_have_miniblocks_of_no_bits() {
    for step in [0, 1, -7] {
        let values: Vec<_> =
            (0..3000).map(|i| Some((i64::MAX - 1000).wrapping_add(i * step))).collect();
        let file = File::written::<Int64Type>("INT64", &values, false, Settings::of(PACKED));
        let expected: Vec<_> =
            values.iter().map(|value| value.map(|x| x.to_le_bytes().to_vec())).collect();
        assert_decodes("steps", &file, PageOutput::Integer { width: 8 }, &expected);
    }
}

/// Blocks and miniblocks of other sizes than the crate writes: 1 miniblock of 128, 2 of 64, 4 of
/// 96, 1 of 512.
#[test]
fn miniblocks_have_any_size() {
    for (block, miniblocks) in [(128u32, 1u32), (128, 2), (384, 4), (512, 1), (256, 8)] {
        let each = (block / miniblocks) as usize;
        for count in [1, 2, 33, 129, 700] {
            let deltas: Vec<u64> = random(7, count).map(|x| x % 1000).collect();
            let mut content = Vec::new();
            let varint = |content: &mut Vec<u8>, mut x: u64| {
                while x >= 128 {
                    content.push(x as u8 | 128);
                    x >>= 7;
                }
                content.push(x as u8);
            };
            for head in [block as u64, miniblocks as u64, count as u64, 2 * deltas[0]] {
                varint(&mut content, head);
            }
            for values in deltas[1..].chunks(block as usize) {
                // The least difference is 3 too small.
                varint(&mut content, 5);
                let widths = (0..miniblocks as usize)
                    .map(|i| if i * each < values.len() { 10 + i as u8 } else { 77 });
                content.extend(widths);
                for (i, values) in values.chunks(each).enumerate() {
                    let (mut bits, mut left) = (0u128, 0);
                    for k in 0..each {
                        bits |= u128::from(values.get(k).map_or(0, |delta| delta + 3)) << left;
                        left += 10 + i;
                        while left >= 8 {
                            content.push(bits as u8);
                            (bits, left) = (bits >> 8, left - 8);
                        }
                    }
                    assert_eq!(left, 0);
                }
            }
            let mut sum = 0;
            let expected: Vec<_> = deltas
                .iter()
                .map(|delta| (sum += delta, Some(sum.to_le_bytes().to_vec())).1)
                .collect();
            let file = File::by_hand(
                Physical::Int64,
                PageEncoding::DeltaBinaryPacked,
                count as u32,
                content,
            );
            assert_decodes(
                &format!("{count} in {miniblocks} of {each}"),
                &file,
                PageOutput::Integer { width: 8 },
                &expected,
            );
        }
    }
}

#[test]
fn strings_have_their_lengths_and_what_they_share_apart() {
    for encoding in [Written::DELTA_LENGTH_BYTE_ARRAY, Written::DELTA_BYTE_ARRAY] {
        for kind in KINDS {
            let rows = if kind == "long" { 300 } else { 2000 };
            let mut values: Vec<_> = texts(kind, rows).into_iter().map(Some).collect();
            check(kind, &values, false, Settings::of(Some(encoding)), VIEWS);
            // In order, more is shared.
            values.sort();
            check(kind, &values, false, Settings::of(Some(encoding)), VIEWS);
        }
        for settings in Settings::all(Some(encoding)) {
            for nulls in NULLS {
                let values = with_nulls(nulls, texts("inline and not", 2500).into_iter());
                check("nulls", &values, true, settings, VIEWS);
            }
        }
    }
}

#[test]
fn bytes_of_fixed_length_share_their_beginnings() {
    let values =
        with_nulls(NullPattern::Some, (0..3000u64).map(|x| (x * 1_000_003).to_be_bytes().to_vec()));
    let written: Vec<_> = values
        .iter()
        .map(|v| v.as_ref().map(|v| FixedLenByteArray::from(ByteArray::from(v.clone()))))
        .collect();
    let settings = Settings::of(Some(Written::DELTA_BYTE_ARRAY));
    let file =
        File::written::<FixedLenByteArrayType>("FIXED_LEN_BYTE_ARRAY(8)", &written, true, settings);
    assert_decodes("bytes", &file, PageOutput::Views { utf8: false }, &values);
    let numbers: Vec<_> =
        values.iter().map(|v| v.as_ref().map(|v| v.iter().rev().copied().collect())).collect();
    assert_decodes(
        "decimals",
        &file,
        PageOutput::Decimal { width: 8, bound: None, factor: 1 },
        &numbers,
    );
}

#[test]
fn damaged_deltas_are_told() {
    let fault = |file: &File, output| decode_all(&device(2), &[TestChunk { file, output }]).err();
    let values: Vec<_> = random(1, 500).map(|x| Some(x as i64)).collect();
    let good = File::written::<Int64Type>("INT64", &values, false, Settings::of(PACKED));
    let output = PageOutput::Integer { width: 8 };
    // What fills up the last miniblock is not needed.
    for end in (0..good.pages[0].content.len() - 12 * 8).step_by(37) {
        let mut file = good.clone();
        file.pages[0].content.truncate(end);
        assert_eq!(fault(&file, output), Some((0, 40)), "{end} bytes");
    }
    let mut more = good.clone();
    more.pages[0].rows = 501;
    assert_eq!(fault(&more, output), Some((0, 40)));
    let by_hand = |physical, content| {
        fault(&File::by_hand(physical, PageEncoding::DeltaBinaryPacked, 2, content), output)
            .map(|(_, code)| code)
    };
    // 2 and 3; in blocks of 64; a first value of 33 bits, a least difference of 33, differences of
    // 33.
    assert_eq!(by_hand(Physical::Int32, vec![128, 1, 4, 2, 4, 2, 0, 0, 0, 0]), None);
    assert_eq!(by_hand(Physical::Int32, vec![64, 2, 2, 4, 2, 0, 0]), Some(40));
    for narrow in [
        vec![128, 1, 4, 2, 128, 128, 128, 128, 32, 2, 0, 0, 0, 0],
        vec![128, 1, 4, 2, 4, 128, 128, 128, 128, 32, 0, 0, 0, 0],
        [vec![128, 1, 4, 2, 4, 2, 33, 0, 0, 0], vec![0; 33 * 4]].concat(),
    ] {
        assert_eq!(by_hand(Physical::Int32, narrow.clone()), Some(40), "{narrow:?}");
        assert_eq!(by_hand(Physical::Int64, narrow), None);
    }
    let out_of_bounds = PageOutput::Decimal { width: 8, bound: Some(1 << 40), factor: 1 };
    assert_eq!(fault(&good, out_of_bounds), Some((0, 38)));

    let values: Vec<_> = texts("comments", 500).into_iter().map(Some).collect();
    for encoding in [Written::DELTA_LENGTH_BYTE_ARRAY, Written::DELTA_BYTE_ARRAY] {
        let good = written(&values, false, Settings::of(Some(encoding)));
        for end in (0..good.pages[0].content.len()).step_by(501) {
            let mut file = good.clone();
            file.pages[0].content.truncate(end);
            let found = fault(&file, VIEWS);
            assert!(matches!(found, Some((0, 40 | 36))), "{end} bytes: {found:?}");
        }
    }
    let mut little = written(&values, false, Settings::of(Some(Written::DELTA_BYTE_ARRAY)));
    little.characters -= 1;
    assert_eq!(fault(&little, VIEWS), Some((0, 41)));
    // Sharing more than there is: lengths 3 of nothing.
    let content = vec![128, 1, 4, 1, 6, 128, 1, 4, 1, 2, b'x'];
    let mut file = File::by_hand(Physical::ByteArray, PageEncoding::DeltaByteArray, 1, content);
    file.characters = 100;
    assert_eq!(fault(&file, VIEWS), Some((0, 36)));
    // A string of which a half of a character is shared.
    let values: Vec<_> = ["é", "è", "ê"].into_iter().map(|text| Some(text.to_string())).collect();
    check("halves", &values, false, Settings::of(Some(Written::DELTA_BYTE_ARRAY)), VIEWS);
}

#[test]
fn strings_that_share_need_room() {
    let file = written(&[Some("a".into())], false, Settings::of(Some(Written::DELTA_BYTE_ARRAY)));
    let device = device(1);
    let chunk = ColumnChunk {
        physical: file.physical,
        optional: false,
        output: VIEWS,
        data: 0,
        validity: 0,
        scratch: 0,
        dictionary: None,
        characters: None,
    };
    let page = Page {
        number: 0,
        size: 9,
        levels: None,
        rows: 1,
        row: 0,
        encoding: PageEncoding::DeltaByteArray,
        chunk: 0,
    };
    let buffer = device.alloc("test", 8).unwrap();
    let error = decode(&device, &[chunk], &[page], &buffer, &buffer, &buffer).unwrap_err();
    assert!(error.to_string().contains("DELTA_BYTE_ARRAY"), "{error}");
}
