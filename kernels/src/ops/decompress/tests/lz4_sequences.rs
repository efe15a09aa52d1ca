//! LZ4 pages of sequences of all kinds: around the borders of windows and batches, cut off
//! anywhere, and of noise. What the parquet crate's decompressor reads is right, what it refuses is
//! damage.

use super::damage::{compare, damaged};
use super::*;

/// `LZ4_WINDOW`, `LZ4_BATCH` and `LZ4_MOST` of the kernel.
const WINDOW: usize = 8192;
const BATCH: usize = 8192;
const MOST: usize = 1024;

/// Sizes around those that need one more byte, for literals; copies have 4 more.
const AROUND: [usize; 13] = [0, 1, 14, 15, 16, 269, 270, 271, 524, 525, 526, 780, 1035];

/// A page by hand, and its content, of which the crate thinks the same.
fn page(pieces: &[PagePiece<'_>]) -> (CompressedPage, Vec<u8>) {
    let content = made_of(pieces);
    let page = CompressedPage::new(lz4_of(pieces), content.len());
    assert!(lz4_content(&page.text, page.len).as_ref() == Some(&content));
    (page, content)
}

fn check_pages(device: &Device, pages: Vec<(CompressedPage, Vec<u8>)>) {
    let (pages, contents): (Vec<_>, Vec<_>) = pages.into_iter().unzip();
    check(device, DeviceCodec::Lz4Raw, &pages, &contents);
}

/// Sequences whose literals and copies have these sizes, as distances come.
fn sequences<'a>(
    fresh: &'a [u8],
    count: usize,
    mut sizes: impl FnMut() -> (usize, usize),
    mut distance: impl FnMut(usize) -> usize,
) -> Vec<PagePiece<'a>> {
    let mut pieces = vec![Literal(&fresh[..40])];
    let mut made = 40;
    for i in 0..count {
        let (literal, copy) = sizes();
        let from = i * 37 % (fresh.len() - literal);
        if literal > 0 {
            pieces.push(Literal(&fresh[from..from + literal]));
        }
        made += literal;
        pieces.push(Copy { distance: distance(made).clamp(1, made.min(65_535)), size: copy });
        made += copy;
    }
    pieces
}

#[test]
fn sizes_of_one_more_byte_are_read_at_all_distances() {
    let fresh = bytes(51, 4000);
    for device in device_and_gpu(2) {
        let mut pages = vec![];
        for distance in (1..32).chain([63, 64, 127, 128, 129, 1024, 1025, 4000, 65_535]) {
            let mut at = distance;
            let sizes = || {
                at += 1;
                (AROUND[at % AROUND.len()], AROUND[at / AROUND.len() % AROUND.len()] + 4)
            };
            pages.push(page(&sequences(&fresh, 180, sizes, |_| distance)));
        }
        check_pages(&device, pages);
    }
}

#[test]
fn sequences_end_anywhere_around_the_ends_of_windows() {
    let fresh = bytes(52, 4000);
    for device in device_and_gpu(3) {
        let mut pages = vec![];
        for shift in 0..48 {
            // 12 bytes a sequence, of which the first is longer; then literals up to an end.
            let mut pieces =
                sequences(&fresh, 1 + (WINDOW - 100) / 12, || (9, 8), |made| 1 + made % 300);
            pieces.insert(0, Literal(&fresh[..1 + shift]));
            if shift % 3 != 0 {
                pieces.push(Literal(&fresh[..[1, 20, 300][shift % 3]]));
            }
            if shift % 4 == 0 {
                pieces.push(Copy { distance: 7, size: 5000 });
            }
            pages.push(page(&pieces));
        }
        check_pages(&device, pages);
    }
}

#[test]
fn batches_are_full_of_bytes_or_of_sequences() {
    let fresh = bytes(53, 4000);
    for device in device_and_gpu(4) {
        let mut pages = vec![];
        // Many that are as long as may be, one byte more, and ones whose sum is a batch's.
        for literal in [0, 1, MOST - 1, MOST, MOST + 1, BATCH / 8] {
            for copy in [4, 128, 129, MOST, MOST + 1, BATCH / 8 - 1] {
                pages.push(page(&sequences(
                    &fresh,
                    20,
                    || (literal, copy),
                    |made| made - made % 3,
                )));
                pages.push(page(&sequences(&fresh, 20, || (literal, copy), |made| 1 + made % 130)));
            }
        }
        // Only copies, of 4 bytes each, and chains of them.
        pages.push(page(&sequences(&fresh, 5000, || (0, 4), |_| 4)));
        pages.push(page(&sequences(&fresh, 5000, || (0, 5), |made| 1 + made % 40)));
        check_pages(&device, pages);
    }
}

#[test]
fn starts_of_sequences_are_found_where_guesses_are_never_right() {
    // 00 08 00: a path that begins at another byte meets no first byte of a sequence.
    let fresh = bytes(54, 200);
    for device in devices() {
        let pages = (0..4).map(|cut| {
            let mut pieces = sequences(&fresh, 7000, || (0, 4), |_| 8);
            pieces.insert(0, Literal(&fresh[..1 + cut]));
            page(&pieces)
        });
        check_pages(&device, pages.collect());
    }
}

