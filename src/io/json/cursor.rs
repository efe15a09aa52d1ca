//! A walk over JSON text. Everything that it passes is looked at: what is no JSON is an error.

use std::borrow::Cow;

use memchr::memchr2;

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

/// A value of one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonWord<'a> {
    Null,
    Boolean,
    Number(&'a str),
    /// A double that JSON has no number for, as `CAST` reads it.
    Special(&'static str),
}

/// Most objects and arrays within one another: readers of types recurse.
const DEEPEST: usize = 128;

/// A place in a text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    has_special: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0, depth: 0, has_special: false }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The text from a place on.
    pub(super) fn since(&self, begin: usize) -> &'a str {
        &self.text[begin..self.at]
    }

    /// Whether it passed a number that JSON does not have, or a timestamp without seconds, which
    /// arrow-json does not know.
    pub(super) fn has_special(&self) -> bool {
        self.has_special
    }

    fn bytes(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The next byte that is no blank; 0 at the end.
    pub(super) fn peek(&mut self) -> u8 {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let rest = self.bytes();
        let blanks = rest.iter().take_while(|byte| is_blank(byte)).count();
        self.at += blanks;
        rest.get(blanks).copied().unwrap_or(0)
    }

    fn wrong<T>(&self, what: &'static str) -> Result<T, Wrong> {
        Err(Wrong { at: self.at, what })
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Wrong> {
        if self.peek() != byte {
            return self.wrong(what);
        }
        self.at += 1;
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Wrong> {
        self.depth += 1;
        if self.depth > DEEPEST { self.wrong("nested deeper than 128") } else { Ok(()) }
    }

    /// An object: `each` is given each key, and has to pass the value.
    pub(super) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, &'a str) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        self.enter()?;
        self.expect(b'{', "an object is expected")?;
        let mut is_first = true;
        while self.peek() != b'}' {
            if !std::mem::take(&mut is_first) {
                self.expect(b',', "a comma or } is expected")?;
            }
            self.peek();
            let key = self.string()?;
            self.expect(b':', "a colon is expected behind a key")?;
            each(self, key)?;
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    /// An array: `each` has to pass each element.
    pub(super) fn array(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        self.enter()?;
        self.expect(b'[', "an array is expected")?;
        let mut is_first = true;
        while self.peek() != b']' {
            if !std::mem::take(&mut is_first) {
                self.expect(b',', "a comma or ] is expected")?;
            }
            each(self)?;
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    /// Passes a value; its text.
    pub(super) fn value(&mut self) -> Result<&'a str, Wrong> {
        let first = self.peek();
        let begin = self.at;
        match first {
            b'{' => self.object(|cursor, _| cursor.value().map(drop))?,
            b'[' => self.array(|cursor| cursor.value().map(drop))?,
            b'"' => drop(self.string()?),
            _ => drop(self.scalar()?),
        }
        Ok(&self.text[begin..self.at])
    }

    /// A truth value, `null`, or a number.
    pub(super) fn scalar(&mut self) -> Result<JsonWord<'a>, Wrong> {
        if let Some((length, special)) = special(self.bytes()) {
            self.at += length;
            self.has_special = true;
            return Ok(JsonWord::Special(special));
        }
        match self.bytes().first() {
            Some(b't' | b'f' | b'n') => Ok(match self.word()? {
                "null" => JsonWord::Null,
                _ => JsonWord::Boolean,
            }),
            _ => Ok(JsonWord::Number(self.number()?)),
        }
    }

    /// `true`, `false` or `null`.
    fn word(&mut self) -> Result<&'a str, Wrong> {
        let words = ["true", "false", "null"];
        match words.into_iter().find(|word| self.bytes().starts_with(word.as_bytes())) {
            Some(word) => {
                self.at += word.len();
                Ok(word)
            }
            None => self.wrong("a value is expected"),
        }
    }

    /// `[-] digits [. digits] [e [sign] digits]`.
    fn number(&mut self) -> Result<&'a str, Wrong> {
        let (begin, bytes) = (self.at, self.bytes());
        let mut at = usize::from(bytes.first() == Some(&b'-'));
        let digits = |at: usize| bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let whole = digits(at);
        if whole == 0 {
            return self.wrong("a value is expected");
        }
        if whole > 1 && bytes[at] == b'0' {
            return self.wrong("a number begins with 0");
        }
        at += whole;
        if bytes.get(at) == Some(&b'.') {
            let fraction = digits(at + 1);
            if fraction == 0 {
                return self.wrong("digits are expected behind the point of a number");
            }
            at += 1 + fraction;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let exponent = digits(at.min(bytes.len()));
            if exponent == 0 {
                return self.wrong("digits are expected in the exponent of a number");
            }
            at += exponent;
        }
        self.at += at;
        Ok(&self.text[begin..self.at])
    }

    /// What a string's quotes hold, escapes as they are written.
    pub(super) fn string(&mut self) -> Result<&'a str, Wrong> {
        if self.bytes().first() != Some(&b'"') {
            return self.wrong("a string is expected");
        }
        self.at += 1;
        let begin = self.at;
        loop {
            let rest = self.bytes();
            let Some(next) = memchr2(b'"', b'\\', rest) else {
                return self.wrong("a string does not end");
            };
            if rest[..next].iter().any(|byte| *byte < b' ') {
                return self.wrong("a string has a control character, such as a line end");
            }
            self.at += next;
            if rest[next] == b'"' {
                let text = &self.text[begin..self.at];
                self.at += 1;
                self.has_special |= lacks_seconds(text);
                return Ok(text);
            }
            self.escape()?;
        }
    }

    fn escape(&mut self) -> Result<(), Wrong> {
        const SURROGATE: &str = "half of a character is escaped";
        let code = |bytes: &[u8], at: usize| {
            let digits = bytes.get(at..at + 6).filter(|digits| digits.starts_with(b"\\u"))?;
            let digits = std::str::from_utf8(&digits[2..]).ok()?;
            u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
        };
        let bytes = self.bytes();
        self.at += match bytes.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => match code(bytes, 0) {
                Some(0xD800..0xDC00) => match code(bytes, 6) {
                    Some(0xDC00..0xE000) => 12,
                    _ => return self.wrong(SURROGATE),
                },
                Some(0xDC00..0xE000) => return self.wrong(SURROGATE),
                Some(_) => 6,
                None => return self.wrong("four hexadecimal digits are expected behind \\u"),
            },
            _ => return self.wrong("a backslash escapes nothing"),
        };
        Ok(())
    }
}

