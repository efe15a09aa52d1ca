//! Damaged pages: each kind of damage by its code, and pages changed at random, which are refused
//! or read as the reference reads them.

use super::*;

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
        for (codec, cases) in [(DeviceCodec::Snappy, &snappy), (DeviceCodec::Lz4Raw, &lz4_cases)] {
            for (code, (text, len)) in cases {
                // A good page before and behind it.
                let good = [5u8; 40].to_vec();
                let page = CompressedPage::new(
                    if codec == DeviceCodec::Snappy { snappy_page(&good) } else { lz4_page(&good) },
                    40,
                );
                for in_place in [false, true] {
                    let bad = CompressedPage { text: text.clone(), len: *len, in_place };
                    let outcome = run(&device, codec, &[page.clone(), bad, page.clone()]);
                    let expected = [None, Some(*code), None];
                    assert_eq!(
                        outcome.faults,
                        expected,
                        "{codec:?} {:?}",
                        &text[..text.len().min(20)]
                    );
                    assert!(outcome.contents[0] == good && outcome.contents[2] == good);
                }
            }
        }
        let both = [CompressedPage::new(vec![3], 3), CompressedPage::new(vec![9], 3)];
        assert_eq!(run(&device, DeviceCodec::Snappy, &both).faults, [Some(5), Some(1)]);
    }
    assert!(
        (1..=5).all(|code| damage(code).is_some()) && damage(0).is_none() && damage(6).is_none()
    );
}

/// Decompresses damaged pages in one call and asks for the content that the reference gives, or a
/// fault where that gives none. How many there are of both.
pub(super) fn compare(
    device: &Device,
    codec: DeviceCodec,
    pages: &[CompressedPage],
) -> (usize, usize) {
    let expected = |page: &CompressedPage| match codec {
        DeviceCodec::Snappy => ::snap::raw::Decoder::new()
            .decompress_vec(&page.text)
            .ok()
            .filter(|c| c.len() == page.len),
        DeviceCodec::Lz4Raw => lz4_content(&page.text, page.len),
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
            None => {
                assert!(matches!(fault, Some(1..=5)), "{codec:?} {text:?} of {} bytes", page.len)
            }
        }
    }
    (whole, pages.len() - whole)
}

/// Pages with bytes changed, taken out and cut off.
pub(super) fn damaged(seed: u64, text: &[u8], len: usize, count: usize) -> Vec<CompressedPage> {
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
        CompressedPage { text, len, in_place: i.is_multiple_of(4) }
    };
    (0..count).map(change).collect()
}

#[test]
fn damaged_pages_are_refused_or_read_as_the_reference_reads_them() {
    // How often: WARPFRAME_DAMAGED_PAGES times 100 for each content.
    let hundreds = std::env::var("WARPFRAME_DAMAGED_PAGES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1usize);
    for device in device_and_gpu(20261121) {
        for codec in [DeviceCodec::Snappy, DeviceCodec::Lz4Raw] {
            let (mut whole, mut faults) = (0, 0);
            for (seed, len) in [(1, 40), (2, 300), (3, 1500), (4, 5000)] {
                for (kind, content) in contents(seed, len).iter().enumerate() {
                    let text = if codec == DeviceCodec::Snappy {
                        snappy_page(content)
                    } else {
                        lz4_page(content)
                    };
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
            let pages = damaged(kind, &snappy_page(&content), content.len(), 12);
            compare(&device, DeviceCodec::Snappy, &pages);
        }
    }
}

#[test]
fn pages_cut_off_anywhere_are_refused() {
    let device = device(0);
    for kind in [0, 4] {
        let content = contents(kind, 400).swap_remove(kind as usize);
        for (codec, text) in [
            (DeviceCodec::Snappy, snappy_page(&content)),
            (DeviceCodec::Lz4Raw, lz4_page(&content)),
        ] {
            let pages: Vec<_> = (0..text.len())
                .map(|end| CompressedPage::new(text[..end].to_vec(), content.len()))
                .collect();
            assert_eq!(compare(&device, codec, &pages).0, 0);
        }
    }
}
