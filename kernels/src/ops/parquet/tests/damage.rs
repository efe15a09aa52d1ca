//! Pages that lie. Nothing may be written outside of the output, and every fault has to be noted.

use parquet::basic::Encoding as Written;
use parquet::data_type::*;

use super::file::{File, Settings};
use super::numbers::{NullPattern, with_nulls};
use super::*;

fn fault(file: &File, output: PageOutput) -> Option<(u32, u32)> {
    decode_all(&device(3), &[TestChunk { file, output }]).err()
}

const LONG: PageOutput = PageOutput::Integer { width: 8 };
const VIEWS: PageOutput = PageOutput::Views { utf8: true };

fn dictionary(rows: u32, content: Vec<u8>, entries: u32) -> File {
    let mut file = File::by_hand(Physical::Int64, PageEncoding::Dictionary, rows, content);
    file.dictionary = Some(((0..u64::from(entries)).flat_map(u64::to_le_bytes).collect(), entries));
    file
}

#[test]
fn damaged_codes_are_told() {
    assert_eq!(fault(&dictionary(8, vec![2, 3, 0b11100100, 0b11100100], 4), LONG), None);
    // One entry less.
    assert_eq!(fault(&dictionary(8, vec![2, 3, 0b11100100, 0b11100100], 3), LONG), Some((1, 34)));
    assert_eq!(fault(&dictionary(8, vec![2, 16, 3], 3), LONG), Some((1, 34)));
    assert_eq!(fault(&dictionary(8, vec![32, 16, 0, 0, 0, 128], 3), LONG), Some((1, 34)));
    // No entries at all; then no bytes, no runs, too many bits, an end of runs too soon.
    assert_eq!(fault(&dictionary(8, vec![0, 16], 0), LONG), Some((1, 34)));
    assert_eq!(fault(&dictionary(8, vec![], 4), LONG), Some((1, 33)));
    assert_eq!(fault(&dictionary(8, vec![2], 4), LONG), Some((1, 33)));
    assert_eq!(fault(&dictionary(8, vec![33, 3, 0, 0], 4), LONG), Some((1, 33)));
    assert_eq!(fault(&dictionary(8, vec![2, 3, 0b11100100], 4), LONG), Some((1, 33)));
    assert_eq!(fault(&dictionary(8, vec![2, 14, 1], 4), LONG), Some((1, 33)));
    assert_eq!(fault(&dictionary(8, vec![2, 0, 1], 4), LONG), Some((1, 33)));
    assert_eq!(fault(&dictionary(8, vec![2, 16], 4), LONG), Some((1, 33)));
    assert_eq!(fault(&dictionary(8, vec![2, 255, 255, 255, 255, 255, 1], 4), LONG), Some((1, 33)));
    assert_eq!(fault(&dictionary(8, vec![2, 1, 1, 1, 16, 1], 4), LONG), None);
    // A code of 0 bits needs no runs.
    assert_eq!(fault(&dictionary(5000, vec![0], 1), LONG), None);
    // Behind the last run only zeros may follow.
    assert_eq!(fault(&dictionary(8, vec![2, 16, 1, 16, 1], 4), LONG), Some((1, 33)));
    assert_eq!(
        fault(&dictionary(8, vec![2, 3, 0b11100100, 0b11100100, 1], 4), LONG),
        Some((1, 33))
    );
    assert_eq!(fault(&dictionary(8, vec![2, 16, 1, 0, 0, 7], 4), LONG), None);
    let mut short = dictionary(8, vec![2, 16, 1], 4);
    short.dictionary.as_mut().unwrap().0.truncate(31);
    assert_eq!(fault(&short, LONG), Some((0, 35)));
}

#[test]
fn damaged_levels_are_told() {
    let optional = |content: Vec<u8>| {
        let mut file = File::by_hand(Physical::Int32, PageEncoding::Plain, 8, content);
        file.optional = true;
        fault(&file, PageOutput::Integer { width: 4 })
    };
    let with = |levels: &[u8]| [&(levels.len() as u32).to_le_bytes(), levels, &[1; 32]].concat();
    assert_eq!(optional(with(&[16, 1])), None);
    assert_eq!(optional(with(&[3, 0b1011])), None);
    assert_eq!(optional(with(&[16, 2])), Some((0, 32)));
    assert_eq!(optional(with(&[14, 1])), Some((0, 32)));
    assert_eq!(optional(with(&[])), Some((0, 32)));
    assert_eq!(optional(with(&[16])), Some((0, 32)));
    assert_eq!(optional(vec![]), Some((0, 32)));
    assert_eq!(optional(vec![255, 255, 255, 255, 16, 1]), Some((0, 32)));
    assert_eq!(optional(vec![3, 0, 0, 0, 16, 1]), Some((0, 32)));
    assert_eq!(optional(vec![2, 0, 0, 0, 16, 1, 9, 9]), Some((0, 35)));
    assert_eq!(optional(vec![2, 0, 0, 0, 16, 0]), None, "all null");
}

