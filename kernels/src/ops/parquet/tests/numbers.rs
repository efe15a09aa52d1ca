//! Numbers, booleans, decimals of fixed width and timestamps, with and without nulls.

use parquet::basic::Encoding as Written;
use parquet::data_type::*;

use super::file::{File, Settings};
use super::*;

const SIZES: [usize; 8] = [1, 31, 32, 33, 4095, 4096, 4097, 9_000];

/// Values of which some are null: none, some at random, long runs of both, or all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NullPattern {
    None,
    Some,
    Runs,
    All,
}

pub(super) const NULLS: [NullPattern; 4] =
    [NullPattern::None, NullPattern::Some, NullPattern::Runs, NullPattern::All];

pub(super) fn with_nulls<T>(nulls: NullPattern, values: impl Iterator<Item = T>) -> Vec<Option<T>> {
    let null = |row: usize| match nulls {
        NullPattern::None => false,
        NullPattern::Some => random(row as u64 + 9, 1).next().unwrap().is_multiple_of(4),
        NullPattern::Runs => (row / 700).is_multiple_of(2),
        NullPattern::All => true,
    };
    values.enumerate().map(|(row, value)| (!null(row)).then_some(value)).collect()
}

/// Writes values in every way and compares what becomes of them.
pub(super) fn check<T: DataType>(
    kind: &str,
    encoding: Option<Written>,
    output: PageOutput,
    make: impl Fn(u64) -> T::T,
    becomes: impl Fn(&T::T) -> Vec<u8>,
) {
    let compare = |rows: usize, nulls: Option<NullPattern>, settings: Settings| {
        let values =
            with_nulls(nulls.unwrap_or(NullPattern::None), random(rows as u64, rows).map(&make));
        let file = File::written::<T>(kind, &values, nulls.is_some(), settings);
        let expected: Vec<_> = values.iter().map(|value| value.as_ref().map(&becomes)).collect();
        assert_decodes(
            &format!("{kind} {encoding:?} {output:?} {nulls:?} {settings:?}"),
            &file,
            output,
            &expected,
        );
    };
    // Sizes and levels are the same whatever values become: looked at once.
    if kind == "INT64" && output.width() == 8 {
        for rows in SIZES {
            compare(rows, None, Settings::of(encoding));
            compare(rows, Some(NullPattern::Some), Settings::of(encoding));
        }
        for settings in Settings::all(encoding) {
            compare(5000, None, settings);
            NULLS.into_iter().for_each(|nulls| compare(5000, Some(nulls), settings));
        }
    } else {
        compare(4500, None, Settings::of(encoding));
        compare(1000, Some(NullPattern::Some), Settings::all(encoding)[1]);
    }
}

#[test]
fn numbers_of_fewer_bits_are_widened() {
    for encoding in [None, Some(Written::PLAIN), Some(Written::BYTE_STREAM_SPLIT)] {
        let output = |width, bits, signed| PageOutput::Widened { width, bits, signed, factor: 1 };
        // Bits above a value's own are anything.
        let any = |x: u64| ((x % 5003) as i32).wrapping_mul(429_497_003);
        check::<Int32Type>("INT32", encoding, output(2, 8, true), any, |x| {
            i16::from(*x as i8).to_le_bytes().to_vec()
        });
        check::<Int32Type>("INT32", encoding, output(4, 16, true), any, |x| {
            i32::from(*x as i16).to_le_bytes().to_vec()
        });
        check::<Int32Type>("INT32", encoding, output(8, 32, true), any, |x| {
            i64::from(*x).to_le_bytes().to_vec()
        });
        check::<Int32Type>("INT32", encoding, output(2, 8, false), any, |x| {
            u16::from(*x as u8).to_le_bytes().to_vec()
        });
        check::<Int32Type>("INT32", encoding, output(8, 16, false), any, |x| {
            u64::from(*x as u16).to_le_bytes().to_vec()
        });
        check::<Int32Type>("INT32", encoding, output(8, 32, false), any, |x| {
            u64::from(*x as u32).to_le_bytes().to_vec()
        });
        let third = |x: u64| (x % 4999) as f32 / 3.0 - 500.0;
        check::<FloatType>("FLOAT", encoding, PageOutput::Double, third, |x| {
            f64::from(*x).to_le_bytes().to_vec()
        });
    }
}

