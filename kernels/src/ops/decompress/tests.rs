mod damage;
mod lz4_sequences;
mod pages;

use super::*;
use crate::ops::testing::*;
use pages::PagePiece::{Copy, Literal};
use pages::*;

/// A compressed page of a test.
#[derive(Clone)]
struct CompressedPage {
    text: Vec<u8>,
    len: usize,
    in_place: bool,
}

impl CompressedPage {
    fn new(text: Vec<u8>, len: usize) -> Self {
        CompressedPage { text, len, in_place: false }
    }
}

/// What came of a call: each page's content, whether it stayed in its source, and its fault.
struct DecompressedPages {
    contents: Vec<Vec<u8>>,
    stayed: Vec<bool>,
    faults: Vec<Option<u32>>,
}

const GUARD: u8 = 0xA5;

/// Pages in a device's memory, sources and targets at all alignments.
struct Laid {
    blocks: Vec<CompressedBlock>,
    sources: Vec<u8>,
    source: Buffer,
    target: Buffer,
    places: Buffer,
    faults: Buffer,
}

fn lay(device: &Device, pages: &[CompressedPage]) -> Laid {
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
        .map(|(i, page)| CompressedBlock {
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
fn uncut(device: &Device, pages: &[CompressedPage]) -> u32 {
    let laid = lay(device, pages);
    let words = snappy(device, &laid.blocks, &laid.places, &laid.faults).unwrap();
    read::<u32>(&words, 3)[2]
}

/// Decompresses all pages in one call, and looks whether anything but their targets was written.
fn run(device: &Device, codec: DeviceCodec, pages: &[CompressedPage]) -> DecompressedPages {
    let Laid { blocks, sources, source, target, places, faults } = lay(device, pages);
    decompress(device, codec, &blocks, &places, &faults).unwrap();

    let mut faults: Vec<_> = (read::<u32>(&faults, pages.len() + 1).into_iter())
        .map(|fault| (fault != u32::MAX).then_some(fault))
        .collect();
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
    DecompressedPages { contents, stayed, faults }
}

/// Asserts that pages come back.
fn check(device: &Device, codec: DeviceCodec, pages: &[CompressedPage], contents: &[Vec<u8>]) {
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

#[test]
fn snappy_pages_of_all_kinds_come_back_in_one_call() {
    for (i, device) in devices().iter().enumerate() {
        let contents = many_contents(i == 0);
        let pages: Vec<_> = contents
            .iter()
            .map(|content| CompressedPage::new(snappy_page(content), content.len()))
            .collect();
        check(device, DeviceCodec::Snappy, &pages, &contents);
        assert_eq!(uncut(device, &pages), 0);
    }
}

#[test]
fn lz4_pages_of_all_kinds_come_back_in_one_call() {
    for (i, device) in devices().iter().enumerate() {
        let contents = many_contents(i == 0);
        let pages: Vec<_> = contents
            .iter()
            .map(|content| CompressedPage::new(lz4_page(content), content.len()))
            .collect();
        check(device, DeviceCodec::Lz4Raw, &pages, &contents);
    }
}

#[test]
fn pages_of_three_megabytes_come_back() {
    for device in device_and_gpu(0) {
        let content: Vec<u8> =
            [1, 4, 5, 3].iter().flat_map(|&kind| contents(5, 800_000).swap_remove(kind)).collect();
        check(
            &device,
            DeviceCodec::Snappy,
            &[CompressedPage::new(snappy_page(&content), content.len())],
            std::slice::from_ref(&content),
        );
        check(
            &device,
            DeviceCodec::Lz4Raw,
            &[CompressedPage::new(lz4_page(&content), content.len())],
            &[content],
        );
    }
}

#[test]
fn no_pages_are_nothing_to_do() {
    for device in device_and_gpu(0) {
        for codec in [DeviceCodec::Snappy, DeviceCodec::Lz4Raw] {
            assert!(run(&device, codec, &[]).contents.is_empty());
            // Parquet does not compress what is empty.
            check(&device, codec, &[CompressedPage::new(vec![], 0)], &[vec![]]);
        }
    }
}

#[test]
fn copies_of_every_distance_and_size_repeat_what_precedes_them() {
    let start = bytes(3, 70);
    for device in devices() {
        let (mut snappy, mut lz4, mut contents, mut lz4_contents) =
            (vec![], vec![], vec![], vec![]);
        for distance in 1..=70 {
            // Forward and backward, so that batches end at all of them.
            let sizes: Vec<usize> =
                if distance % 2 == 0 { (1..=64).collect() } else { (1..=64).rev().collect() };
            let mut pieces = vec![Literal(&start)];
            for &size in &sizes {
                pieces.push(Copy { distance, size });
                if size % 5 == 0 {
                    pieces.push(Literal(&start[..size]));
                }
            }
            contents.push(made_of(&pieces));
            snappy.push(CompressedPage::new(
                snappy_of(&pieces, distance % 3),
                contents[contents.len() - 1].len(),
            ));
            // LZ4's copies are of 4 bytes or more, of any size.
            let mut pieces = vec![Literal(&start)];
            for size in sizes.iter().map(|size| size * 3 + 1).chain([
                127,
                128,
                129,
                1000,
                20_000 + distance,
            ]) {
                pieces.push(Copy { distance, size });
                if size % 5 == 0 {
                    pieces.push(Literal(&start[..size % 69]));
                }
            }
            pieces.push(Literal(&start[..5]));
            lz4_contents.push(made_of(&pieces));
            lz4.push(CompressedPage::new(
                lz4_of(&pieces),
                lz4_contents[lz4_contents.len() - 1].len(),
            ));
        }
        check(&device, DeviceCodec::Snappy, &snappy, &contents);
        check(&device, DeviceCodec::Lz4Raw, &lz4, &lz4_contents);
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
            pages.push(CompressedPage::new(snappy_of(&pieces, kind % 2), made));
        }
        check(&device, DeviceCodec::Snappy, &pages, &contents);
    }
}

#[test]
fn literals_of_every_size_are_read() {
    for device in devices() {
        let (mut snappy, mut lz4, mut contents) = (vec![], vec![], vec![]);
        let sizes = [
            1, 59, 60, 61, 62, 126, 127, 128, 129, 130, 255, 256, 257, 900, 1024, 1500, 65536,
            70_000, 200_000,
        ];
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
                snappy.push(CompressedPage::new(snappy_of(&pieces, longer), content.len()));
                lz4.push(CompressedPage::new(lz4_of(&pieces), content.len()));
                contents.push(content.clone());
            }
        }
        check(&device, DeviceCodec::Snappy, &snappy, &contents);
        check(&device, DeviceCodec::Lz4Raw, &lz4, &contents);
    }
}

#[test]
fn snappy_tokens_may_lie_across_parts_and_copies_reach_over_them() {
    let fresh = bytes(8, 300_000);
    let all = |range: std::ops::Range<usize>| -> Vec<PagePiece<'_>> {
        fresh[range].chunks(50).map(Literal).collect()
    };
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
        let texts: Vec<_> = pages
            .iter()
            .zip(&contents)
            .map(|(p, c)| CompressedPage::new(snappy_of(p, 0), c.len()))
            .collect();
        check(&device, DeviceCodec::Snappy, &texts, &contents);
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
            pages.push(CompressedPage::new(
                snappy_of(&pieces, 0),
                contents[contents.len() - 1].len(),
            ));
        }
        check(&device, DeviceCodec::Snappy, &pages, &contents);
        assert_eq!(uncut(&device, &pages), 0);
    }
}

