//! The terminal's width.

use std::io::IsTerminal;

/// Characters of a line: what the variable `COLUMNS` says, else the terminal that standard output
/// is. `None` where standard output is none.
pub(super) fn columns() -> Option<usize> {
    if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok())
        && columns > 0
    {
        return Some(columns);
    }
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes one `winsize` to the pointer, which is to a live one; a descriptor
    // that is no terminal is an error and writes nothing.
    let known = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) } == 0;
    (known && size.ws_col > 0).then_some(usize::from(size.ws_col))
}
