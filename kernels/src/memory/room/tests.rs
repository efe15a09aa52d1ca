use super::*;
use crate::ErrorKind;
use crate::drivers::fake::{Fake, MEMORY};
use crate::{Buffer, DeviceKind, MemoryLimit};

/// Keeps buffers, each a piece.
#[derive(Debug)]
struct Shelf {
    kind: PieceKind,
    pieces: Mutex<Vec<ShelfPiece>>,
}

/// When it was used, and the memory; `None` once it is gone.
type ShelfPiece = Option<(u64, Arc<Buffer>)>;

impl Shelf {
    fn new(device: &Device, kind: PieceKind, pieces: &[(u64, usize)]) -> Arc<Shelf> {
        let piece = |(used, bytes): &(u64, usize)| {
            Some((*used, Arc::new(device.alloc("test", *bytes).unwrap())))
        };
        let shelf =
            Arc::new(Shelf { kind, pieces: Mutex::new(pieces.iter().map(piece).collect()) });
        let holder: Weak<Shelf> = Arc::downgrade(&shelf);
        device.hold(holder);
        shelf
    }

    fn piece(&self, number: usize) -> Arc<Buffer> {
        self.pieces.lock()[number].as_ref().unwrap().1.clone()
    }

    /// Which pieces are left.
    fn left(&self) -> Vec<usize> {
        let pieces = self.pieces.lock();
        pieces
            .iter()
            .enumerate()
            .filter(|(_, piece)| piece.is_some())
            .map(|(number, _)| number)
            .collect()
    }
}

fn buffers(buffer: &Arc<Buffer>) -> Vec<HeldBuffer> {
    let (address, bytes) = (buffer.address(), buffer.len() as u64);
    vec![HeldBuffer { address, bytes, users: Arc::strong_count(buffer), leads: true }]
}

impl Holder for Shelf {
    fn pieces(&self) -> Vec<HeldPiece> {
        let Some(pieces) = self.pieces.try_lock() else { return vec![] };
        let of = |(number, piece): (usize, &ShelfPiece)| {
            let (used, buffer) = piece.as_ref()?;
            Some(HeldPiece { kind: self.kind, number, used: *used, buffers: buffers(buffer) })
        };
        pieces.iter().enumerate().filter_map(of).collect()
    }

    fn let_go(&self, number: usize, holders: &Sharers) -> Result<bool> {
        let Some(mut pieces) = self.pieces.try_lock() else { return Ok(false) };
        let idle =
            pieces[number].as_ref().is_some_and(|(_, buffer)| holders.are_idle(&buffers(buffer)));
        Ok(idle && pieces[number].take().is_some())
    }
}

fn device(limit: u64) -> (Arc<Fake>, Device) {
    let driver = Arc::new(Fake::new());
    let device =
        Device::with_driver(driver.clone(), DeviceKind::Sim, MemoryLimit::Bytes(limit)).unwrap();
    (driver, device)
}

