//! The words of a source in C++, as far as signatures and declarations need them.

/// A word, a number, a literal or a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SourceToken {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl SourceToken {
    pub(super) fn text(self, source: &str) -> &str {
        &source[self.start..self.end]
    }

    pub(super) fn is_word(self, source: &str) -> bool {
        self.text(source).starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

/// All of a source but blanks, comments and lines of the preprocessor.
pub(super) fn tokens(source: &str) -> Vec<SourceToken> {
    let bytes = source.as_bytes();
    let (mut found, mut at, mut begins_line) = (vec![], 0, true);
    let ends = |from: usize, mark: &str| {
        source[from..].find(mark).map_or(bytes.len(), |length| from + length)
    };
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'\n' => {
                begins_line = true;
                at += 1;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'#' if begins_line => {
                at = ends(at, "\n");
                while bytes[..at].ends_with(b"\\") && at < bytes.len() {
                    at = ends(at + 1, "\n");
                }
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = ends(at, "\n");
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = (ends(at + 2, "*/") + 2).min(bytes.len());
                continue;
            }
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                while !source.is_char_boundary(at) {
                    at += 1;
                }
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' => {
                // Digits may be apart by quotes, and have an exponent with a sign, which matters to
                // nobody here.
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                    at += 1;
                }
            }
            _ if source[at..].starts_with("...") => at += 3,
            _ => {
                at += 1;
                while !source.is_char_boundary(at) {
                    at += 1;
                }
            }
        }
        begins_line = false;
        found.push(SourceToken { start, end: at });
    }
    found
}
