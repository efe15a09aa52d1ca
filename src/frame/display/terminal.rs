//! The terminal's size.

use std::io::IsTerminal;

/// Characters of a line: what the variable `COLUMNS` says, else the terminal that standard output
/// is. `None` where standard output is none.
pub(super) fn columns() -> Option<usize> {
    if let Some(columns) =
        warpframe_device::environment::text("COLUMNS").ok().and_then(|text| text.parse().ok())
        && columns > 0
    {
        return Some(columns);
    }
    terminal_size().map(|(columns, _)| columns)
}

/// Characters of a line and lines of the terminal that standard output is; `None` where that is
/// none, or does not know its size.
pub fn terminal_size() -> Option<(usize, usize)> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes one `winsize` to the pointer, which is to a live one; a descriptor
    // that is no terminal is an error and writes nothing.
    let known = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) } == 0;
    (known && size.ws_col > 0 && size.ws_row > 0)
        .then_some((size.ws_col.into(), size.ws_row.into()))
}
