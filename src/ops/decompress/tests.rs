mod lz4_sequences;

use super::*;
use crate::ops::testing::*;

/// A compressed page of a test.
#[derive(Clone)]
struct Page {
    text: Vec<u8>,
    len: usize,
    in_place: bool,
}

impl Page {
    fn new(text: Vec<u8>, len: usize) -> Self {
        Page { text, len, in_place: false }
    }
}

/// What came of a call: each page's content, whether it stayed in its source, and its fault.
struct Outcome {
    contents: Vec<Vec<u8>>,
    stayed: Vec<bool>,
    faults: Vec<Option<u32>>,
}

const GUARD: u8 = 0xA5;

/// Pages in a device's memory, sources and targets at all alignments.
struct Laid {
    blocks: Vec<Block>,
    sources: Vec<u8>,
    source: Buffer,
    target: Buffer,
    places: Buffer,
    faults: Buffer,
}

fn lay(device: &Device, pages: &[Page]) -> Laid {
    let mut sources = vec![0xEE; 16];
    let mut room = 32;
    let (mut from, mut to) = (vec![], vec![]);
    for (i, page) in pages.iter().enumerate() {
        sources.resize(sources.len().next_multiple_of(16) + i % 16, 0xEE);
        from.push(sources.len());
        sources.extend_from_slice(&page.text);
        // Every second one at the alignment of the reader's targets.
        room += usize::from(i % 2 == 1) * (i / 2 % 16);
        to.push(room);
        room = (room + page.len + 32).next_multiple_of(16);
    }
    sources.resize(sources.len() + 64, 0xEE);
    let source = upload(device, &sources);
    let target = device.alloc_filled("test", room, GUARD).unwrap();
    let places = device.alloc_filled("test", pages.len() * 8 + 8, 0xFF).unwrap();
    let faults = device.alloc_filled("test", pages.len() * 4 + 4, 0xFF).unwrap();
    let blocks = (pages.iter().enumerate())
        .map(|(i, page)| Block {
            page: i as u32,
            source: source.address() + from[i] as u64,
            source_len: page.text.len() as u32,
            target: target.address() + to[i] as u64,
            target_len: page.len as u32,
            in_place: page.in_place,
        })
        .collect();
    Laid { blocks, sources, source, target, places, faults }
}

/// How many Snappy pages cannot be cut.
fn uncut(device: &Device, pages: &[Page]) -> u32 {
    let laid = lay(device, pages);
    let words = snappy(device, &laid.blocks, &laid.places, &laid.faults).unwrap();
    read::<u32>(&words, 3)[2]
}

/// Decompresses all pages in one call, and looks whether anything but their targets was written.
fn run(device: &Device, codec: Codec, pages: &[Page]) -> Outcome {
    let Laid { blocks, sources, source, target, places, faults } = lay(device, pages);
    decompress(device, codec, &blocks, &places, &faults).unwrap();

    let mut faults: Vec<_> =
        (read::<u32>(&faults, pages.len() + 1).into_iter()).map(|fault| (fault != u32::MAX).then_some(fault)).collect();
    assert_eq!(faults.pop(), Some(None));
    let made = read::<u8>(&target, target.len());
    let mut expected = vec![GUARD; made.len()];
    let (mut contents, mut stayed) = (vec![], vec![]);
    let written = read::<u64>(&places, pages.len() + 1);
    assert_eq!(written[pages.len()], u64::MAX);
    for (block, &place) in blocks.iter().zip(&written) {
        let to = (block.target - target.address()) as usize;
        let own = to..to + block.target_len as usize;
        let stays = (block.source..block.source + u64::from(block.source_len)).contains(&place);
        if stays {
            assert!(block.in_place, "page {} may not stay in place", block.page);
            let at = (place - source.address()) as usize;
            contents.push(sources[at..at + own.len()].to_vec());
        } else {
            assert_eq!(place, block.target, "place of page {}", block.page);
            contents.push(made[own.clone()].to_vec());
            expected[own.clone()].copy_from_slice(&made[own]);
        }
        stayed.push(stays);
    }
    assert!(made == expected, "something outside of the targets was written");
    assert!(read::<u8>(&source, sources.len()) == sources, "sources were written");
    Outcome { contents, stayed, faults }
}