#[test]
fn integers_become_floats_and_multiples() {
    for encoding in [
        None,
        Some(Written::PLAIN),
        Some(Written::BYTE_STREAM_SPLIT),
        Some(Written::DELTA_BINARY_PACKED),
    ] {
        let number = |bits, signed| PageOutput::Number { bits, signed };
        let any = |x: u64| ((x % 5003) as i32).wrapping_mul(429_497_003);
        let far =
            |x: u64| ((x % 5003) as i64).wrapping_mul(3_689_348_814_741_910).wrapping_sub(1 << 62);
        let float = |x: f64| x.to_le_bytes().to_vec();
        check::<Int32Type>("INT32", encoding, number(8, true), any, |x| float(f64::from(*x as i8)));
        check::<Int32Type>("INT32", encoding, number(32, true), any, |x| float(f64::from(*x)));
        check::<Int32Type>("INT32", encoding, number(32, false), any, |x| {
            float(f64::from(*x as u32))
        });
        check::<Int64Type>("INT64", encoding, number(64, true), far, |x| float(*x as f64));
        check::<Int64Type>("INT64", encoding, number(64, false), far, |x| float(*x as u64 as f64));
        let times = |width, bits| PageOutput::Widened { width, bits, signed: true, factor: 1000 };
        let long = |x: i64| x.to_le_bytes().to_vec();
        check::<Int32Type>("INT32", encoding, times(8, 32), any, |x| long(i64::from(*x) * 1000));
        let small = |x: u64| (x % 211) as i32 - 100;
        check::<Int32Type>("INT32", encoding, times(4, 32), small, |x| {
            (*x * 1000).to_le_bytes().to_vec()
        });
        let micros = |x: u64| (x % 5003) as i64 * 3_686_000_000_001 - 9_220_000_000_000_000;
        check::<Int64Type>("INT64", encoding, times(8, 64), micros, |x| long(*x * 1000));
        let output = PageOutput::Decimal { width: 8, bound: Some(9999), factor: 1_000_000 };
        check::<Int32Type>(
            "INT32",
            encoding,
            output,
            |x| (x % 19_999) as i32 - 9999,
            |x| long(i64::from(*x) * 1_000_000),
        );
        let factor = 10u128.pow(20);
        let output = PageOutput::Decimal { width: 16, bound: Some(10u128.pow(18) - 1), factor };
        let wide = |x: &i64| (i128::from(*x) * factor as i128).to_le_bytes().to_vec();
        check::<Int64Type>("INT64", encoding, output, |x| x as i64 / 10, wide);
    }
    for (length, factor) in [(3, 10u128.pow(31)), (12, 1000)] {
        let kind = format!("FIXED_LEN_BYTE_ARRAY({length})");
        let value = |x: u64| i128::from(x as i64) >> (64 - 8 * length.min(7));
        let output = PageOutput::Decimal { width: 16, bound: None, factor };
        let read = |x: &FixedLenByteArray| {
            let fill = if x.data()[0] & 128 != 0 { 255 } else { 0 };
            let mut all = [fill; 16];
            all[16 - length..].copy_from_slice(x.data());
            (i128::from_be_bytes(all) * factor as i128).to_le_bytes().to_vec()
        };
        check::<FixedLenByteArrayType>(&kind, None, output, |x| big_endian(value(x), length), read);
    }
    let seconds = |x: u64| {
        let mut value = Int96::new();
        value.set_data((x % 1_000_000_007) as u32, 0, 2_440_588 + (x >> 50) as u32 - 8000);
        value
    };
    let output = PageOutput::Int96 { unit: Int96Unit::Microsecond, factor: 1000 };
    check::<Int96Type>("INT96", None, output, seconds, |x| {
        (x.to_micros() * 1000).to_le_bytes().to_vec()
    });
}