#[test]
fn starts_are_found_where_guesses_are_never_right() {
    // Copies of 4 from 8 back: from a second byte on, a path of literals of 3 meets no first byte.
    let start = bytes(30, 8);
    let copies =
        |count: usize| std::iter::repeat_with(|| Copy { distance: 8, size: 4 }).take(count);
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
            pages.push(CompressedPage::new(snappy_of(&pieces, 0), contents[i].len()));
        }
        check(&device, DeviceCodec::Snappy, &pages, &contents);
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
            pages.push(CompressedPage::new(snappy_of(&pieces, longer), contents[longer].len()));
        }
        check(&device, DeviceCodec::Snappy, &pages, &contents);
        assert_eq!(uncut(&device, &pages), 0);
    }
}

#[test]
fn pages_of_one_literal_stay_in_place_where_they_may() {
    for device in devices() {
        for codec in [DeviceCodec::Snappy, DeviceCodec::Lz4Raw] {
            let (mut pages, mut contents, mut stay) = (vec![], vec![], vec![]);
            for (i, size) in
                [1, 14, 15, 16, 60, 61, 270, 5000, 65_536, 65_537, 150_000].into_iter().enumerate()
            {
                let fresh = bytes(i as u64, size + 10);
                for in_place in [true, false] {
                    for pieces in [
                        vec![Literal(&fresh[..size])],
                        vec![Literal(&fresh[..size]), Copy { distance: 1, size: 4 }],
                    ] {
                        let text = if codec == DeviceCodec::Snappy {
                            snappy_of(&pieces, 0)
                        } else {
                            lz4_of(&pieces)
                        };
                        contents.push(made_of(&pieces));
                        stay.push(in_place && pieces.len() == 1);
                        pages.push(CompressedPage {
                            text,
                            len: contents[contents.len() - 1].len(),
                            in_place,
                        });
                    }
                }
            }
            check(&device, codec, &pages, &contents);
            assert_eq!(run(&device, codec, &pages).stayed, stay);
        }
    }
}
