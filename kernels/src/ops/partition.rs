//! Where partitions of records begin, and how their readers share them. Kernels in
//! `kernels/partition.cuh`; the kernels that write and read records are generated.

use super::grid;
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource};

const OPERATOR: &str = "partition";
/// `PARTITION_PLACES_THREADS` of the kernels.
const THREADS: u32 = 1024;

pub(super) fn source() -> KernelSource {
    KernelSource::new("partition", "#include \"partition.cuh\"\nWF_PARTITION_ENTRIES\n")
}

/// Room for records by partition.
#[derive(Debug)]
pub struct Partitions {
    pub parts: u32,
    /// Where each partition begins, and where the last ends: `u64 × (parts + 1)`.
    pub begins: Buffer,
    /// Where each partition's next record goes: `u64 × parts`.
    pub cursors: Buffer,
    /// Records there is room for in all.
    pub capacity: u64,
}

impl Partitions {
    /// Places for `rows` rows, of which every `step`th was counted by partition in `histogram`
    /// (`u32 × parts`).
    pub fn new(
        device: &Device,
        histogram: &Buffer,
        parts: u32,
        rows: u64,
        step: u64,
    ) -> Result<Self> {
        assert!(histogram.len() >= parts as usize * 4, "{parts} counts");
        let begins = device.alloc(OPERATOR, (parts as usize + 1) * 8)?;
        let cursors = device.alloc(OPERATOR, parts as usize * 8)?;
        let kernel = device.kernel(&source(), "partition_places")?;
        let arguments: [Argument; 5] = [
            histogram.into(),
            u64::from(parts).into(),
            step.into(),
            (&begins).into(),
            (&cursors).into(),
        ];
        // SAFETY: PartitionPlaces { histogram: parts u32, checked; parts; step; begins: parts + 1
        // u64; cursors: parts u64 }.
        unsafe { device.launch(&kernel, grid(1, THREADS), &arguments)? };
        Ok(Partitions { parts, begins, cursors, capacity: capacity(u64::from(parts), rows, step) })
    }

    /// The first item of each partition, `u32 × (parts + 1)`, where no item holds more than `most`
    /// records.
    pub fn items(&self, device: &Device, most: u64) -> Result<Buffer> {
        let items = device.alloc(OPERATOR, (self.parts as usize + 1) * 4)?;
        let kernel = device.kernel(&source(), "partition_items")?;
        let arguments: [Argument; 5] = [
            (&self.begins).into(),
            (&self.cursors).into(),
            u64::from(self.parts).into(),
            most.max(1).into(),
            (&items).into(),
        ];
        // SAFETY: PartitionItems { begins: parts + 1 u64; cursors: parts u64; parts; most > 0;
        // items: parts + 1 u32 }.
        unsafe { device.launch(&kernel, grid(1, THREADS), &arguments)? };
        Ok(items)
    }

    /// Items there are at most.
    pub fn most_items(&self, most: u64) -> u64 {
        self.capacity / most.max(1) + u64::from(self.parts)
    }
}

/// What all partitions take at most. The roots of a sample's counts add up to no more than if all
/// were equal.
fn capacity(parts: u64, rows: u64, step: u64) -> u64 {
    if step == 1 {
        return rows + 32 * parts;
    }
    let sampled = rows.div_ceil(step);
    let slack = 7.0 * ((parts * sampled) as f64).sqrt();
    (sampled + slack as u64 + 17 * parts) * step + 32 * parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn histogram(parts: usize) -> Vec<u32> {
        random(parts as u64, parts)
            .map(|x| if x % 5 == 0 { 0 } else { (x % 3000) as u32 })
            .collect()
    }

    #[test]
    fn partitions_have_room_for_what_was_counted() {
        for device in devices() {
            for parts in [1, 2, 31, 1023, 1024, 1025, 4096] {
                let counts = histogram(parts);
                let counted: u64 = counts.iter().map(|&c| u64::from(c)).sum();
                for step in [1, 8, 32] {
                    let found = Partitions::new(
                        &device,
                        &upload(&device, &counts),
                        parts as u32,
                        counted * step,
                        step,
                    )
                    .unwrap();
                    let begins = read::<u64>(&found.begins, parts + 1);
                    assert_eq!(begins[0], 0);
                    assert_eq!(read::<u64>(&found.cursors, parts), begins[..parts]);
                    assert!(
                        begins[parts] <= found.capacity,
                        "{} of {}",
                        begins[parts],
                        found.capacity
                    );
                    for (part, &count) in counts.iter().enumerate() {
                        let room = begins[part + 1] - begins[part];
                        let slack = if step == 1 {
                            0
                        } else {
                            7.0 as u64 * (f64::from(count).sqrt() as u64) + 16
                        };
                        assert!(
                            room >= (u64::from(count) + slack) * step && room.is_multiple_of(32),
                            "{count} in {room}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn items_hold_no_more_than_they_may() {
        for device in devices() {
            let counts = histogram(2000);
            let rows = counts.iter().map(|&c| u64::from(c)).sum();
            let places =
                Partitions::new(&device, &upload(&device, &counts), 2000, rows, 1).unwrap();
            let ends: Vec<u64> = (read::<u64>(&places.begins, 2000).iter().zip(&counts))
                .map(|(begin, &count)| begin + u64::from(count))
                .collect();
            places
                .cursors
                .write(0, &ends.iter().flat_map(|end| end.to_le_bytes()).collect::<Vec<_>>())
                .unwrap();
            for most in [1, 100, 2999, 1 << 40] {
                let items = read::<u32>(&places.items(&device, most).unwrap(), 2001);
                let expected: Vec<u32> =
                    counts.iter().map(|&count| u64::from(count).div_ceil(most) as u32).collect();
                assert!(items.windows(2).map(|pair| pair[1] - pair[0]).eq(expected));
                assert!(items[0] == 0 && u64::from(items[2000]) <= places.most_items(most));
            }
        }
    }
}