#[test]
fn multiples_that_do_not_fit_are_damage() {
    let times = |width, bits| PageOutput::Widened { width, bits, signed: true, factor: 1000 };
    let fault = |physical, output, content: Vec<u8>| {
        let file = File::by_hand(physical, PageEncoding::Plain, 1, content);
        decode_all(&device(1), &[TestChunk { file: &file, output }]).err()
    };
    for value in [i64::MAX / 1000, i64::MIN / 1000] {
        let beyond = value + value.signum();
        assert_eq!(fault(Physical::Int64, times(8, 64), value.to_le_bytes().to_vec()), None);
        assert_eq!(
            fault(Physical::Int64, times(8, 64), beyond.to_le_bytes().to_vec()),
            Some((0, 42))
        );
    }
    let most = i32::MAX / 1000;
    assert_eq!(fault(Physical::Int32, times(4, 32), most.to_le_bytes().to_vec()), None);
    assert_eq!(
        fault(Physical::Int32, times(4, 32), (most + 1).to_le_bytes().to_vec()),
        Some((0, 42))
    );
    // 1,000 more than the first value, in a miniblock of 32 differences of no bits.
    let zigzag = |value: u64| {
        let mut value = value << 1;
        let mut bytes = vec![];
        while value >= 128 {
            bytes.push(value as u8 | 128);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let most = i64::MAX as u64 / 1000;
    for (first, damage) in [(most - 1000, None), (most - 999, Some((0, 42)))] {
        let content = [vec![0x80, 1, 4, 2], zigzag(first), zigzag(1000), vec![0; 4]].concat();
        let file = File::by_hand(Physical::Int64, PageEncoding::DeltaBinaryPacked, 2, content);
        assert_eq!(
            decode_all(&device(1), &[TestChunk { file: &file, output: times(8, 64) }]).err(),
            damage
        );
    }
    let output = PageOutput::Decimal { width: 16, bound: Some(999), factor: 10 };
    assert_eq!(fault(Physical::Int32, output, 1000i32.to_le_bytes().to_vec()), Some((0, 38)));
}

#[test]
fn integers_are_read_in_every_width() {
    for encoding in [None, Some(Written::PLAIN)] {
        let output = |width| PageOutput::Integer { width };
        let small = |x: u64| (x % 211) as i32 - 100;
        check::<Int32Type>("INT32", encoding, output(1), small, |x| {
            (*x as i8).to_le_bytes().to_vec()
        });
        check::<Int32Type>("INT32", encoding, output(2), small, |x| {
            (*x as i16).to_le_bytes().to_vec()
        });
        check::<Int32Type>(
            "INT32",
            encoding,
            output(4),
            |x| x as i32,
            |x| x.to_le_bytes().to_vec(),
        );
        check::<Int64Type>(
            "INT64",
            encoding,
            output(8),
            |x| x as i64 % 1000,
            |x| x.to_le_bytes().to_vec(),
        );
    }
    let wide = |x: &i64| i128::from(*x).to_le_bytes().to_vec();
    check::<Int64Type>(
        "INT64",
        Some(Written::PLAIN),
        PageOutput::Integer { width: 16 },
        |x| x as i64,
        wide,
    );
}

#[test]
fn floats_are_read_with_their_bits() {
    for encoding in [None, Some(Written::PLAIN), Some(Written::BYTE_STREAM_SPLIT)] {
        let float = |x: u64| f32::from_bits((x as u32) & 0xff80_0fff);
        check::<FloatType>("FLOAT", encoding, PageOutput::Float32, float, |x| {
            x.to_le_bytes().to_vec()
        });
        let double = |x: u64| f64::from_bits(x & 0xfff0_0000_0000_0fff);
        check::<DoubleType>("DOUBLE", encoding, PageOutput::Float64, double, |x| {
            x.to_le_bytes().to_vec()
        });
    }
}

#[test]
fn booleans_are_read_from_bits_and_runs() {
    for encoding in [Written::PLAIN, Written::RLE] {
        check::<BoolType>(
            "BOOLEAN",
            Some(encoding),
            PageOutput::Bool,
            |x| x % 3 == 0,
            |x| vec![*x as u8],
        );
        check::<BoolType>(
            "BOOLEAN",
            Some(encoding),
            PageOutput::Bool,
            |x| x % 300 == 0,
            |x| vec![*x as u8],
        );
    }
}

#[test]
fn codes_of_every_width_are_unpacked() {
    // As many distinct values as there are: 17 bits.
    for bits in [0, 1, 2, 3, 5, 7, 8, 9, 12, 13, 16, 17] {
        let rows = if bits > 12 { 140_000 } else { 9000 };
        let values: Vec<Option<i64>> =
            (0..rows).map(|x| Some((x * 7919 % (1u64 << bits)) as i64)).collect();
        let file = File::written::<Int64Type>("INT64", &values, false, Settings::of(None));
        assert!(file.pages.iter().any(|page| page.content[0] == bits), "codes of {bits} bits");
        let device = device(bits.into());
        let output = PageOutput::Integer { width: 8 };
        let decoded = decode_all(&device, &[TestChunk { file: &file, output }])
            .unwrap_or_else(|fault| panic!("{fault:?}"));
        for (found, value) in decoded[0].values.iter().zip(&values) {
            assert_eq!(found.as_ref().unwrap()[..], value.unwrap().to_le_bytes(), "{bits} bits");
        }
    }
}

#[test]
fn runs_of_all_lengths_stand_among_packed_bits() {
    // Runs of 1 to 40, and long ones.
    let mut values = Vec::new();
    for (i, x) in random(5, 2000).enumerate() {
        let length = if i % 300 == 7 { 5000 } else { x % 40 + 1 };
        values.extend((0..length).map(|_| Some((x >> 40) as i64 % 30)));
    }
    let file = File::written::<Int64Type>("INT64", &values, false, Settings::of(None));
    let expected: Vec<_> =
        values.iter().map(|value| value.map(|x| x.to_le_bytes().to_vec())).collect();
    assert_decodes("runs", &file, PageOutput::Integer { width: 8 }, &expected);
    // By hand: every run is of one value.
    let mut content = vec![3u8];
    let mut expected = Vec::new();
    for i in 0..10_000u32 {
        let code = i * 5 % 8;
        content.extend([2, code as u8]);
        expected.push(Some(i64::from(code * 11).to_le_bytes().to_vec()));
    }
    let mut file = File::by_hand(Physical::Int64, PageEncoding::Dictionary, 10_000, content);
    let entries: Vec<u8> = (0..8u32).flat_map(|code| i64::from(code * 11).to_le_bytes()).collect();
    file.dictionary = Some((entries, 8));
    assert_decodes("runs of one", &file, PageOutput::Integer { width: 8 }, &expected);
}

#[test]
fn the_example_of_the_kernels_is_read() {
    let content = vec![3, 0x0a, 4, 3, 0xd1, 0x58, 0x1f];
    let mut file = File::by_hand(Physical::Int32, PageEncoding::Dictionary, 13, content);
    file.dictionary = Some(((0..8u32).flat_map(u32::to_le_bytes).collect(), 8));
    let codes = [4u32, 4, 4, 4, 4, 1, 2, 3, 4, 5, 6, 7, 0];
    let expected: Vec<_> = codes.iter().map(|code| Some(code.to_le_bytes().to_vec())).collect();
    assert_decodes("hybrid", &file, PageOutput::Integer { width: 4 }, &expected);
}

#[test]
fn the_last_group_of_packed_bits_may_be_cut_off() {
    // 20 codes of 8 bits in 3 groups, as some writers leave them.
    let mut content = vec![8u8, 7];
    content.extend(0..20u8);
    let mut file = File::by_hand(Physical::Int32, PageEncoding::Dictionary, 20, content);
    file.dictionary = Some(((100..120u32).flat_map(u32::to_le_bytes).collect(), 20));
    let expected: Vec<_> = (100..120u32).map(|x| Some(x.to_le_bytes().to_vec())).collect();
    assert_decodes("cut off", &file, PageOutput::Integer { width: 4 }, &expected);
}

fn big_endian(value: i128, length: usize) -> FixedLenByteArray {
    ByteArray::from(value.to_be_bytes()[16 - length..].to_vec()).into()
}

#[test]
fn decimals_are_read_from_integers_and_bytes() {
    let bound = |digits: u32| Some(10u128.pow(digits) - 1);
    for encoding in [None, Some(Written::PLAIN), Some(Written::BYTE_STREAM_SPLIT)] {
        let narrow = |width, digits| PageOutput::Decimal { width, bound: bound(digits), factor: 1 };
        let long = |x: &i32| i64::from(*x).to_le_bytes().to_vec();
        check::<Int32Type>("INT32", encoding, narrow(8, 4), |x| (x % 19_999) as i32 - 9999, long);
        let wide = |x: &i64| i128::from(*x).to_le_bytes().to_vec();
        check::<Int64Type>("INT64", encoding, narrow(16, 18), |x| x as i64 / 10, wide);
        for length in [1, 5, 8, 9, 16] {
            let kind = format!("FIXED_LEN_BYTE_ARRAY({length})");
            let value = move |x: u64| {
                (i128::from(x as i64) * 0x1_0000_0001_0000_0001) >> (128 - 8 * length)
            };
            let read = move |x: &FixedLenByteArray| {
                let bytes = x.data();
                let fill = if bytes[0] & 128 != 0 { 255 } else { 0 };
                let mut all = [fill; 16];
                all[16 - length..].copy_from_slice(bytes);
                i128::from_be_bytes(all)
            };
            let make = move |x: u64| big_endian(value(x), length);
            let output = PageOutput::Decimal { width: 16, bound: None, factor: 1 };
            check::<FixedLenByteArrayType>(&kind, encoding, output, make, move |x| {
                read(x).to_le_bytes().to_vec()
            });
            if length <= 8 {
                let output = PageOutput::Decimal { width: 8, bound: None, factor: 1 };
                let narrow = move |x: &FixedLenByteArray| (read(x) as i64).to_le_bytes().to_vec();
                check::<FixedLenByteArrayType>(&kind, encoding, output, make, narrow);
            }
        }
    }
    // Longer than 128 bits, as long as the value is not.
    let kind = "FIXED_LEN_BYTE_ARRAY(20)";
    let make = |x: u64| {
        let value = i128::from(x as i64) * 3;
        let mut bytes = vec![if value < 0 { 255 } else { 0 }; 4];
        bytes.extend(value.to_be_bytes());
        FixedLenByteArray::from(ByteArray::from(bytes))
    };
    let becomes = |x: &FixedLenByteArray| x.data()[4..].iter().rev().copied().collect();
    let output = PageOutput::Decimal { width: 16, bound: bound(38), factor: 1 };
    check::<FixedLenByteArrayType>(kind, Some(Written::PLAIN), output, make, becomes);
}

#[test]
fn decimals_beyond_their_digits_are_damage() {
    let output = PageOutput::Decimal { width: 8, bound: Some(999), factor: 1 };
    let fault = |physical, content: Vec<u8>| {
        let file = File::by_hand(physical, PageEncoding::Plain, 1, content);
        decode_all(&device(1), &[TestChunk { file: &file, output }]).err()
    };
    assert_eq!(fault(Physical::Int32, 999i32.to_le_bytes().to_vec()), None);
    assert_eq!(fault(Physical::Int32, (-999i32).to_le_bytes().to_vec()), None);
    assert_eq!(fault(Physical::Int32, 1000i32.to_le_bytes().to_vec()), Some((0, 38)));
    assert_eq!(fault(Physical::Int64, (-1000i64).to_le_bytes().to_vec()), Some((0, 38)));
    assert_eq!(fault(Physical::FixedLenByteArray(2), vec![3, 0xe7]), None);
    assert_eq!(fault(Physical::FixedLenByteArray(2), vec![3, 0xe8]), Some((0, 38)));
    assert_eq!(fault(Physical::FixedLenByteArray(20), vec![7; 20]), Some((0, 38)));
    let output = PageOutput::Decimal { width: 8, bound: None, factor: 1 };
    let file = File::by_hand(
        Physical::FixedLenByteArray(9),
        PageEncoding::Plain,
        1,
        vec![1, 0, 0, 0, 0, 0, 0, 0, 0],
    );
    assert_eq!(decode_all(&device(1), &[TestChunk { file: &file, output }]).err(), Some((0, 38)));
}

#[test]
fn timestamps_of_12_bytes_are_read_as_the_crate_does() {
    let make = |x: u64| {
        let mut value = Int96::new();
        let nanos = x % 86_400_000_000_000;
        value.set_data(nanos as u32, (nanos >> 32) as u32, 2_440_588 + (x >> 50) as u32 - 8000);
        value
    };
    for encoding in [None, Some(Written::PLAIN)] {
        let output = |unit| PageOutput::Int96 { unit, factor: 1 };
        let kind = "INT96";
        check::<Int96Type>(kind, encoding, output(Int96Unit::Nanosecond), make, |x| {
            x.to_nanos().to_le_bytes().to_vec()
        });
        check::<Int96Type>(kind, encoding, output(Int96Unit::Microsecond), make, |x| {
            x.to_micros().to_le_bytes().to_vec()
        });
        check::<Int96Type>(kind, encoding, output(Int96Unit::Millisecond), make, |x| {
            x.to_millis().to_le_bytes().to_vec()
        });
        check::<Int96Type>(kind, encoding, output(Int96Unit::Second), make, |x| {
            x.to_seconds().to_le_bytes().to_vec()
        });
    }
    let far = File::by_hand(
        Physical::Int96,
        PageEncoding::Plain,
        1,
        [[0; 8].as_slice(), &[255, 255, 255, 127]].concat(),
    );
    let decoded = |unit| {
        decode_all(
            &device(1),
            &[TestChunk { file: &far, output: PageOutput::Int96 { unit, factor: 1 } }],
        )
        .err()
    };
    assert_eq!(decoded(Int96Unit::Nanosecond), Some((0, 39)));
    assert_eq!(decoded(Int96Unit::Second), None);
}

#[test]
fn columns_of_many_kinds_are_decoded_in_one_call() {
    let integers: Vec<_> = with_nulls(NullPattern::Some, random(1, 7000).map(|x| x as i32 % 50));
    let floats: Vec<_> = random(2, 9000).map(|x| Some(x as f64)).collect();
    let flags: Vec<_> = with_nulls(NullPattern::Runs, random(3, 5000).map(|x| x % 2 == 0));
    let first = File::written::<Int32Type>("INT32", &integers, true, Settings::of(None));
    let second =
        File::written::<DoubleType>("DOUBLE", &floats, false, Settings::of(Some(Written::PLAIN)));
    let third =
        File::written::<BoolType>("BOOLEAN", &flags, true, Settings::of(Some(Written::RLE)));
    for device in devices() {
        let columns = [
            TestChunk { file: &first, output: PageOutput::Integer { width: 4 } },
            TestChunk { file: &second, output: PageOutput::Float64 },
            TestChunk { file: &third, output: PageOutput::Bool },
        ];
        let decoded = decode_all(&device, &columns).unwrap_or_else(|fault| panic!("{fault:?}"));
        let expected: Vec<_> =
            integers.iter().map(|x| x.map(|x| x.to_le_bytes().to_vec())).collect();
        assert_eq!(decoded[0].values, expected);
        let expected: Vec<_> = floats.iter().map(|x| x.map(|x| x.to_le_bytes().to_vec())).collect();
        assert_eq!(decoded[1].values, expected);
        let expected: Vec<_> = flags.iter().map(|x| x.map(|x| vec![x as u8])).collect();
        assert_eq!(decoded[2].values, expected);
        assert_eq!(decoded[1].nulls, 0);
        assert_eq!(decoded[2].nulls, flags.iter().filter(|x| x.is_none()).count() as u64);
    }
}
