//! The first rows of an order, without sorting the others. Kernels in `kernels/top.cuh`.

use super::gather::gather;
use super::sort::{KeyKind, SortKey, SortWord, argsort_key, argsort_keys};
use super::{grid, numbered, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource};

const OPERATOR: &str = "top";
/// `TOP_THREADS`, `TOP_BITS`, `TOP_SELECT_THREADS`, `TOP_SELECT_TILE` of the kernels.
const THREADS: u32 = 512;
const BITS: u32 = 11;
const SELECT_THREADS: u32 = 256;
const SELECT_TILE: u64 = 4096;
/// `TOP_SAMPLES`, `TOP_SAMPLE_THREADS`, `TOP_APPEND_THREADS` and the rows of a tile of the kernels.
const SAMPLES: u64 = 16384;
const SAMPLE_THREADS: u32 = 1024;
const APPEND_THREADS: u32 = 256;
const APPEND_TILE: u64 = 2048;
/// `TOP_FEW_THREADS`, `TOP_FEW_TILE` and `TOP_FEW_MOST` of the kernels.
const FEW_THREADS: u32 = 1024;
const FEW_TILE: u64 = 16384;
const FEW_MOST: u64 = 512;
/// The most rows of a thread: one kernel is compiled for each.
const FEW_ITEMS: [u64; 2] = [FEW_TILE / FEW_THREADS as u64 / 2, FEW_TILE / FEW_THREADS as u64];
/// Rows for each block, a quarter of what it holds.
const FEW_EACH: u64 = 4096;
/// `TOP_RANK_THREADS` of the kernels, and candidates that are ranked by counting.
const RANK_THREADS: u32 = 256;
const RANKED: u64 = 4096;
/// Up to this many candidates are sorted, however few rows there are: launches cost more than rows.
const FEW: u64 = 1 << 16;
/// More candidates may be this part of the rows. With still more, sorting all rows costs about as
/// much.
const PART: u64 = 8;

/// Kernels that choose candidates by the keys' high bits.
fn source() -> KernelSource {
    KernelSource::new("top", "#include \"top.cuh\"\nWF_TOP_ENTRIES\n")
}

/// Kernels that choose candidates by a sample.
fn sample_source() -> KernelSource {
    KernelSource::new("top_sample", "#include \"top.cuh\"\nWF_TOP_SAMPLE_ENTRIES\n")
}

/// The kernel that chooses the first rows at once, of so few that a thread has at most `items`.
fn few_source(items: u64) -> KernelSource {
    KernelSource::new(
        format!("top_few_{items}"),
        format!("#include \"top.cuh\"\nWF_TOP_FEW_ENTRY({items})\n"),
    )
}

pub(super) fn sources() -> [KernelSource; 4] {
    [source(), sample_source(), few_source(FEW_ITEMS[0]), few_source(FEW_ITEMS[1])]
}

/// The first `k` (or all) entries of the order by `key` and then `more` words, `u32 × min(k,
/// rows)`; stable.
///
/// One kernel finds them among few rows without further words. Otherwise a sample of the keys, or
/// their high bits, choose candidates, which are sorted by all words. Waits for the device once for
/// a sample or for each 11 high bits, and as a sort does.
pub fn top_k(
    device: &Device,
    key: &SortKey<'_>,
    more: &[SortWord<'_>],
    rows: u64,
    k: u64,
) -> Result<Buffer> {
    numbered(OPERATOR, rows)?;
    key.check(rows);
    more.iter().for_each(|word| SortKey::from(*word).check(rows));
    let k = k.min(rows);
    if more.is_empty()
        && let Some(shape) = FewShape::of(device, rows, k)
    {
        let first = device.alloc(OPERATOR, k as usize * 4)?;
        of_few(device, key, rows, k, shape, (&first).into(), 0u64.into())?;
        return Ok(first);
    }
    by_choice(device, key, more, rows, k)
}

/// How the rows of `top_few` are spread over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FewShape {
    blocks: u64,
    /// Rows of a block.
    each: u64,
}

