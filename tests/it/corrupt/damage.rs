//! Ways to damage a Parquet file.

use rand::Rng;
use rand::rngs::StdRng;

/// A damaged copy, with what was done to it.
pub fn damaged(whole: &[u8], random: &mut StdRng) -> (String, Vec<u8>) {
    let mut bytes = whole.to_vec();
    let times = [1, 1, 1, 2, 2, 5][random.random_range(0..6)];
    let done: Vec<String> = (0..times).map(|_| damage(&mut bytes, random)).collect();
    (done.join("; "), bytes)
}

fn damage(bytes: &mut Vec<u8>, random: &mut StdRng) -> String {
    if bytes.len() < 16 {
        bytes.push(random.random());
        return "a byte more".into();
    }
    let kind = random.random_range(0..16);
    match kind {
        0..=2 => {
            let at = random.random_range(0..bytes.len());
            bytes[at] ^= 1 << random.random_range(0..8);
            format!("a bit at {at}")
        }
        3 => {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
            format!("a byte at {at}")
        }
        4 | 5 => {
            let run = run(bytes, random, 64);
            let with: Option<u8> =
                [Some(0), Some(0xFF), Some(0x80), None][random.random_range(0..4)];
            bytes[run.clone()]
                .iter_mut()
                .for_each(|byte| *byte = with.unwrap_or_else(|| random.random()));
            format!("{with:?} over {run:?}")
        }
        6 => {
            let most = bytes.len();
            let length = if random.random() {
                most - random.random_range(1..40.min(most))
            } else {
                random.random_range(0..most)
            };
            bytes.truncate(length);
            format!("cut at {length}")
        }
        7 => {
            let (one, two) = (run(bytes, random, 200), run(bytes, random, 200));
            let length = one.len().min(two.len());
            (0..length).for_each(|at| bytes.swap(one.start + at, two.start + at));
            format!("{length} bytes at {} and {} swapped", one.start, two.start)
        }
        8 => {
            let run = run(bytes, random, 100);
            bytes.drain(run.clone());
            format!("without {run:?}")
        }
        9 => {
            let run = run(bytes, random, 100);
            let copy = bytes[run.clone()].to_vec();
            let at = random.random_range(0..bytes.len());
            bytes.splice(at..at, copy);
            format!("{run:?} once more at {at}")
        }
        10..=12 => footer_field(bytes, random).unwrap_or_else(|| "no footer to damage".into()),
        _ => page_field(bytes, random).unwrap_or_else(|| "no page to damage".into()),
    }
}

fn run(bytes: &[u8], random: &mut StdRng, most: usize) -> std::ops::Range<usize> {
    let at = random.random_range(0..bytes.len());
    at..(at + random.random_range(1..=most)).min(bytes.len())
}

/// An integer of any kind, great and small ones often.
fn integer(random: &mut StdRng) -> u64 {
    match random.random_range(0..8) {
        0 => 0,
        1 => random.random_range(0..20),
        2 => u64::from(u32::MAX) - random.random_range(0..3),
        3 => u64::MAX - random.random_range(0..3),
        4 => 1 << random.random_range(0..64),
        5 => (1 << random.random_range(1..64)) - 1,
        6 => random.random_range(0..100_000),
        _ => random.random(),
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![];
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Another integer in the footer, whose length is mended.
fn footer_field(bytes: &mut Vec<u8>, random: &mut StdRng) -> Option<String> {
    let end = bytes.len().checked_sub(8)?;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().ok()?) as usize;
    let begin = end.checked_sub(length)?;
    let mut fields = vec![];
    integers(&bytes[begin..end], &mut 0, 12, 0, &mut fields)?;
    let field = fields.get(random.random_range(0..fields.len().max(1)))?.clone();
    let value = varint(integer(random));
    let place = begin + field.start..begin + field.end;
    let text = format!("footer's integer at {place:?} is {value:02x?}");
    bytes.splice(place, value.iter().copied());
    let (end, length) = (bytes.len() - 8, length + value.len() - field.len());
    bytes[end..end + 4].copy_from_slice(&(length as u32).to_le_bytes());
    Some(text)
}

/// Another integer in the header of a page; what follows stays where it is if it has as many bytes.
fn page_field(bytes: &mut Vec<u8>, random: &mut StdRng) -> Option<String> {
    // A header begins with the type of the page, and the sizes of its content.
    let heads: Vec<usize> = (4..bytes.len() - 8)
        .filter(|at| bytes[*at] == 0x15 && bytes[*at + 1] <= 6 && bytes[*at + 2] == 0x15)
        .collect();
    let at = *heads.get(random.random_range(0..heads.len().max(1)))?;
    let mut fields = vec![];
    integers(&bytes[at..], &mut 0, 12, 0, &mut fields)?;
    let field = fields.get(random.random_range(0..fields.len().max(1)))?.clone();
    let place = at + field.start..at + field.end;
    let value = match random.random_range(0..3) {
        // As many bytes as there were.
        0 | 1 => {
            let mut value: Vec<u8> =
                (0..place.len()).map(|_| random.random::<u8>() | 0x80).collect();
            *value.last_mut()? &= 0x7F;
            value
        }
        _ => varint(integer(random)),
    };
    let text = format!("page's integer at {place:?} is {value:02x?}");
    bytes.splice(place, value);
    Some(text)
}

/// The places of all integers in a Thrift value of a type, sizes of lists and texts among them.
fn integers(
    bytes: &[u8],
    at: &mut usize,
    kind: u8,
    depth: usize,
    fields: &mut Vec<std::ops::Range<usize>>,
) -> Option<()> {
    let number = |at: &mut usize, fields: &mut Vec<_>| {
        let (begin, mut value, mut shift) = (*at, 0u64, 0);
        loop {
            let byte = *bytes.get(*at)?;
            *at += 1;
            value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte < 0x80 {
                fields.push(begin..*at);
                return Some(value);
            }
        }
    };
    if depth > 20 {
        return None;
    }
    match kind {
        1 | 2 => {}
        3 => *at += 1,
        4..=6 => {
            number(at, fields)?;
        }
        7 => *at += 8,
        8 => {
            let length = number(at, fields)? as usize;
            *at = at.checked_add(length)?;
        }
        9 | 10 => {
            let header = *bytes.get(*at)?;
            // Sizes of short lists share a byte with their type.
            if header >> 4 < 15 {
                fields.push(*at..*at + 1);
            }
            *at += 1;
            let size = if header >> 4 < 15 { (header >> 4).into() } else { number(at, fields)? };
            for _ in 0..size {
                match header & 15 {
                    1 | 2 => *at += 1,
                    of => integers(bytes, at, of, depth + 1, fields)?,
                }
                bytes.get(*at)?;
            }
        }
        12 => loop {
            let header = *bytes.get(*at)?;
            *at += 1;
            if header == 0 {
                break;
            }
            if header >> 4 == 0 {
                number(at, fields)?;
            }
            integers(bytes, at, header & 15, depth + 1, fields)?;
        },
        _ => return None,
    }
    Some(())
}