/// Asserts that pages come back.
fn check(device: &Device, codec: Codec, pages: &[Page], contents: &[Vec<u8>]) {
    let outcome = run(device, codec, pages);
    let lengths = |i: usize| (contents[i].len(), pages[i].text.len());
    for (i, fault) in outcome.faults.iter().enumerate() {
        assert_eq!(*fault, None, "page {i}: {:?}", lengths(i));
    }
    for (i, content) in contents.iter().enumerate() {
        let made = &outcome.contents[i];
        let wrong = (0..content.len()).find(|&at| made[at] != content[at]);
        assert_eq!(wrong, None, "page {i}: {:?}", lengths(i));
    }
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    random(seed, len.div_ceil(8)).flat_map(u64::to_le_bytes).take(len).collect()
}

/// Contents as pages have them: of one kind each, of `len` bytes.
fn contents(seed: u64, len: usize) -> Vec<Vec<u8>> {
    let words = |count: usize| random(seed, count);
    let cut = |mut all: Vec<u8>| {
        all.resize(len, 7);
        all
    };
    let text =
        ["furiously", " the", " quickly", " carefully ", "deposits", ". ", "ironic", " requests", "ly", " sleep"];
    let mut strings = vec![];
    for word in words(len / 4 + 2) {
        strings.extend_from_slice(text[(word % 10) as usize].as_bytes());
        if word >> 60 == 0 {
            strings.extend_from_slice(&word.to_le_bytes()[..(word >> 56 & 7) as usize]);
        }
    }
    vec![
        // Dictionaries of numbers, sorted and not; codes packed to 12 bits, runs of them.
        cut((0..len as u64 / 8).flat_map(|i| (i * 37 + 100_000).to_le_bytes()).collect()),
        cut(words(len / 8).flat_map(|x| (x % 10_000_000).to_le_bytes()).collect()),
        cut(words(len / 3 + 1)
            .flat_map(|x| ((x & 0xFFF) | (x >> 12 & 0x7F) << 12).to_le_bytes()[..3].to_vec())
            .collect()),
        cut(words(len / 40 + 1).flat_map(|x| vec![x as u8; (x >> 32) as usize % 80]).collect()),
        cut(strings),
        bytes(seed, len),
        vec![0; len],
    ]
}

fn snap(content: &[u8]) -> Vec<u8> {
    ::snap::raw::Encoder::new().compress_vec(content).unwrap()
}

fn lz4(content: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(content)
}

/// What a page is made of, by hand.
enum PagePiece<'a> {
    Literal(&'a [u8]),
    Copy { distance: usize, size: usize },
}
use PagePiece::{Copy, Literal};