/// `NaN`, `Infinity` and `-Infinity`, short and in any case, which JSON does not have and many
/// write: how many bytes it has.
fn special(bytes: &[u8]) -> Option<(usize, &'static str)> {
    const WORDS: [(&str, &str); 6] = [
        ("nan", "NaN"),
        ("infinity", "inf"),
        ("inf", "inf"),
        ("-nan", "NaN"),
        ("-infinity", "-inf"),
        ("-inf", "-inf"),
    ];
    let first = bytes.first().filter(|first| matches!(first, b'n' | b'N' | b'i' | b'I' | b'-'))?;
    let begins = |word: &str| {
        bytes.get(..word.len()).is_some_and(|own| own.eq_ignore_ascii_case(word.as_bytes()))
            && !bytes.get(word.len()).is_some_and(u8::is_ascii_alphanumeric)
    };
    let is_number = *first == b'-' && bytes.get(1).is_some_and(u8::is_ascii_digit);
    let found = WORDS.iter().find(|(word, _)| !is_number && begins(word))?;
    Some((found.0.len(), found.1))
}

/// Whether a text may be a timestamp that ends with its minutes: `2024-02-29 12:30`, with a zone or
/// not.
pub(super) fn lacks_seconds(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.get(13) == Some(&b':') && bytes.len() >= 16 && bytes.get(16) != Some(&b':')
}

/// What a string stands for.
pub(super) fn unescaped(string: &str) -> Cow<'_, str> {
    if !string.contains('\\') {
        return Cow::Borrowed(string);
    }
    // It was looked at already.
    serde_json::from_str(&format!("\"{string}\"")).map_or(Cow::Borrowed(string), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_as_a_whole() {
        for text in [
            "1",
            "-0.5e+10",
            "true",
            "null",
            "\"\"",
            "\"\\u00e9\\ud83d\\ude00\\n\"",
            "[]",
            "[1, [2], {\"a\": {}}]",
            "{\"a\" : 1 ,\"b\":[ ]}",
        ] {
            assert_eq!(Cursor::new(text).value(), Ok(text));
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "tru",
            "01",
            "1.",
            "-",
            "1e",
            "\"",
            "\"\\x\"",
            "\"\\ud83d\"",
            "\"\\ude00\"",
            "\"\\u12\"",
            "\"a\nb\"",
            "[1 2]",
            "[1,]",
            "[,1]",
            "{\"a\"}",
            "{\"a\":}",
            "{1:2}",
            "{\"a\":1,}",
            "{\"a\":1",
            "[",
            "\"\\u+123\"",
        ] {
            assert!(Cursor::new(text).value().is_err(), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text}");
        }
        for text in ["NaN", "Infinity", "-Infinity", "nan", "-inf"] {
            assert_eq!(Cursor::new(text).value(), Ok(text));
        }
        for text in ["NaNs", "Inf0", "--inf", "- inf", "nul"] {
            let mut cursor = Cursor::new(text);
            assert!(cursor.value().is_err(), "{text}");
        }
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(Cursor::new(&deep(DEEPEST)).value().is_ok());
        assert!(Cursor::new(&deep(DEEPEST + 1)).value().is_err());
        assert_eq!(unescaped("a\\u00e9\\\"b"), "aé\"b");
    }
}