impl FewShape {
    /// For the first `k` of `rows` rows; `None` if one kernel cannot find them.
    fn of(device: &Device, rows: u64, k: u64) -> Option<FewShape> {
        if k == 0 || k > FEW_MOST.min(rows) {
            return None;
        }
        // The last block to finish merges the first `k` rows of all blocks, and has to hold them.
        let most = u64::from(device.properties().multiprocessors).min(FEW_TILE / k);
        let mut blocks = rows.div_ceil(FEW_EACH).min(most);
        // Every block has at least `k` rows, also the one at the end, which has at most `blocks`
        // fewer than others.
        while blocks > 1 && rows / blocks < k + blocks {
            blocks /= 2;
        }
        let each = rows.div_ceil(blocks);
        (each <= FEW_TILE).then_some(FewShape { blocks, each })
    }
}

/// The first `k` values in the order of the key's column; `None` if there are too many rows for one
/// kernel.
pub fn top_values(device: &Device, key: &SortKey<'_>, rows: u64, k: u64) -> Result<Option<Buffer>> {
    numbered(OPERATOR, rows)?;
    key.check(rows);
    let Some(shape) = FewShape::of(device, rows, k) else { return Ok(None) };
    let first = device.alloc(OPERATOR, k as usize * key.kind.width())?;
    of_few(device, key, rows, k, shape, 0u64.into(), (&first).into())?;
    Ok(Some(first))
}

/// Finds the first `k` rows by one kernel. Writes their numbers to `out`, `u32 × k`, and the
/// column's values to `values`, `k` of its width. Either may be null.
fn of_few(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    k: u64,
    shape: FewShape,
    out: Argument,
    values: Argument,
) -> Result<()> {
    let FewShape { blocks, each } = shape;
    let room = (blocks * k) as usize;
    let keys = device.alloc(OPERATOR, room * 8)?;
    let numbers = device.alloc(OPERATOR, room * 4)?;
    let ticket = device.alloc_zeroed(OPERATOR, 8)?;
    let [data, kind, flip, base] = key.arguments();
    let arguments: [Argument; 12] = [
        data,
        kind,
        flip,
        base,
        rows.into(),
        each.into(),
        k.into(),
        (&keys).into(),
        (&numbers).into(),
        (&ticket).into(),
        out,
        values,
    ];
    let items =
        if each <= FEW_ITEMS[0] * u64::from(FEW_THREADS) { FEW_ITEMS[0] } else { FEW_ITEMS[1] };
    let kernel = device.kernel(&few_source(items), &format!("top_few_{items}"))?;
    // SAFETY: TopFew { key: rows of its kind; each, k and the blocks as `FewShape` makes them; keys
    // and numbers: blocks · k u64 and u32; ticket: a zero; out and values: k each, or null, by the
    // callers above }.
    unsafe { device.launch(&kernel, grid(blocks, FEW_THREADS), &arguments) }
}