#[test]
fn runs_of_full_bytes_are_sizes_or_literals() {
    let full = [255; 30_000];
    let fresh = bytes(55, 100);
    for device in device_and_gpu(5) {
        let mut pages = vec![];
        for size in [300, 8_000, 8_190, 8_192, 30_000] {
            pages.push(page(&[
                Literal(&full[..size]),
                Copy { distance: 3, size: 9 },
                Literal(&fresh),
            ]));
            pages.push(page(&[
                Literal(&fresh),
                Literal(&full[..size]),
                Copy { distance: size, size: size / 2 },
            ]));
        }
        // Sizes of 4,000 bytes and of 10,000, which is more than a window.
        for size in [1_000_000, 2_550_000] {
            for distance in [1, 17, 100] {
                pages.push(page(&[
                    Literal(&fresh),
                    Copy { distance, size },
                    Literal(&fresh),
                    Copy { distance, size: 4 },
                ]));
            }
        }
        check_pages(&device, pages);
    }
}

/// Sequences of all kinds, small ones often.
fn any(seed: u64, count: usize) -> Vec<u8> {
    let fresh = bytes(seed, 3000);
    let mut words = random(seed, 4 * count + 4);
    let mut word = move || words.next().unwrap() as usize;
    let mut pieces = vec![Literal(&fresh[..8])];
    let mut made = 8;
    for _ in 0..count {
        let kind = word();
        let size = |word: usize| match word % 16 {
            0 => AROUND[word / 16 % AROUND.len()],
            1 => word / 16 % 2000,
            2..5 => word / 16 % 70,
            _ => word / 16 % 12,
        };
        let (literal, copy) = (size(word()), 4 + size(word()));
        if kind % 3 > 0 && literal > 0 {
            pieces.push(Literal(&fresh[kind / 4 % 900..][..literal]));
            made += literal;
        }
        let reach = [8, 40, 2000, 65_535][kind / 3 % 4];
        pieces.push(Copy { distance: (1 + word() % reach).min(made), size: copy });
        made += copy;
    }
    pieces.push(Literal(&fresh[..1 + count % 60]));
    let text = lz4_of(&pieces);
    assert!(lz4_content(&text, made + 1 + count % 60).is_some());
    text
}

/// The length that a text's content has: where it is damaged, 300.
fn length_of(text: &[u8]) -> usize {
    let mut content = vec![0; 1 << 20];
    lz4_flex::block::decompress_into(text, &mut content).unwrap_or(300)
}

#[test]
fn pages_cut_off_at_each_byte_are_refused_as_the_reference_refuses_them() {
    for device in device_and_gpu(6) {
        let (mut whole, mut refused) = (0, 0);
        for (seed, count) in [(60, 10), (61, 6)] {
            let text = any(seed, count);
            let len = length_of(&text);
            let cut = |end: usize| {
                let text = text[..end].to_vec();
                // What is left may be a page of its own length.
                [
                    CompressedPage::new(text.clone(), len),
                    CompressedPage::new(text.clone(), length_of(&text)),
                ]
            };
            let pages: Vec<_> = (0..=text.len()).flat_map(cut).collect();
            let (good, bad) = compare(&device, DeviceCodec::Lz4Raw, &pages);
            whole += good;
            refused += bad;
        }
        assert!(whole > 3 && refused > 500, "{whole} {refused}");
    }
}

#[test]
fn damaged_sequences_are_refused_or_read_as_the_reference_reads_them() {
    let hundreds = std::env::var("WARPFRAME_DAMAGED_PAGES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1usize);
    for device in device_and_gpu(7) {
        let (mut whole, mut refused) = (0, 0);
        for (seed, count) in [(70, 3), (71, 20), (72, 200), (73, 2500)] {
            let text = any(seed, count);
            let pages = damaged(
                seed,
                &text,
                length_of(&text),
                if count > 1000 { 20 } else { 60 } * hundreds,
            );
            // Damaged in the same ways, with the lengths that they then have.
            let fitted = pages
                .iter()
                .map(|page| CompressedPage { len: length_of(&page.text), ..page.clone() });
            let pages: Vec<_> = pages.iter().cloned().chain(fitted).collect();
            let (good, bad) = compare(&device, DeviceCodec::Lz4Raw, &pages);
            whole += good;
            refused += bad;
        }
        println!("{refused} damaged pages refused, {whole} read");
        assert!(whole > 50 && refused > 50, "{whole} {refused}");
    }
}

#[test]
fn noise_is_refused_or_read_as_the_reference_reads_it() {
    let hundreds = std::env::var("WARPFRAME_DAMAGED_PAGES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1u64);
    for device in device_and_gpu(8) {
        let noise = |at: u64| {
            let len = [5, 30, 300, 3000, 20_000][at as usize % 5];
            let mut text = bytes(80 + at, len);
            match at % 4 {
                // Bytes of few kinds: sizes of many bytes, copies of nothing and from far.
                0 => text.iter_mut().for_each(|byte| {
                    *byte = [255, 0, 1, 0xF0, 0x1F, 0x10, 255, 255][*byte as usize % 8]
                }),
                1 => {
                    text.iter_mut().for_each(|byte| *byte = [0, 1, 0x10, 0x11][*byte as usize % 4])
                }
                2 => text.iter_mut().skip(200).for_each(|byte| *byte |= 0xF0),
                _ => {}
            }
            let len = if at.is_multiple_of(3) { length_of(&text) } else { 1000 + len * 3 };
            CompressedPage { text, len, in_place: at.is_multiple_of(2) }
        };
        let pages: Vec<_> = (0..100 * hundreds).map(noise).collect();
        let (_, refused) = compare(&device, DeviceCodec::Lz4Raw, &pages);
        assert!(refused as u64 > 50 * hundreds, "{refused}");
    }
}
