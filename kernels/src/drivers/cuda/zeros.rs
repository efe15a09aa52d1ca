//! Small blocks of zeros. Most kernels want a few words that are zero, and setting them to zero one
//! by one takes the host and the device longer than a launch does. So slabs are set to zero whole,
//! and blocks cut from them one after the other.
//!
//! ```text
//!   slab   ▒▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓░░░░░░░░░░░░░░     ▒ came back, no longer zero   ▓ given out   ░ zero
//! ```
//!
//! A slab is cut once from its beginning to its end. When all its blocks have come back it can be
//! set to zero again.

/// Blocks, and all other allocations, are multiples of this, as the driver's are.
pub(super) const ALIGNMENT: usize = 256;

/// The slabs; blocks are cut from the last one.
#[derive(Debug, Default)]
pub(super) struct Zeros(Vec<Slab>);

#[derive(Debug)]
struct Slab {
    address: u64,
    /// Bytes that have been cut off.
    cut: usize,
    /// Blocks that have not come back.
    live: usize,
}

impl Slab {
    fn holds(&self, address: u64) -> bool {
        (self.address..self.address + Zeros::SLAB as u64).contains(&address)
    }
}

impl Zeros {
    /// Bytes of a slab, and of the largest block.
    pub(super) const SLAB: usize = 256 << 10;
    pub(super) const LARGEST: usize = 8 << 10;

    /// A block of at most [`Zeros::LARGEST`] bytes; `None` where a slab has to be added first.
    pub(super) fn take(&mut self, bytes: usize) -> Option<u64> {
        let slab = self.0.last_mut()?;
        let size = bytes.next_multiple_of(ALIGNMENT);
        if slab.cut + size > Self::SLAB {
            return None;
        }
        let address = slab.address + slab.cut as u64;
        slab.cut += size;
        slab.live += 1;
        Some(address)
    }

    /// Whether this is a block of a slab, which takes it back.
    pub(super) fn put(&mut self, address: u64) -> bool {
        let slab = self.0.iter_mut().find(|slab| slab.holds(address));
        slab.map(|slab| slab.live -= 1).is_some()
    }

    /// A slab that nobody uses, which is no longer one of these.
    pub(super) fn idle(&mut self) -> Option<u64> {
        let at = self.0.iter().position(|slab| slab.live == 0)?;
        Some(self.0.remove(at).address)
    }

    /// Adds a slab of zeros.
    pub(super) fn add(&mut self, address: u64) {
        self.0.push(Slab { address, cut: 0, live: 0 });
    }

    /// Bytes of slabs that nobody uses.
    pub(super) fn idle_bytes(&self) -> u64 {
        self.0.iter().filter(|slab| slab.live == 0).count() as u64 * Self::SLAB as u64
    }

    /// All slabs that nobody uses, which are no longer some of these.
    pub(super) fn drain(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.idle()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_a_slab_is_given_out_twice_before_it_is_idle() {
        let mut zeros = Zeros::default();
        assert_eq!((zeros.take(1), zeros.idle()), (None, None));
        zeros.add(1 << 20);
        let mut end = 1 << 20;
        let mut blocks = vec![];
        for bytes in [1, 168, 256, 257, Zeros::LARGEST].into_iter().cycle() {
            let Some(address) = zeros.take(bytes) else { break };
            assert!(address >= end && address.is_multiple_of(ALIGNMENT as u64));
            end = address + bytes as u64;
            blocks.push(address);
        }
        assert!(end <= (1 << 20) + Zeros::SLAB as u64 && blocks.len() > 100, "{}", blocks.len());
        for address in blocks {
            assert_eq!((zeros.idle(), zeros.idle_bytes()), (None, 0));
            assert!(zeros.put(address));
        }
        assert_eq!((zeros.take(Zeros::LARGEST), zeros.idle_bytes()), (None, Zeros::SLAB as u64));
        assert_eq!((zeros.idle(), zeros.idle()), (Some(1 << 20), None));
    }

    #[test]
    fn slabs_in_use_stay_and_strangers_are_not_taken() {
        let mut zeros = Zeros::default();
        let (first, second) = (1 << 20, 1 << 21);
        zeros.add(first);
        assert_eq!(zeros.take(100), Some(first));
        zeros.add(second);
        assert_eq!(zeros.take(100), Some(second));
        assert!(
            !zeros.put(first - 1) && !zeros.put(first + Zeros::SLAB as u64) && !zeros.put(3 << 20)
        );
        assert!(zeros.put(second));
        assert_eq!(zeros.drain(), [second]);
        assert!(zeros.put(first));
        assert_eq!((zeros.drain(), zeros.drain()), (vec![first], vec![]));
    }
}