/// The first `k` of any number of rows.
fn by_choice(
    device: &Device,
    key: &SortKey<'_>,
    more: &[SortWord<'_>],
    rows: u64,
    k: u64,
) -> Result<Buffer> {
    let chosen = match k > 0 && rows > FEW.min(PART * k) {
        true => match sampled(device, key, rows, k)? {
            Some(few) if more.is_empty() && few.count <= RANKED => {
                return few.ranked(device, None, few.count, k);
            }
            Some(few) if more.is_empty() => {
                let again = SortKey::from(SortWord { keys: &few.keys, bits: 64 });
                match sampled(device, &again, few.count, k)? {
                    Some(fewer) if fewer.count <= RANKED => {
                        return few.ranked(device, Some(&fewer.numbers), fewer.count, k);
                    }
                    _ => few.in_order(device, rows)?,
                }
            }
            Some(few) => few.in_order(device, rows)?,
            None => candidates(device, key, rows, k)?,
        },
        false => Chosen::All,
    };
    match chosen {
        Chosen::All => head(device, &argsort_keys(device, key, more, rows)?, k),
        Chosen::Rows(numbers, count) => {
            head(device, &ordered(device, key, more, &numbers, count)?, k)
        }
        Chosen::Ties(ties) => among_ties(device, key, more, rows, k, &ties),
    }
}

/// The first `k` of some row numbers.
fn head(device: &Device, numbers: &Buffer, k: u64) -> Result<Buffer> {
    let first = device.alloc(OPERATOR, k as usize * 4)?;
    first.copy_from(0, numbers, 0, k as usize * 4)?;
    Ok(first)
}

/// The rows with these ascending numbers, `u32 × count`, in the order by `key` and `more`.
fn ordered(
    device: &Device,
    key: &SortKey<'_>,
    more: &[SortWord<'_>],
    numbers: &Buffer,
    count: u64,
) -> Result<Buffer> {
    // The key's data may begin anywhere in its buffer.
    let keys = gather(device, key.kind.width(), key.data, numbers, count)?;
    let words = of_rows(device, more, numbers, count)?;
    let order = argsort_keys(
        device,
        &SortKey { data: keys.slice(0), ..*key },
        &sort_words(&words, more),
        count,
    )?;
    gather(device, 4, numbers.slice(0), &order, count)
}

/// The words of some rows, `u64 × count` each.
fn of_rows(
    device: &Device,
    words: &[SortWord<'_>],
    numbers: &Buffer,
    count: u64,
) -> Result<Vec<Buffer>> {
    words.iter().map(|word| gather(device, 8, word.keys.slice(0), numbers, count)).collect()
}

/// Words with these keys, which have as many bits as `words`.
fn sort_words<'a>(keys: &'a [Buffer], words: &[SortWord<'_>]) -> Vec<SortWord<'a>> {
    keys.iter().zip(words).map(|(keys, word)| SortWord { keys, bits: word.bits }).collect()
}

/// What is known of the `k` first rows once their key's bits are counted.
enum Chosen {
    /// Nothing that would save a sort of all rows.
    All,
    /// They are among these rows, `u32 × count` ascending numbers.
    Rows(Buffer, u64),
    /// The `k`-th row has many equals.
    Ties(TopTies),
}

/// Rows that the key does not tell from the `k`-th one.
struct TopTies {
    /// Their normalised key.
    value: u64,
    count: u64,
    /// Rows before them, fewer than `k`.
    below: u64,
}

/// The first `k` rows: those before the ties in their order, then the first ties by `more`.
fn among_ties(
    device: &Device,
    key: &SortKey<'_>,
    more: &[SortWord<'_>],
    rows: u64,
    k: u64,
    ties: &TopTies,
) -> Result<Buffer> {
    let (below, wanted) = (ties.below, k - ties.below);
    let out = device.alloc(OPERATOR, k as usize * 4)?;
    if below > 0 {
        let numbers = select(device, key, rows, 0, (0, ties.value - 1), below)?;
        let order = ordered(device, key, more, &numbers, below)?;
        out.copy_from(0, &order, 0, below as usize * 4)?;
    }
    let first = match more.split_first() {
        Some((next, more)) if ties.count == rows => {
            top_k(device, &(*next).into(), more, rows, wanted)?
        }
        following => {
            let numbers = select(device, key, rows, 0, (ties.value, ties.value), ties.count)?;
            match following {
                None => numbers,
                Some(_) => {
                    let words = of_rows(device, more, &numbers, ties.count)?;
                    let words = sort_words(&words, more);
                    let order = top_k(device, &words[0].into(), &words[1..], ties.count, wanted)?;
                    gather(device, 4, numbers.slice(0), &order, wanted)?
                }
            }
        }
    };
    out.copy_from(below as usize * 4, &first, 0, wanted as usize * 4)?;
    Ok(out)
}

/// Candidates: rows among which the first ones are, in no order.
struct Few {
    /// `u64 × count` normalised keys, and `u32 × count` numbers of their rows.
    keys: Buffer,
    numbers: Buffer,
    count: u64,
}

impl Few {
    /// No candidates yet, and room for `capacity`.
    fn room(device: &Device, capacity: u64) -> Result<Few> {
        let numbers = device.alloc(OPERATOR, capacity as usize * 4)?;
        let keys = device.alloc(OPERATOR, capacity as usize * 8)?;
        Ok(Few { keys, numbers, count: 0 })
    }

    /// The first `k` candidates, or of those that are `listed` (`u32 × count`).
    fn ranked(
        &self,
        device: &Device,
        listed: Option<&Buffer>,
        count: u64,
        k: u64,
    ) -> Result<Buffer> {
        let out = device.alloc(OPERATOR, k as usize * 4)?;
        let kernel = device.kernel(&sample_source(), "top_rank")?;
        let arguments: [Argument; 6] = [
            (&self.keys).into(),
            (&self.numbers).into(),
            listed.map_or(0u64.into(), Argument::from),
            count.into(),
            k.into(),
            (&out).into(),
        ];
        // SAFETY: TopRank { keys and numbers: `self.count`; listed: count u32 below that, or null:
        // all; k ≤ count, since `sampled` keeps k at least; out: k u32 }.
        unsafe {
            device.launch(
                &kernel,
                grid(tiles(count * 32, u64::from(RANK_THREADS)), RANK_THREADS),
                &arguments,
            )?
        };
        Ok(out)
    }

    /// The candidates' row numbers, ascending, so that equal keys keep the order of rows.
    fn in_order(&self, device: &Device, rows: u64) -> Result<Chosen> {
        let numbers = SortKey::new(self.numbers.slice(0), KeyKind::U32, false)
            .within(0, i128::from(rows) - 1);
        let order = argsort_key(device, &numbers, self.count)?;
        let numbers = gather(device, 4, self.numbers.slice(0), &order, self.count)?;
        Ok(Chosen::Rows(numbers, self.count))
    }
}

/// Candidates by a sample: the `k` first rows, all rows equal to the last of these, and some more.
/// `None` if rows are few, or the sample misled. Waits for the device.
fn sampled(device: &Device, key: &SortKey<'_>, rows: u64, k: u64) -> Result<Option<Few>> {
    if rows < SAMPLES * 2 || k > rows / 64 {
        return Ok(None);
    }
    // Five deviations above the number of sampled rows expected among the k first; half as many
    // where neighbours are alike, since four of them are sampled together.
    let expected = k as f64 * SAMPLES as f64 / rows as f64;
    let rank = (expected + 5.0 * expected.sqrt() + 8.0).ceil() as u64;
    let capacity = (rank * (rows / SAMPLES) * 4).max(FEW).min(rows);
    // The threshold, then the number of rows kept.
    let words = device.alloc_zeroed(OPERATOR, 16)?;
    let few = Few::room(device, capacity)?;
    let [data, kind, flip, base] = key.arguments();
    let kernel = device.kernel(&sample_source(), "top_threshold")?;
    let arguments: [Argument; 7] =
        [data, kind, flip, base, rows.into(), rank.into(), (&words).into()];
    // SAFETY: TopThreshold { key: rows of its kind, at least SAMPLES; rank ≤ SAMPLES, since k ≤
    // rows / 64; one word }.
    unsafe { device.launch(&kernel, grid(1, SAMPLE_THREADS), &arguments)? };
    let kernel = device.kernel(&sample_source(), "top_append")?;
    let full = u64::from(device.full_grid(&kernel, APPEND_THREADS, 0)?);
    let kept = words.slice(8);
    let arguments: [Argument; 10] = [
        data,
        kind,
        flip,
        base,
        rows.into(),
        (&words).into(),
        capacity.into(),
        kept.into(),
        (&few.numbers).into(),
        (&few.keys).into(),
    ];
    // SAFETY: TopAppend { key as above; threshold and kept: a word each, the latter zero; out:
    // capacity u32; keys: capacity u64 }.
    unsafe {
        device.launch(
            &kernel,
            grid(tiles(rows, APPEND_TILE).min(full), APPEND_THREADS),
            &arguments,
        )?
    };
    let count = words.read_word_or(8, k.max(rank * (rows / SAMPLES)))?;
    Ok((count >= k && count <= capacity).then_some(Few { count, ..few }))
}

/// Candidates by counting the keys' bits from the top, until few rows are left or no bits.
fn candidates(device: &Device, key: &SortKey<'_>, rows: u64, k: u64) -> Result<Chosen> {
    let most = FEW.max(rows / PART);
    if k > most {
        return Ok(Chosen::All);
    }
    // Rows that are certainly kept, the bits above the digit that the k-th key has, and the bin of
    // the digit from which on keys are not counted in `below`.
    let (mut below, mut prefix, mut bin) = (0, 0, 0);
    let mut shift = key.bits.saturating_sub(BITS);
    loop {
        let counts = histogram(device, key, rows, shift, prefix)?;
        // The k-th key's bin: keys of earlier bins are certainly kept.
        while below + counts[bin] < k {
            below += counts[bin];
            bin += 1;
        }
        let greatest = prefix << BITS | bin as u64;
        let kept = below + counts[bin];
        if kept <= most {
            return Ok(Chosen::Rows(select(device, key, rows, shift, (0, greatest), kept)?, kept));
        }
        if shift == 0 {
            return Ok(Chosen::Ties(TopTies { value: greatest, count: counts[bin], below }));
        }
        // The next digit's top is the present one's end; the last digit may overlap what is decided
        // already.
        let next = shift.saturating_sub(BITS);
        let decided = BITS - (shift - next);
        prefix = greatest >> decided;
        bin = ((greatest & ((1 << decided) - 1)) << (BITS - decided)) as usize;
        shift = next;
    }
}

fn histogram(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    shift: u32,
    prefix: u64,
) -> Result<Vec<u64>> {
    let counts = device.alloc_zeroed(OPERATOR, (1 << BITS) * 8)?;
    let kernel = device.kernel(&source(), "top_histogram")?;
    let full = u64::from(device.full_grid(&kernel, THREADS, 0)?);
    let [data, kind, flip, base] = key.arguments();
    let arguments: [Argument; 8] = [
        data,
        kind,
        flip,
        base,
        rows.into(),
        u64::from(shift).into(),
        prefix.into(),
        (&counts).into(),
    ];
    let blocks = tiles(rows, u64::from(THREADS) * 8).min(full);
    // SAFETY: TopHistogram { key: rows of its kind; rows; shift < 64; prefix; counts: 2048 zeroed
    // u64 }.
    unsafe { device.launch(&kernel, grid(blocks, THREADS), &arguments)? };
    match device.rehearses() {
        true => Ok(vec![rows.div_ceil(1 << BITS); 1 << BITS]),
        false => counts.read_words(0, 1 << BITS),
    }
}

fn select(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    shift: u32,
    (least, greatest): (u64, u64),
    kept: u64,
) -> Result<Buffer> {
    let tiles = tiles(rows, SELECT_TILE);
    let state = device.alloc_zeroed(OPERATOR, (tiles as usize + 1) * 8)?;
    let out = device.alloc(OPERATOR, kept as usize * 4)?;
    let kernel = device.kernel(&source(), "top_select")?;
    let [data, kind, flip, base] = key.arguments();
    let arguments: [Argument; 10] = [
        data,
        kind,
        flip,
        base,
        rows.into(),
        u64::from(shift).into(),
        least.into(),
        greatest.into(),
        (&state).into(),
        (&out).into(),
    ];
    // SAFETY: TopSelect { key, rows, shift: as above; state: 1 + tiles zeroed u64; out: the
    // histograms counted `kept` rows from `least` to `greatest` }.
    unsafe { device.launch(&kernel, grid(tiles, SELECT_THREADS), &arguments)? };
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn check(device: &Device, words: &[(&[u64], u32)], k: usize) {
        let rows = words[0].0.len();
        let buffers: Vec<Buffer> = words.iter().map(|(keys, _)| upload(device, keys)).collect();
        let sort_words: Vec<SortWord<'_>> =
            buffers.iter().zip(words).map(|(keys, &(_, bits))| SortWord { keys, bits }).collect();
        let (first, more) = sort_words.split_first().unwrap();
        let found = top_k(device, &(*first).into(), more, rows as u64, k as u64).unwrap();
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        expected.sort_by_key(|&row| {
            words.iter().map(|(keys, _)| keys[row as usize]).collect::<Vec<_>>()
        });
        expected.truncate(k);
        assert_eq!(read::<u32>(&found, expected.len()), expected, "{rows} rows, k = {k}");
        assert_eq!(found.len(), expected.len() * 4);
    }

    #[test]
    fn top_k_is_the_head_of_the_sorted_order() {
        for device in devices() {
            for rows in [0, 1, 33, 4097, 9000] {
                let wide: Vec<u64> = random(5, rows).collect();
                let narrow: Vec<u64> = random(6, rows).map(|x| x % 50).collect();
                for k in [0, 1, 10, 100, 20_000] {
                    check(&device, &[(&wide, 64)], k);
                    check(&device, &[(&narrow, 6), (&wide, 64)], k);
                }
            }
        }
    }

    #[test]
    fn top_k_refines_crowded_high_bits_and_takes_the_first_ties() {
        for device in device_and_gpu(7) {
            let rows = 70_000; // more than are sorted without a choice
            let crowded: Vec<u64> = random(8, rows).map(|x| 5 << 50 | x >> 20).collect();
            let ties = vec![3; rows];
            // More than one kernel finds, too.
            for k in [5, 20, 600] {
                check(&device, &[(&crowded, 64)], k);
                check(&device, &[(&ties, 64)], k);
                check(&device, &[(&ties, 5)], k);
            }
        }
    }

    /// Of keys that leave more ties than are sorted, the words behind them decide.
    #[test]
    fn ties_are_told_apart_by_the_words_that_follow() {
        for device in device_and_gpu(29) {
            let rows = 150_000;
            let same = vec![77 << 40; rows];
            let wide: Vec<u64> = random(12, rows).collect();
            // Their last digits overlap what is decided already by 9, 10 and 10 bits, and by none.
            for bits in [2, 12, 23, 33] {
                // One row in a hundred comes before the ties, half of all come after them.
                let value = |x: u64| [1, 2, 3][usize::from(x > 0) + usize::from(x > 50)];
                let crowded: Vec<u64> =
                    random(13, rows).map(|x| value(x % 100) << (bits - 2) | 1).collect();
                check(&device, &[(&crowded, bits), (&wide, 64)], 5000);
                check(&device, &[(&crowded, bits)], 700);
                check(&device, &[(&same, 47), (&crowded, bits), (&wide, 64)], 5000);
                check(&device, &[(&crowded, bits), (&same, 47), (&wide, 64)], 1);
            }
            // Before the ties, and the ties.
            assert!(device.launches()["top_select"] >= 8, "{:?}", device.launches());
        }
    }

    #[test]
    fn top_k_through_a_sample_is_the_head_of_the_sorted_order() {
        for device in device_and_gpu(11) {
            let rows = 70_000;
            let wide: Vec<u64> = random(9, rows).collect();
            let few: Vec<u64> = random(10, rows).map(|x| x % 3000).collect();
            for k in [1, 100, 1000] {
                check(&device, &[(&wide, 64)], k);
                check(&device, &[(&few, 12), (&wide, 64)], k);
            }
            assert!(device.launches().contains_key("top_append"));
        }
    }

    #[test]
    fn every_block_has_k_rows() {
        let device = device(13);
        for rows in [
            1, 2, 999, 1000, 4096, 4097, 16_384, 20_000, 32_768, 65_000, 200_000, 1_000_000,
            2_000_000,
        ] {
            for k in [1, 2, 100, 101, 500, 512] {
                let Some(FewShape { blocks, each }) = FewShape::of(&device, rows, k) else {
                    continue;
                };
                let last = rows.checked_sub((blocks - 1) * each).expect("all blocks have rows");
                assert!(
                    last >= k && last <= each && each <= FEW_TILE && blocks * k <= FEW_TILE,
                    "{rows} {k}"
                );
            }
        }
        assert_eq!(FewShape::of(&device, 10_000_000, 10), None);
        assert_eq!(FewShape::of(&device, 10_000, 513), None);
    }

    #[test]
    fn ties_go_to_the_rows_that_come_first() {
        for device in device_and_gpu(19) {
            for rows in [50, 5000, 30_000] {
                let keys: Vec<u64> = random(3, rows).map(|x| x % 3).collect();
                check(&device, &[(&keys, 2)], 40);
                check(&device, &[(&vec![u64::MAX; rows], 64)], 40);
            }
            assert!(device.launches()["top_few_8"] >= 6, "{:?}", device.launches());
        }
    }

    #[test]
    fn blocks_of_many_rows_find_as_many() {
        for device in device_and_gpu(23) {
            let blocks = u64::from(device.properties().multiprocessors).min(FEW_TILE / FEW_MOST);
            let rows = (blocks * 10_000) as usize;
            let wide: Vec<u64> = random(4, rows).collect();
            let few: Vec<u64> = random(5, rows).map(|x| x % 2000).collect();
            for k in [7, FEW_MOST as usize] {
                check(&device, &[(&wide, 64)], k);
                check(&device, &[(&few, 12)], k);
            }
            assert!(device.launches()["top_few_16"] > 0, "{:?}", device.launches());
        }
    }

    /// Their bits end in each byte, and their sample has equal keys.
    #[test]
    fn samples_of_keys_of_any_width_are_ranked() {
        for device in device_and_gpu(17) {
            for bits in [1, 7, 8, 9, 16, 23, 40, 57, 63, 64] {
                let keys: Vec<u64> =
                    random(bits.into(), 70_000).map(|x| x >> (64 - bits)).collect();
                for k in [50, 600] {
                    check(&device, &[(&keys, bits)], k);
                }
            }
        }
    }
}
