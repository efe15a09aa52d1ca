use super::*;
use crate::ops::scan::exclusive_scan_u32;
use crate::ops::testing::*;

const NO_ROW: u32 = u32::MAX;

/// A mask of these rows.
fn kept_rows(device: &Device, keep: &[bool]) -> (KeptRows, u64) {
    let tiles = keep.chunks(MASK_TILE as usize);
    let counts: Vec<u32> =
        tiles.map(|tile| tile.iter().filter(|keep| **keep).count() as u32).collect();
    let words = keep
        .chunks(32)
        .map(|bits| bits.iter().rev().fold(0u32, |word, bit| word << 1 | u32::from(*bit)));
    let mask = Arc::new(upload(device, &words.collect::<Vec<u32>>()));
    let begins = exclusive_scan_u32(device, &upload(device, &counts), counts.len() as u64).unwrap();
    let rows = KeptRows { mask, begins: Arc::new(begins), rows: keep.len() as u64 };
    let kept = rows.kept(0).unwrap();
    (rows, kept)
}

/// Values of a width as their lowest bytes, from row `offset` on of a longer column.
fn values(words: &[u64], width: usize) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| [word.to_le_bytes(), (word ^ 7).to_le_bytes()].concat()[..width].to_vec())
        .collect()
}

#[test]
fn columns_of_every_width_are_gathered_by_their_own_indices() {
    const OFFSET: usize = 9;
    for device in devices() {
        for rows in [0usize, 1, 31, 33, 1023, 1024, 1025, 5000] {
            let words: Vec<u64> = random(2, rows.max(700) + OFFSET).collect();
            let gaps: Vec<u32> = random(1, rows + 5)
                .map(|x| if x % 3 == 0 { NO_ROW } else { (x % 700) as u32 })
                .collect();
            let index = upload(&device, &gaps);
            let sources: Vec<Buffer> = [1, 2, 4, 8, 16]
                .map(|width| upload(&device, &values(&words, width)))
                .into_iter()
                .collect();
            // 22 columns: two launches. The index from its sixth number on, or none.
            let mut columns = vec![];
            for through in [true, false] {
                for (source, width) in sources.iter().zip([1, 2, 4, 8, 16]) {
                    for otherwise in [0, u64::from(NO_ROW)] {
                        columns.push(GatherColumn {
                            how: Gathered::Values { width, otherwise },
                            values: source.slice(OFFSET * width),
                            index: through.then(|| index.slice(20)),
                            out: (Arc::new(device.alloc("test", rows * width).unwrap()), 0),
                        });
                    }
                }
                columns.push(GatherColumn {
                    how: Gathered::Present,
                    values: sources[0].slice(0),
                    index: through.then(|| index.slice(20)),
                    out: (Arc::new(device.alloc("test", rows).unwrap()), 0),
                });
            }
            gather_columns(&device, &columns, rows as u64).unwrap();
            for column in &columns {
                let number = |row: usize| match column.index {
                    Some(_) => Some(gaps[5 + row])
                        .filter(|number| *number != NO_ROW)
                        .map(|number| number as usize),
                    None => Some(row),
                };
                let expected: Vec<u8> = match column.how {
                    Gathered::Present => {
                        (0..rows).map(|row| u8::from(number(row).is_some())).collect()
                    }
                    Gathered::Values { width, otherwise } => {
                        let none = (u128::from(otherwise)).to_le_bytes()[..width].to_vec();
                        let value = |at: usize| values(&words[OFFSET + at..=OFFSET + at], width);
                        (0..rows)
                            .flat_map(|row| number(row).map_or_else(|| none.clone(), value))
                            .collect()
                    }
                    other => unreachable!("{other:?} is not asked for"),
                };
                assert_eq!(
                    read::<u8>(&column.out.0, expected.len()),
                    expected,
                    "{:?} of {rows}",
                    column.how
                );
            }
        }
    }
}