/// Nobody needs a value of them, but they have heads.
#[test]
fn damaged_pages_of_nulls_are_told() {
    let nulls = |physical, encoding, output, values: &[u8]| {
        let mut file =
            File::by_hand(physical, encoding, 8, [&[2, 0, 0, 0, 16, 0], values].concat());
        file.optional = true;
        file.dictionary =
            (encoding == PageEncoding::Dictionary).then(|| (1u64.to_le_bytes().to_vec(), 1));
        fault(&file, output).map(|(_, code)| code)
    };
    let codes = |values: &[u8]| nulls(Physical::Int64, PageEncoding::Dictionary, LONG, values);
    // Some writers leave the width of codes out where no row has one.
    assert_eq!([&[][..], &[0], &[2], &[32], &[2, 0, 9]].map(codes), [None; 5]);
    assert_eq!([&[33][..], &[255, 0], &[2, 16]].map(codes), [Some(33); 3]);
    let flags =
        |values: &[u8]| nulls(Physical::Boolean, PageEncoding::Rle, PageOutput::Bool, values);
    assert_eq!([&[0, 0, 0, 0][..], &[0, 0, 0, 0, 9]].map(flags), [None; 2]);
    assert_eq!([&[][..], &[0, 0, 0], &[1, 0, 0, 0], &[1, 0, 0, 0, 16]].map(flags), [Some(33); 4]);
    let deltas =
        |values: &[u8]| nulls(Physical::Int64, PageEncoding::DeltaBinaryPacked, LONG, values);
    assert_eq!(
        [&[128, 1, 4, 0, 0][..], &[128, 1, 4, 0, 0, 9], &[128, 2, 1, 3, 0]].map(deltas),
        [None; 3]
    );
    assert_eq!(
        [&[][..], &[128, 1, 4], &[64, 2, 0, 0], &[128, 1, 8, 0, 0]].map(deltas),
        [Some(40); 4]
    );
    let lengths = |values: &[u8]| {
        nulls(Physical::ByteArray, PageEncoding::DeltaLengthByteArray, VIEWS, values)
    };
    assert_eq!(lengths(&[128, 1, 4, 0, 0]), None);
    assert_eq!([&[][..], &[128, 1, 4, 1, 0]].map(lengths), [Some(40); 2]);
    let strings =
        |values: &[u8]| nulls(Physical::ByteArray, PageEncoding::DeltaByteArray, VIEWS, values);
    assert_eq!(strings(&[128, 1, 4, 0, 0, 128, 1, 4, 0, 0]), None);
    assert_eq!(
        [&[128, 1, 4, 0, 0][..], &[128, 1, 4, 1, 0, 128, 1, 4, 1, 0]].map(strings),
        [Some(40); 2]
    );
}

#[test]
fn damaged_lengths_are_told() {
    let of = |rows: u32, content: Vec<u8>| {
        fault(&File::by_hand(Physical::ByteArray, PageEncoding::Plain, rows, content), VIEWS)
    };
    let good = super::strings::plain(&[b"abc", b"", b"a string of many bytes"]);
    assert_eq!(of(3, good.clone()), None);
    assert_eq!(of(4, good.clone()), Some((0, 36)));
    assert_eq!(of(2, good.clone()), None, "bytes behind the last string");
    for end in 0..good.len() {
        assert_eq!(of(3, good[..end].to_vec()), Some((0, 36)), "{end} bytes");
    }
    let mut longer = good.clone();
    longer[3] = 255;
    assert_eq!(of(3, longer), Some((0, 36)));
    // Damage in a later window, and in the segments of many threads.
    let strings: Vec<Vec<u8>> = (0..4000u32).map(|i| vec![b'a'; i as usize % 40]).collect();
    let refs: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
    let good = super::strings::plain(&refs);
    assert_eq!(of(4000, good.clone()), None);
    for at in [0, 5000, 40_000, 70_000] {
        let mut bad = good.clone();
        bad[at..at + 200].fill(255);
        assert_eq!(of(4000, bad), Some((0, 36)), "at {at}");
    }
}

#[test]
fn pages_too_short_for_their_values_are_told() {
    let of = |physical, encoding, output, size| {
        fault(&File::by_hand(physical, encoding, 9, vec![0; size]), output)
    };
    let width = |width| PageOutput::Integer { width };
    assert_eq!(of(Physical::Int32, PageEncoding::Plain, width(4), 36), None);
    assert_eq!(of(Physical::Int32, PageEncoding::Plain, width(4), 35), Some((0, 35)));
    assert_eq!(of(Physical::Boolean, PageEncoding::Plain, PageOutput::Bool, 2), None);
    assert_eq!(of(Physical::Boolean, PageEncoding::Plain, PageOutput::Bool, 1), Some((0, 35)));
    assert_eq!(
        of(Physical::Double, PageEncoding::ByteStreamSplit, PageOutput::Float64, 71),
        Some((0, 35))
    );
    assert_eq!(
        of(
            Physical::FixedLenByteArray(3),
            PageEncoding::Plain,
            PageOutput::Views { utf8: false },
            26
        ),
        Some((0, 35))
    );
    assert_eq!(of(Physical::Boolean, PageEncoding::Rle, PageOutput::Bool, 3), Some((0, 33)));
}

