//! Whether every line of a CSV file is a row, so that it can be cut at any line's end and its parts
//! be read on different cores.
//!
//! A line's end inside a quoted value belongs to the value. A quote opens a value only at the
//! value's begin, so one line says whether it ends inside a value, given that it begins outside of
//! one. Where every line that has a quote ends outside, all lines begin outside, by induction from
//! the first.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use memchr::{memchr, memchr2, memrchr};

/// Bytes that a thread looks at together.
const BLOCK: u64 = 4 << 20;
/// A longer line is not followed: the file is taken for one whose lines are not rows.
const LONGEST_LINE: u64 = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Whether each line that a line feed ends is a row. Reads the file once, on all cores.
///
/// # Errors
/// Of a file that cannot be read.
pub(super) fn are_rows(path: &Path, delimiter: u8, quote: u8) -> io::Result<bool> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let blocks = size.div_ceil(BLOCK);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let (next, rows) = (AtomicU64::new(0), AtomicBool::new(true));
    let work = || -> io::Result<()> {
        let mut bytes = vec![];
        loop {
            let block = next.fetch_add(1, Relaxed);
            if block >= blocks || !rows.load(Relaxed) {
                return Ok(());
            }
            // With the line before the block and the one behind it: each line is seen whole by some
            // block.
            let begin = (block * BLOCK).saturating_sub(LONGEST_LINE);
            let end = size.min((block + 1) * BLOCK + LONGEST_LINE);
            bytes.resize((end - begin) as usize, 0);
            file.read_exact_at(&mut bytes, begin)?;
            let own = (block * BLOCK - begin) as usize..(size.min((block + 1) * BLOCK) - begin) as usize;
            if !of_block(&bytes, own, (begin == 0, end == size), delimiter, quote) {
                rows.store(false, Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores.min(blocks)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
    })?;
    Ok(rows.into_inner())
}

/// Whether every line that has a quote among the bytes `own` ends outside of a value. `edges`:
/// whether the bytes begin and end with the file.
fn of_block(bytes: &[u8], own: std::ops::Range<usize>, edges: (bool, bool), delimiter: u8, quote: u8) -> bool {
    let mut at = own.start;
    while let Some(found) = memchr2(quote, b'\r', &bytes[at..own.end]) {
        let place = at + found;
        if bytes[place] == b'\r' {
            // A carriage return alone ends a row, too, but where files are cut nobody looks for it.
            let feeds = bytes.get(place + 1) == Some(&b'\n');
            let ends_file = edges.1 && place + 1 == bytes.len();
            if !feeds && !ends_file {
                return false;
            }
            at = place + 1;
            continue;
        }
        let begin = match memrchr(b'\n', &bytes[..place]) {
            Some(end) => end + 1,
            None if edges.0 => 0,
            None => return false,
        };
        let end = match memchr(b'\n', &bytes[place..]) {
            Some(end) => place + end,
            None if edges.1 => bytes.len(),
            None => return false,
        };
        let line = match edges.0 && begin == 0 {
            true => bytes[..end].strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes[..end]),
            false => &bytes[begin..end],
        };
        if !ends_outside(line, delimiter, quote) {
            return false;
        }
        at = end.min(own.end);
    }
    true
}

/// Whether a line that begins outside of a value ends so, and has no other row's end in it.
fn ends_outside(line: &[u8], delimiter: u8, quote: u8) -> bool {
    let (mut inside, mut at_begin) = (false, true);
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if inside {
            // A doubled quote is one of the value.
            if byte == quote && bytes.next_if_eq(&quote).is_none() {
                inside = false;
            }
        } else if byte == quote && at_begin {
            inside = true;
        } else if byte == b'\r' && bytes.peek().is_some() {
            return false;
        }
        at_begin = !inside && byte == delimiter;
    }
    !inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> bool {
        of_block(text.as_bytes(), 0..text.len(), (true, true), b',', b'"')
    }

    #[test]
    fn lines_are_rows_unless_a_value_goes_on_behind_one() {
        for text in ["", "a", "a,b\n1,2\n", "a\r\n\"x\"\r\n", "\"a\",b\n\"x\"\"y\",2", "5\" pipe,3\n6\" pipe,4\n"] {
            assert!(verdict(text), "{text:?}");
        }
        // A quote within a value does not open it: two of them in a line do not close what the
        // second opens.
        for text in [
            "\"a\nb\",1\n",
            "a,\"x\n",
            "a\"b,\"x\ny\"\n",
            "\u{feff}\"a\nb\"",
            "1\r2\r",
            "\"x\"\"\ny\"",
            "\"a\"\r\"b\"\r\n",
        ] {
            assert!(!verdict(text), "{text:?}");
        }
    }

    #[test]
    fn blocks_of_a_file_agree_with_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines.csv");
        let line = "\"value, with a delimiter\",12345,plain text\n";
        let mut text = line.repeat(3 * BLOCK as usize / line.len());
        std::fs::write(&path, &text).unwrap();
        assert!(are_rows(&path, b',', b'"').unwrap());
        // One line goes on, in the last block.
        let at = text.len() - 10 * line.len() + 5;
        text.replace_range(at..at + 1, "\n");
        std::fs::write(&path, &text).unwrap();
        assert!(!are_rows(&path, b',', b'"').unwrap());
        // A line longer than what is followed.
        std::fs::write(&path, format!("\"{}\"\n", "x".repeat(3 * LONGEST_LINE as usize + BLOCK as usize))).unwrap();
        assert!(!are_rows(&path, b',', b'"').unwrap());
    }
}