#[test]
fn columns_of_every_width_keep_the_rows_of_a_mask() {
    for device in devices() {
        for rows in [1usize, 32, 33, 4095, 4096, 4097, 20_000] {
            // All, none, half, few (warps by themselves), and those at both ends.
            for share in [1, 0, 2, 40, rows as u64 - 1] {
                let keep: Vec<bool> = match share {
                    last if last > 40 => {
                        (0..rows as u64).map(|row| row == 0 || row == last).collect()
                    }
                    0 => vec![false; rows],
                    share => random(3, rows).map(|x| x % share == 0).collect(),
                };
                let words: Vec<u64> = random(4, rows).collect();
                let turned: Vec<u32> = (0..rows as u32).rev().collect();
                let index = upload(&device, &turned);
                let (kept_rows, kept) = kept_rows(&device, &keep);
                assert_eq!(kept, keep.iter().filter(|keep| **keep).count() as u64);
                for width in [1, 2, 4, 8, 16] {
                    let source = upload(&device, &values(&words, width));
                    let column = |index| GatherColumn {
                        how: Gathered::Values { width, otherwise: 0 },
                        values: source.slice(0),
                        index,
                        out: (Arc::new(device.alloc("test", kept as usize * width).unwrap()), 0),
                    };
                    let columns = [column(None), column(Some(index.slice(0)))];
                    gather_kept(&device, &columns, &kept_rows, kept).unwrap();
                    let of = |number: &dyn Fn(usize) -> usize| -> Vec<u8> {
                        let kept = (0..rows).filter(|row| keep[*row]);
                        kept.flat_map(|row| values(&words[number(row)..=number(row)], width))
                            .collect()
                    };
                    assert_eq!(
                        read::<u8>(&columns[0].out.0, kept as usize * width),
                        of(&|row| row)
                    );
                    assert_eq!(
                        read::<u8>(&columns[1].out.0, kept as usize * width),
                        of(&|row| rows - 1 - row)
                    );
                }
            }
        }
    }
}

#[test]
fn keys_are_made_digit_by_digit_of_integers_of_every_type() {
    let device = device(3);
    macro_rules! check {
        ($($t:ty),*) => {$(
            let values: Vec<$t> = random(8, 1000).map(|x| x as $t).chain([<$t>::MIN, <$t>::MAX, 0]).collect();
            let source = upload(&device, &values);
            let (less, rows) = ((<$t>::MIN as i128) as u64, values.len());
            let keys = Arc::new(device.alloc("test", rows * 8).unwrap());
            let digit = |times| GatherColumn {
                how: Gathered::Digit { width: size_of::<$t>(), signed: <$t>::MIN != 0, less, times },
                values: source.slice(0),
                index: None,
                out: (keys.clone(), 0),
            };
            gather_columns(&device, &[digit(0), digit(1 << 20)], rows as u64).unwrap();
            let digits = values.iter().map(|value| (*value as u64).wrapping_sub(less));
            let expected: Vec<u64> = digits.map(|digit| digit.wrapping_mul((1 << 20) + 1)).collect();
            assert_eq!(read::<u64>(&keys, rows), expected, stringify!($t));
        )*};
    }
    check!(i8, i16, i32, i64, u8, u16, u32, u64, i128);
}

#[test]
fn columns_are_written_side_by_side() {
    for device in devices() {
        for rows in [1usize, 1024, 1025, 3000] {
            let (wide, narrow): (Vec<u64>, Vec<u64>) =
                (random(1, rows).collect(), random(2, rows).collect());
            let narrow: Vec<u32> = narrow.into_iter().map(|x| x as u32).collect();
            let (a, b) = (upload(&device, &wide), upload(&device, &narrow));
            let records = Arc::new(device.alloc_zeroed("test", rows * 16).unwrap());
            let column = |values, width, begin| GatherColumn {
                how: Gathered::Strided { width, stride: 16 / width },
                values,
                index: None,
                out: (records.clone(), begin),
            };
            gather_columns(
                &device,
                &[column(a.slice(0), 8, 0), column(b.slice(0), 4, 12)],
                rows as u64,
            )
            .unwrap();
            let expected: Vec<u64> =
                wide.iter().zip(&narrow).flat_map(|(a, b)| [*a, u64::from(*b) << 32]).collect();
            assert_eq!(read::<u64>(&records, rows * 2), expected);
        }
    }
}