/// Bytes asked for, free, of cached pieces and of kept ones, as the error says.
fn refused(result: Result<Buffer>) -> (u64, u64, u64, u64) {
    match result.expect_err("refused").kind() {
        ErrorKind::OutOfDeviceMemory { operator: "test", asked, free, cached, kept, .. } => {
            (*asked, *free, *cached, *kept)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn pieces_go_by_their_last_use_whoever_holds_them_and_no_more_than_needed() {
    let (_, device) = device(400);
    let a = Shelf::new(&device, PieceKind::Cached, &[(3, 100), (1, 100)]);
    let b = Shelf::new(&device, PieceKind::Cached, &[(2, 100), (0, 100)]);
    assert_eq!(device.memory().evictable, 400);
    let _first = device.alloc("test", 150).unwrap();
    assert_eq!((a.left(), b.left()), (vec![0], vec![0]), "the oldest two");
    let _second = device.alloc("test", 100).unwrap();
    assert_eq!((a.left(), b.left()), (vec![0], vec![]));
    let counters = device.counters();
    assert_eq!((counters.columns_evicted, counters.bytes_evicted), (3, 300));
}

#[test]
fn pieces_that_somebody_uses_stay() {
    let (_, device) = device(300);
    let shelf = Shelf::new(&device, PieceKind::Cached, &[(0, 100), (1, 100), (2, 100)]);
    let used = shelf.piece(0);
    assert_eq!(device.memory().evictable, 200);
    let _first = device.alloc("test", 100).unwrap();
    assert_eq!(shelf.left(), [0, 2]);
    assert_eq!(refused(device.alloc("test", 101)), (101, 0, 200, 0));
    assert_eq!(shelf.left(), [0, 2], "nothing goes in vain");
    drop(used);
    let _second = device.alloc("test", 101).unwrap();
    assert_eq!(shelf.left(), [] as [usize; 0]);
}

#[test]
fn more_than_the_limit_costs_nobody_anything() {
    let (_, device) = device(300);
    let shelf = Shelf::new(&device, PieceKind::Cached, &[(0, 100)]);
    assert_eq!(refused(device.alloc("test", 301)), (301, 200, 100, 0));
    assert_eq!(refused(device.alloc("test", usize::MAX)), (u64::MAX, 200, 100, 0));
    assert_eq!(shelf.left(), [0]);
}

#[test]
fn an_injected_failure_makes_no_room() {
    let (_, device) = device(300);
    let shelf = Shelf::new(&device, PieceKind::Cached, &[(0, 100)]);
    let kept = Shelf::new(&device, PieceKind::Kept, &[(0, 100)]);
    device.fail_allocation_after(0);
    let error = device.alloc("test", 10).expect_err("it is injected");
    assert!(!device.room_retry().makes_room(error.shortage()).unwrap());
    assert_eq!((shelf.left(), kept.left()), (vec![0], vec![0]));
    device.alloc("test", 10).unwrap();
}

#[test]
fn where_the_driver_has_no_memory_freed_blocks_come_back_first() {
    let (driver, device) = device(2 * MEMORY);
    let shelf = Shelf::new(&device, PieceKind::Cached, &[(0, 300), (1, 300)]);
    driver.keep_untrimmed(300);
    let first = device.alloc("test", 400).unwrap();
    assert_eq!((driver.trims(), shelf.left()), (1, vec![0, 1]), "a trim was enough");
    let _second = device.alloc("test", 200).unwrap();
    assert_eq!((driver.trims(), shelf.left()), (2, vec![1]));
    drop(first);
}

#[test]
fn whoever_has_the_lock_is_not_waited_for() {
    let (_, device) = device(300);
    let shelf = Shelf::new(&device, PieceKind::Cached, &[(0, 300)]);
    let locked = shelf.pieces.lock();
    assert_eq!(refused(device.alloc("test", 1)), (1, 0, 0, 0));
    drop(locked);
    device.alloc("test", 1).unwrap();
}

#[test]
fn kept_pieces_move_between_operators_only_and_last() {
    let (_, device) = device(400);
    let kept = Shelf::new(&device, PieceKind::Kept, &[(0, 100), (1, 100), (2, 100)]);
    let cached = Shelf::new(&device, PieceKind::Cached, &[(3, 100)]);
    let _first = device.alloc("test", 100).unwrap();
    assert_eq!((kept.left().len(), cached.left().len()), (3, 0));
    let error = device.alloc("test", 150).expect_err("kept pieces stay");
    let mut retry = device.room_retry();
    assert!(retry.makes_room(error.shortage()).unwrap());
    assert_eq!(kept.left(), [2]);
    let counters = device.counters();
    assert_eq!((counters.tables_moved_out, counters.bytes_moved_out), (2, 200));
    let second = device.alloc("test", 150).unwrap();
    let error = device.alloc("test", 160).expect_err("in use");
    assert!(retry.makes_room(error.shortage()).unwrap() && kept.left().is_empty());
    assert!(!retry.makes_room(error.shortage()).unwrap(), "there is nothing more");
    drop(second);
    assert_eq!(device.make_room(1000).unwrap(), 300);
}

#[test]
fn what_only_holders_share_goes_with_the_last_of_them() {
    let (_, device) = device(300);
    let cached = Shelf::new(&device, PieceKind::Cached, &[(0, 200)]);
    let kept = Shelf::new(&device, PieceKind::Kept, &[(0, 100)]);
    // A kept table of the columns of a file.
    kept.pieces.lock().push(Some((1, cached.piece(0))));
    assert_eq!(device.memory().evictable, 300);
    assert_eq!(refused(device.alloc("test", 10)), (10, 0, 200, 100));
    assert_eq!(device.make_room(250).unwrap(), 300);
    assert_eq!((cached.left().len(), kept.left().len()), (0, 0));
}

#[test]
fn holders_that_are_gone_are_forgotten() {
    let (_, device) = device(MEMORY);
    for _ in 0..1000 {
        Shelf::new(&device, PieceKind::Kept, &[]);
    }
    assert!(device.0.pool.holders.known.lock().len() <= 128);
}