#[test]
fn without_validity_nulls_are_counted_only() {
    let values = with_nulls(NullPattern::Some, random(1, 6000).map(|x| x as i64));
    let file =
        File::written::<Int64Type>("INT64", &values, true, Settings::of(Some(Written::PLAIN)));
    let device = device(1);
    let content = upload(&device, &[file.pages[0].content.clone(), vec![0; 64]].concat());
    let (data, nulls) =
        (device.alloc("test", 6000 * 8).unwrap(), device.alloc_zeroed("test", 8).unwrap());
    let faults = device.alloc_filled("test", 4, 255).unwrap();
    let chunk = ColumnChunk {
        physical: Physical::Int64,
        optional: true,
        output: LONG,
        data: data.address(),
        validity: 0,
        scratch: 0,
        dictionary: None,
        characters: None,
    };
    let (size, encoding) = (file.pages[0].content.len() as u32, PageEncoding::Plain);
    let page = Page { number: 0, size, levels: None, rows: 6000, row: 0, encoding, chunk: 0 };
    decode(&device, &[chunk], &[page], &upload(&device, &[content.address()]), &nulls, &faults)
        .unwrap();
    assert_eq!(read::<u32>(&faults, 1), [u32::MAX]);
    assert_eq!(
        read::<u64>(&nulls, 1),
        [values.iter().filter(|value| value.is_none()).count() as u64]
    );
}

/// Bytes changed at random: whatever comes of it, kernels end, and write nowhere else (the
/// simulator looks).
#[test]
fn pages_changed_at_random_do_no_harm() {
    let integers = with_nulls(NullPattern::Some, random(1, 3000).map(|x| (x % 1000) as i64));
    let texts = with_nulls(
        NullPattern::Some,
        random(2, 3000)
            .map(|x| ByteArray::from("abcdefghijklmnop".as_bytes()[..x as usize % 16].to_vec())),
    );
    let flags = with_nulls(NullPattern::Some, random(3, 3000).map(|x| x % 5 == 0));
    let files = [
        (File::written::<Int64Type>("INT64", &integers, true, Settings::of(None)), LONG),
        (
            File::written::<Int64Type>(
                "INT64",
                &integers,
                true,
                Settings::of(Some(Written::PLAIN)),
            ),
            LONG,
        ),
        (
            File::written::<ByteArrayType>("BYTE_ARRAY", &texts, true, Settings::of(None)),
            PageOutput::Codes { base: 0 },
        ),
        (
            File::written::<ByteArrayType>(
                "BYTE_ARRAY",
                &texts,
                true,
                Settings::of(Some(Written::PLAIN)),
            ),
            VIEWS,
        ),
        (
            File::written::<Int64Type>(
                "INT64",
                &integers,
                true,
                Settings::of(Some(Written::DELTA_BINARY_PACKED)),
            ),
            LONG,
        ),
        (
            File::written::<ByteArrayType>(
                "BYTE_ARRAY",
                &texts,
                true,
                Settings::of(Some(Written::DELTA_LENGTH_BYTE_ARRAY)),
            ),
            VIEWS,
        ),
        (
            File::written::<ByteArrayType>(
                "BYTE_ARRAY",
                &texts,
                true,
                Settings::of(Some(Written::DELTA_BYTE_ARRAY)),
            ),
            VIEWS,
        ),
        (
            File::written::<BoolType>("BOOLEAN", &flags, true, Settings::of(Some(Written::RLE))),
            PageOutput::Bool,
        ),
    ];
    let rounds = std::env::var("WARPFRAME_PAGE_ROUNDS")
        .map_or(20, |rounds| rounds.parse().expect("a number"));
    let device = device(5);
    let mut faults = 0;
    for round in 0..rounds {
        for (number, (file, output)) in files.iter().enumerate() {
            let mut file = file.clone();
            for x in random(round * 100 + number as u64, 1 + round as usize % 4) {
                let page = &mut file.pages[0].content;
                // Heads of pages more often than their middles.
                let within = if x % 3 == 0 { page.len() } else { page.len().min(500) };
                let at = (x >> 8) as usize % within;
                page[at] = if x % 2 == 0 { 255 } else { (x >> 50) as u8 };
                if x % 7 == 0 {
                    page.truncate(at + 1);
                }
                if let Some((dictionary, _)) = file.dictionary.as_mut().filter(|_| x % 5 == 0) {
                    let at = (x >> 20) as usize % dictionary.len();
                    dictionary[at] ^= (x >> 30) as u8;
                }
            }
            faults +=
                decode_all(&device, &[TestChunk { file: &file, output: *output }]).is_err() as u64;
        }
    }
    assert!(faults > rounds, "{faults} faults");
}