fn made_of(pieces: &[PagePiece<'_>]) -> Vec<u8> {
    let mut content = vec![];
    for piece in pieces {
        match *piece {
            Literal(bytes) => content.extend_from_slice(bytes),
            Copy { distance, size } => (0..size).for_each(|_| content.push(content[content.len() - distance])),
        }
    }
    content
}

/// A Snappy page. Copies take the shortest form there is, or a longer one.
fn snappy_of(pieces: &[PagePiece<'_>], longer: usize) -> Vec<u8> {
    let mut text = varint(made_of(pieces).len());
    for piece in pieces {
        match *piece {
            Literal(bytes) => {
                let last = bytes.len() - 1;
                let needed = (0..5).find(|&n| last < if n == 0 { 60 } else { 1 << (8 * n) }).unwrap();
                let more = (needed + longer).min(4);
                text.push(if more == 0 { last << 2 } else { (59 + more) << 2 } as u8);
                text.extend_from_slice(&last.to_le_bytes()[..more]);
                text.extend_from_slice(bytes);
            }
            Copy { distance, size } if longer == 0 && distance < 2048 && (4..12).contains(&size) => {
                text.extend([(distance >> 8 << 5 | (size - 4) << 2 | 1) as u8, distance as u8]);
            }
            Copy { distance, size } if longer < 2 && distance < 65536 => {
                text.extend([((size - 1) << 2 | 2) as u8, distance as u8, (distance >> 8) as u8]);
            }
            Copy { distance, size } => {
                text.push(((size - 1) << 2 | 3) as u8);
                text.extend((distance as u32).to_le_bytes());
            }
        }
    }
    text
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = vec![];
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// An LZ4 page of literals and copies in turns; two of a kind get an empty literal or nothing
/// between them.
fn lz4_of(pieces: &[PagePiece<'_>]) -> Vec<u8> {
    let mut text = vec![];
    let mut literal: Vec<u8> = vec![];
    let more = |text: &mut Vec<u8>, size: usize| {
        if let Some(rest) = size.checked_sub(15) {
            text.extend(vec![255; rest / 255]);
            text.push((rest % 255) as u8);
        }
    };
    for piece in pieces {
        match *piece {
            Literal(bytes) => literal.extend_from_slice(bytes),
            Copy { distance, size } => {
                text.push((literal.len().min(15) << 4 | (size - 4).min(15)) as u8);
                more(&mut text, literal.len());
                text.append(&mut literal);
                text.extend((distance as u16).to_le_bytes());
                more(&mut text, size - 4);
            }
        }
    }
    text.push((literal.len().min(15) << 4) as u8);
    more(&mut text, literal.len());
    text.append(&mut literal);
    text
}

/// What the parquet crate reads of an LZ4 block, or nothing where it refuses it.
fn lz4_content(text: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut content = vec![0; len];
    let made = lz4_flex::block::decompress_into(text, &mut content).ok()?;
    (made == len).then_some(content)
}

const SIZES: [usize; 17] = [0, 1, 2, 3, 15, 16, 17, 60, 61, 62, 255, 257, 1023, 4099, 65535, 65536, 65537];

/// Contents of many sizes and kinds; the larger ones are of few kinds where `all` is false.
fn many_contents(all: bool) -> Vec<Vec<u8>> {
    let mut many = vec![];
    for (i, &len) in SIZES.iter().enumerate() {
        let kinds = contents(i as u64, len);
        let wanted = if all || len < 5000 { kinds.len() } else { 2 };
        many.extend(kinds.into_iter().cycle().skip(i).take(wanted));
    }
    many.extend(contents(99, 200_000).into_iter().skip(if all { 0 } else { 4 }));
    many.push(contents(98, 131_072).swap_remove(4));
    many
}

#[test]
fn snappy_pages_of_all_kinds_come_back_in_one_call() {
    for (i, device) in devices().iter().enumerate() {
        let contents = many_contents(i == 0);
        let pages: Vec<_> = contents.iter().map(|content| Page::new(snap(content), content.len())).collect();
        check(device, Codec::Snappy, &pages, &contents);
        assert_eq!(uncut(device, &pages), 0);
    }
}

#[test]
fn lz4_pages_of_all_kinds_come_back_in_one_call() {
    for (i, device) in devices().iter().enumerate() {
        let contents = many_contents(i == 0);
        let pages: Vec<_> = contents.iter().map(|content| Page::new(lz4(content), content.len())).collect();
        check(device, Codec::Lz4Raw, &pages, &contents);
    }
}

#[test]
fn pages_of_three_megabytes_come_back() {
    for device in device_and_gpu(0) {
        let content: Vec<u8> = [1, 4, 5, 3].iter().flat_map(|&kind| contents(5, 800_000).swap_remove(kind)).collect();
        check(&device, Codec::Snappy, &[Page::new(snap(&content), content.len())], std::slice::from_ref(&content));
        check(&device, Codec::Lz4Raw, &[Page::new(lz4(&content), content.len())], &[content]);
    }
}

#[test]
fn no_pages_are_nothing_to_do() {
    for device in device_and_gpu(0) {
        for codec in [Codec::Snappy, Codec::Lz4Raw] {
            assert!(run(&device, codec, &[]).contents.is_empty());
            // Parquet does not compress what is empty.
            check(&device, codec, &[Page::new(vec![], 0)], &[vec![]]);
        }
    }
}

#[test]
fn copies_of_every_distance_and_size_repeat_what_precedes_them() {
    let start = bytes(3, 70);
    for device in devices() {
        let (mut snappy, mut lz4, mut contents, mut lz4_contents) = (vec![], vec![], vec![], vec![]);
        for distance in 1..=70 {
            // Forward and backward, so that batches end at all of them.
            let sizes: Vec<usize> = if distance % 2 == 0 { (1..=64).collect() } else { (1..=64).rev().collect() };
            let mut pieces = vec![Literal(&start)];
            for &size in &sizes {
                pieces.push(Copy { distance, size });
                if size % 5 == 0 {
                    pieces.push(Literal(&start[..size]));
                }
            }
            contents.push(made_of(&pieces));
            snappy.push(Page::new(snappy_of(&pieces, distance % 3), contents[contents.len() - 1].len()));
            // LZ4's copies are of 4 bytes or more, of any size.
            let mut pieces = vec![Literal(&start)];
            for size in sizes.iter().map(|size| size * 3 + 1).chain([127, 128, 129, 1000, 20_000 + distance]) {
                pieces.push(Copy { distance, size });
                if size % 5 == 0 {
                    pieces.push(Literal(&start[..size % 69]));
                }
            }
            pieces.push(Literal(&start[..5]));
            lz4_contents.push(made_of(&pieces));
            lz4.push(Page::new(lz4_of(&pieces), lz4_contents[lz4_contents.len() - 1].len()));
        }
        check(&device, Codec::Snappy, &snappy, &contents);
        check(&device, Codec::Lz4Raw, &lz4, &lz4_contents);
    }
}

#[test]
fn chains_of_copies_within_a_batch_are_followed() {
    // As numbers of a dictionary: a byte or two of each differ from the one before. Chains lead
    // into copies that repeat.
    let mut words = random(12, 1 << 16);
    for device in devices() {
        let (mut pages, mut contents) = (vec![], vec![]);
        for kind in 0..12usize {
            let start: Vec<u8> = (0..16).map(|i| i * 11 + kind as u8).collect();
            let fresh = bytes(kind as u64, 4000);
            let mut pieces = vec![Literal(&start)];
            let mut made = 16;
            for i in 0..1500 {
                let word = words.next().unwrap() as usize;
                let distance = [8, 8, 16, 1 + word % 24][(kind + i / 100) % 4].min(made);
                let size = [5, 6, 1 + word / 64 % 20, 12][(kind / 3 + i / 50) % 4];
                pieces.push(Copy { distance, size });
                made += size;
                if (word / 4096).is_multiple_of(1 + kind) {
                    pieces.push(Literal(&fresh[i..i + 1 + word / 65536 % 3]));
                    made += 1 + word / 65536 % 3;
                }
            }
            contents.push(made_of(&pieces));
            pages.push(Page::new(snappy_of(&pieces, kind % 2), made));
        }
        check(&device, Codec::Snappy, &pages, &contents);
    }
}

#[test]
fn literals_of_every_size_are_read() {
    for device in devices() {
        let (mut snappy, mut lz4, mut contents) = (vec![], vec![], vec![]);
        let sizes =
            [1, 59, 60, 61, 62, 126, 127, 128, 129, 130, 255, 256, 257, 900, 1024, 1500, 65536, 70_000, 200_000];
        for (i, &size) in sizes.iter().enumerate() {
            let fresh = bytes(i as u64, size + 300);
            let pieces = [
                Literal(&fresh[..7]),
                Copy { distance: 3, size: 30 },
                Literal(&fresh[20..20 + size]),
                Copy { distance: size.min(60_000), size: 60 },
                Literal(&fresh[size..]),
                Literal(&fresh[..1 + size / 2]),
                Copy { distance: 1, size: 9 },
            ];
            let content = made_of(&pieces);
            for longer in 0..3 {
                snappy.push(Page::new(snappy_of(&pieces, longer), content.len()));
                lz4.push(Page::new(lz4_of(&pieces), content.len()));
                contents.push(content.clone());
            }
        }
        check(&device, Codec::Snappy, &snappy, &contents);
        check(&device, Codec::Lz4Raw, &lz4, &contents);
    }
}

#[test]
fn snappy_tokens_may_lie_across_parts_and_copies_reach_over_them() {
    let fresh = bytes(8, 300_000);
    let all = |range: std::ops::Range<usize>| -> Vec<PagePiece<'_>> { fresh[range].chunks(50).map(Literal).collect() };
    let mut pages: Vec<Vec<PagePiece<'_>>> = vec![];
    for shift in [0, 1, 35] {
        // 65,500 bytes in tokens of 50, then a literal up to the border, before it or over it.
        let mut pieces = all(0..65_500);
        pieces.push(Literal(&fresh[70_000..70_036 - shift]));
        pieces.extend(all(100_000..165_500));
        pieces.push(Copy { distance: 100, size: 36 });
        pieces.extend(all(200_000..210_000));
        pages.push(pieces);
    }
    for (distance, size) in [(1, 5), (60, 64), (65_536, 20), (100_000, 64), (131_000, 8)] {
        // Ends of tokens lie on the borders, and a copy in a later part reaches over them.
        let mut pieces = all(0..65_500);
        pieces.push(Literal(&fresh[..36]));
        pieces.extend(all(100_000..165_500));
        pieces.push(Literal(&fresh[3..39]));
        pieces.push(Copy { distance, size });
        pieces.extend(all(200_000..230_000));
        pages.push(pieces);
    }
    for device in devices() {
        let contents: Vec<_> = pages.iter().map(|pieces| made_of(pieces)).collect();
        let texts: Vec<_> = pages.iter().zip(&contents).map(|(p, c)| Page::new(snappy_of(p, 0), c.len())).collect();
        check(&device, Codec::Snappy, &texts, &contents);
        // All but the first have a token or a copy that reaches over a border.
        assert_eq!(uncut(&device, &texts), 7);
    }
}

#[test]
fn parts_with_literals_of_all_sizes_are_found() {
    // Literals of hundreds and thousands of bytes end anywhere in the windows in which tokens are
    // looked for, or lead over several of them. Tokens end where parts do.
    let fresh = bytes(21, 80_000);
    for device in devices() {
        let (mut pages, mut contents) = (vec![], vec![]);
        for most in [100, 2000, 12_000, 40_000] {
            let mut words = random(most as u64, 1 << 16);
            let mut pieces = vec![];
            for _ in 0..3 {
                let mut made = 0;
                while made < PART as usize {
                    let word = words.next().unwrap() as usize;
                    let room = PART as usize - made;
                    let size = match word % 4 {
                        0 => 1 + word / 64 % most,
                        _ => 1 + word / 64 % 64,
                    }
                    .min(room);
                    if word % 4 < 2 || made == 0 {
                        let at = word / (1 << 32) % 40_000;
                        pieces.push(Literal(&fresh[at..at + size]));
                    } else {
                        let distance = 1 + word / (1 << 32) % made;
                        pieces.push(Copy { distance, size: size.min(64) });
                    }
                    made += size;
                }
            }
            contents.push(made_of(&pieces));
            pages.push(Page::new(snappy_of(&pieces, 0), contents[contents.len() - 1].len()));
        }
        check(&device, Codec::Snappy, &pages, &contents);
        assert_eq!(uncut(&device, &pages), 0);
    }
}

#[test]
fn starts_are_found_where_guesses_are_never_right() {
    // Copies of 4 from 8 back: from a second byte on, a path of literals of 3 meets no first byte.
    let start = bytes(30, 8);
    let copies = |count: usize| std::iter::repeat_with(|| Copy { distance: 8, size: 4 }).take(count);
    for device in devices() {
        let (mut pages, mut contents) = (vec![], vec![]);
        for i in 0..6 {
            let cut = [8, 4, 1][i % 3];
            let mut pieces = vec![];
            for count in [(PART as usize - 8) / 4, 9_000 + i] {
                pieces.push(Literal(&start[..cut]));
                pieces.extend((cut < 8).then(|| Literal(&start[cut..])));
                pieces.extend(copies(count));
            }
            pieces.extend((i % 2 == 1).then(|| Literal(&start[i..])));
            contents.push(made_of(&pieces));
            pages.push(Page::new(snappy_of(&pieces, 0), contents[i].len()));
        }
        check(&device, Codec::Snappy, &pages, &contents);
        assert_eq!(uncut(&device, &pages), 0);
    }
}

#[test]
fn small_literals_in_long_forms_are_found_in_pages_of_several_parts() {
    let fresh = bytes(31, 40_000);
    for device in devices() {
        let (mut pages, mut contents) = (vec![], vec![]);
        for longer in 0..3 {
            let mut words = random(32, 1 << 16);
            let mut pieces = vec![];
            for _ in 0..2 {
                let mut made = 0;
                while made < PART as usize {
                    let word = words.next().unwrap() as usize;
                    let size = (1 + word / 64 % 9).min(PART as usize - made);
                    if !word.is_multiple_of(4) || made == 0 {
                        pieces.push(Literal(&fresh[word / 65536 % 39_000..][..size]));
                    } else {
                        pieces.push(Copy { distance: 1 + word / 65536 % made, size });
                    }
                    made += size;
                }
            }
            pieces.push(Literal(&fresh[..77]));
            contents.push(made_of(&pieces));
            pages.push(Page::new(snappy_of(&pieces, longer), contents[longer].len()));
        }
        check(&device, Codec::Snappy, &pages, &contents);
        assert_eq!(uncut(&device, &pages), 0);
    }
}

#[test]
fn pages_of_one_literal_stay_in_place_where_they_may() {
    for device in devices() {
        for codec in [Codec::Snappy, Codec::Lz4Raw] {
            let (mut pages, mut contents, mut stay) = (vec![], vec![], vec![]);
            for (i, size) in [1, 14, 15, 16, 60, 61, 270, 5000, 65_536, 65_537, 150_000].into_iter().enumerate() {
                let fresh = bytes(i as u64, size + 10);
                for in_place in [true, false] {
                    for pieces in
                        [vec![Literal(&fresh[..size])], vec![Literal(&fresh[..size]), Copy { distance: 1, size: 4 }]]
                    {
                        let text = if codec == Codec::Snappy { snappy_of(&pieces, 0) } else { lz4_of(&pieces) };
                        contents.push(made_of(&pieces));
                        stay.push(in_place && pieces.len() == 1);
                        pages.push(Page { text, len: contents[contents.len() - 1].len(), in_place });
                    }
                }
            }
            check(&device, codec, &pages, &contents);
            assert_eq!(run(&device, codec, &pages).stayed, stay);
        }
    }
}

#[test]
fn damage_is_named() {
    let large = |tail: &[u8], len: usize| {
        // 65,536 bytes of zeros, then the tokens given.
        let mut text = varint(len);
        text.extend([0, 0]);
        text.extend([(63 << 2 | 2), 1, 0].repeat(1023));
        text.extend([(62 << 2 | 2), 1, 0]);
        text.extend_from_slice(tail);
        (text, len)
    };
    let snappy: Vec<(u32, (Vec<u8>, usize))> = vec![
        (1, (vec![], 3)),
        (1, (vec![4, 8, 1, 2, 3], 3)),
        (1, (vec![0x83, 0x80, 0x80, 0x80, 0x80, 0x80], 3)),
        (1, (vec![0x83], 3)),
        (1, (vec![0xFF; 20], 200_000)),
        (2, (vec![3, 12, 1, 2], 3)),
        (2, (vec![3, 0xF0], 3)),
        (2, (vec![3, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF], 3)),
        (2, (vec![9, 0, 7, 2 << 2 | 2, 1], 9)),
        (3, (vec![3, 16, 1, 2, 3, 4, 5], 3)),
        (3, (vec![3, 0, 7, 62 << 2 | 2, 1, 0], 3)),
        (4, (vec![5, 1, 1], 5)),
        (4, (vec![6, 4, 1, 2, 1, 3], 6)),
        (4, (vec![6, 4, 1, 2, 1, 0], 6)),
        (4, (vec![6, 4, 1, 2, 15, 0xFF, 0xFF, 0xFF, 0xFF], 6)),
        (5, (vec![3], 3)),
        (5, (vec![4, 8, 1, 2, 3], 4)),
        (5, large(&[], 70_000)),
        (5, large(&[0, 1], 65_538)),
        (2, large(&[20, 1], 70_000)),
        (2, large(&[2], 65_540)),
        (2, large(&[0xFC, 0xFF, 0xFF, 0xFF, 0xFF], 65_540)),
        (3, large(&[0, 1, 0, 2, 0, 3], 65_538)),
        (4, large(&[0, 9, 3 << 2 | 3, 2, 0, 1, 0], 65_541)),
        (4, large(&[0, 9, 3 << 2 | 2, 0, 0], 65_541)),
    ];
    let lz4_cases: Vec<(u32, (Vec<u8>, usize))> = vec![
        (2, (vec![], 3)),
        (2, (vec![0x30, 1, 2], 3)),
        (2, (vec![0xF0], 30)),
        (2, ([vec![0xF0], vec![255; 100]].concat(), 30)),
        (2, (vec![0x11, 1, 1], 30)),
        (2, (vec![0x1F, 1, 1, 0], 30)),
        (3, (vec![0x40, 1, 2, 3, 4], 3)),
        (3, ([vec![0xF0, 255, 20], vec![7; 290]].concat(), 200)),
        (3, (vec![0x10, 1, 1, 0], 4)),
        (3, (vec![0x1F, 1, 1, 0, 255, 255, 0], 400)),
        (4, (vec![0x10, 1, 2, 0], 5)),
        (4, (vec![0x10, 1, 0, 0], 5)),
        (4, (vec![0x1F, 1, 2, 0, 255, 0], 1 + 4 + 15 + 255)),
        (5, (vec![0x20, 1, 2], 3)),
        (2, (vec![0x10, 1, 1, 0], 6)),
        (2, (vec![0x10, 1, 1, 0], 5)),
        (5, (vec![0x10, 1, 1, 0, 0x10, 1], 7)),
    ];
    for device in devices() {
        for (codec, cases) in [(Codec::Snappy, &snappy), (Codec::Lz4Raw, &lz4_cases)] {
            for (code, (text, len)) in cases {
                // A good page before and behind it.
                let good = [5u8; 40].to_vec();
                let page = Page::new(if codec == Codec::Snappy { snap(&good) } else { lz4(&good) }, 40);
                for in_place in [false, true] {
                    let bad = Page { text: text.clone(), len: *len, in_place };
                    let outcome = run(&device, codec, &[page.clone(), bad, page.clone()]);
                    let expected = [None, Some(*code), None];
                    assert_eq!(outcome.faults, expected, "{codec:?} {:?}", &text[..text.len().min(20)]);
                    assert!(outcome.contents[0] == good && outcome.contents[2] == good);
                }
            }
        }
        let both = [Page::new(vec![3], 3), Page::new(vec![9], 3)];
        assert_eq!(run(&device, Codec::Snappy, &both).faults, [Some(5), Some(1)]);
    }
    assert!((1..=5).all(|code| damage(code).is_some()) && damage(0).is_none() && damage(6).is_none());
}

/// Decompresses damaged pages in one call and asks for the content that the reference gives, or a
/// fault where that gives none. How many there are of both.
fn compare(device: &Device, codec: Codec, pages: &[Page]) -> (usize, usize) {
    let expected = |page: &Page| match codec {
        Codec::Snappy => ::snap::raw::Decoder::new().decompress_vec(&page.text).ok().filter(|c| c.len() == page.len),
        Codec::Lz4Raw => lz4_content(&page.text, page.len),
    };
    let outcome = run(device, codec, pages);
    let mut whole = 0;
    for ((page, content), fault) in pages.iter().zip(&outcome.contents).zip(&outcome.faults) {
        let text = &page.text[..page.text.len().min(60)];
        match expected(page) {
            Some(expected) => {
                assert_eq!(*fault, None, "{codec:?} {text:?} of {} bytes", page.len);
                assert!(*content == expected, "{codec:?} {text:?} of {} bytes", page.len);
                whole += 1;
            }
            None => assert!(matches!(fault, Some(1..=5)), "{codec:?} {text:?} of {} bytes", page.len),
        }
    }
    (whole, pages.len() - whole)
}

/// Pages with bytes changed, taken out and cut off.
fn damaged(seed: u64, text: &[u8], len: usize, count: usize) -> Vec<Page> {
    let mut words = random(seed, count * 8);
    let mut word = move || words.next().unwrap() as usize;
    let change = |i: usize| {
        let mut text = text.to_vec();
        for _ in 0..1 + i % 3 {
            let at = word() % text.len();
            match word() % 8 {
                0 => text.truncate(at.max(1)),
                1 => drop(text.remove(at)),
                2 => text[at] ^= 1 << (word() % 8),
                _ => text[at] = word() as u8,
            }
            if text.is_empty() {
                break;
            }
        }
        Page { text, len, in_place: i.is_multiple_of(4) }
    };
    (0..count).map(change).collect()
}

#[test]
fn damaged_pages_are_refused_or_read_as_the_reference_reads_them() {
    // How often: WARPFRAME_DAMAGED_PAGES times 100 for each content.
    let hundreds = std::env::var("WARPFRAME_DAMAGED_PAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(1usize);
    for device in device_and_gpu(20261121) {
        for codec in [Codec::Snappy, Codec::Lz4Raw] {
            let (mut whole, mut faults) = (0, 0);
            for (seed, len) in [(1, 40), (2, 300), (3, 1500), (4, 5000)] {
                for (kind, content) in contents(seed, len).iter().enumerate() {
                    let text = if codec == Codec::Snappy { snap(content) } else { lz4(content) };
                    let pages = damaged(seed * 8 + kind as u64, &text, len, 100 * hundreds);
                    let (good, bad) = compare(&device, codec, &pages);
                    whole += good;
                    faults += bad;
                }
            }
            println!("{codec:?}: {faults} damaged pages refused, {whole} read");
            assert!(whole > 100 && faults > 100);
        }
    }
}

#[test]
fn damaged_pages_of_several_parts_are_refused_or_read() {
    for device in device_and_gpu(1) {
        for kind in [1, 4] {
            let content = contents(kind, 140_000).swap_remove(kind as usize);
            let pages = damaged(kind, &snap(&content), content.len(), 12);
            compare(&device, Codec::Snappy, &pages);
        }
    }
}

#[test]
fn pages_cut_off_anywhere_are_refused() {
    let device = device(0);
    for kind in [0, 4] {
        let content = contents(kind, 400).swap_remove(kind as usize);
        for (codec, text) in [(Codec::Snappy, snap(&content)), (Codec::Lz4Raw, lz4(&content))] {
            let pages: Vec<_> = (0..text.len()).map(|end| Page::new(text[..end].to_vec(), content.len())).collect();
            assert_eq!(compare(&device, codec, &pages).0, 0);
        }
    }
}
