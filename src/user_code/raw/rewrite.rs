//! A source as the simulator compiles it: the arguments of kernels, and what is made of them, are
//! pointers that are checked, and shared memory is an object of each block (`kernels/raw.cuh`).
//!
//! Lines stay as they are, so that compilers name those of the user; columns are told by the places
//! that were changed. What is not understood stays: then a plain pointer is used, which is not
//! checked.

use super::tokens::SourceToken;

/// The changed source.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) text: String,
    edits: Vec<Edit>,
}

/// What stands in the place of a range of the source.
#[derive(Debug)]
struct Edit {
    start: usize,
    end: usize,
    by: String,
}

impl Rewritten {
    /// The column in a line of the source that one in the same line of the text stands for.
    pub(super) fn column_of_source(&self, source: &str, line: u64, column: u64) -> u64 {
        let begin_of = |text: &str| {
            let lines = text.split_inclusive('\n').take(line.saturating_sub(1) as usize);
            lines.map(str::len).sum::<usize>()
        };
        if line == 0 || column == 0 {
            return column;
        }
        let (begin, place) = (begin_of(source), begin_of(&self.text) + column as usize - 1);
        // How far the text behind the edits so far is ahead of the source.
        let mut ahead = 0isize;
        for Edit { start, end, by } in &self.edits {
            let at = start.saturating_add_signed(ahead);
            if place < at {
                break;
            }
            if place < at + by.len() {
                return (start.saturating_sub(begin) + 1) as u64;
            }
            ahead += by.len() as isize - (end - start) as isize;
        }
        (place.saturating_add_signed(-ahead).saturating_sub(begin) + 1) as u64
    }
}

/// Words that make a type, with qualifiers.
const TYPE_WORDS: [&str; 13] = [
    "const", "volatile", "unsigned", "signed", "char", "short", "int", "long", "float", "double",
    "bool", "size_t", "__int128",
];
const QUALIFIERS: [&str; 2] = ["const", "volatile"];
const POINTER_WORDS: [&str; 3] = ["const", "__restrict__", "__restrict"];

/// The source with checked pointers; `open` is the token that opens the kernel's parameters.
///
/// # Errors
/// Why there can be no such text.
pub(super) fn rewritten(
    source: &str,
    tokens: &[SourceToken],
    open: usize,
) -> Result<Rewritten, String> {
    let mut rewriter = Rewriter { source, tokens, edits: vec![] };
    let (mut at, mut parens, mut braces) = (0, 0usize, 0usize);
    let close = rewriter.closing(open);
    while at < tokens.len() {
        match rewriter.text(at) {
            "(" => parens += 1,
            ")" => parens = parens.saturating_sub(1),
            "{" => braces += 1,
            "}" => braces = braces.saturating_sub(1),
            "__shared__" => {
                at = rewriter.shared(at, braces)?;
                continue;
            }
            _ => {}
        }
        let is_parameter = open < at && at < close;
        at = rewriter.pointer(at, parens, is_parameter).unwrap_or(at + 1);
    }
    let mut text = String::with_capacity(source.len() * 2);
    let mut done = 0;
    for Edit { start, end, by } in &mut rewriter.edits {
        text.push_str(&source[done..*start]);
        // Lines keep their numbers.
        by.push_str(&"\n".repeat(source[*start..*end].matches('\n').count()));
        text.push_str(by);
        done = *end;
    }
    text.push_str(&source[done..]);
    Ok(Rewritten { text, edits: rewriter.edits })
}

struct Rewriter<'a> {
    source: &'a str,
    tokens: &'a [SourceToken],
    /// In the order of their places.
    edits: Vec<Edit>,
}

impl<'a> Rewriter<'a> {
    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text(self.source))
    }

    fn is_word(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_word(self.source))
    }

    fn edit(&mut self, first: usize, end: usize, by: String) {
        self.edits.push(Edit { start: self.tokens[first].start, end, by });
    }

    /// What closes a parenthesis.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0;
        for at in open..self.tokens.len() {
            match self.text(at) {
                "(" => depth += 1,
                ")" if depth == 1 => return at,
                ")" => depth -= 1,
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// Changes the declaration of a pointer that begins here, if one does: the token behind it.
    fn pointer(&mut self, first: usize, parens: usize, is_parameter: bool) -> Option<usize> {
        if first > 0 && self.is_word(first - 1) && !self.may_precede(first - 1) {
            return None;
        }
        let mut star = first;
        while self.is_word(star) && (TYPE_WORDS.contains(&self.text(star)) || is_parameter) {
            star += 1;
        }
        let words: Vec<&str> = (first..star).map(|at| self.text(at)).collect();
        if words.iter().all(|word| QUALIFIERS.contains(word)) {
            return None;
        }
        if is_parameter && self.text(star) == "[" && words.len() > 1 {
            // `T name[]`: the name is the last of the words.
            let end = (star..self.tokens.len()).find(|at| self.text(*at) == "]")?;
            let (name, of) = (self.text(star - 1), words[..words.len() - 1].join(" "));
            let by = format!("::wf::checked<{of}> {name}");
            self.edit(first, self.tokens[end].end, by);
            return Some(end + 1);
        }
        if self.text(star) != "*" {
            return None;
        }
        let mut name = star + 1;
        while POINTER_WORDS.contains(&self.text(name)) {
            name += 1;
        }
        if !self.is_word(name) {
            return None;
        }
        let is_declared = match self.text(name + 1) {
            "," | ")" => parens > 0,
            "=" | ";" => !self.declares_several(name + 1),
            _ => false,
        };
        if !is_declared {
            return None;
        }
        let is_const = (star + 1..name).any(|at| self.text(at) == "const");
        let outer = if is_const { "const " } else { "" };
        let by = format!("{outer}::wf::checked<{}> ", words.join(" "));
        self.edit(first, self.tokens[name].start, by);
        Some(name + 1)
    }

    /// Whether a declaration may follow a word or sign.
    fn may_precede(&self, at: usize) -> bool {
        ["static", "inline", "__device__", "register", "else", "do"].contains(&self.text(at))
    }

    /// Whether the declaration that goes on here has other names behind a comma.
    fn declares_several(&self, from: usize) -> bool {
        let mut depth = 0;
        for at in from..self.tokens.len() {
            match self.text(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                "," if depth == 0 => return true,
                ";" if depth == 0 => return false,
                _ => {}
            }
            if depth < 0 {
                return false;
            }
        }
        false
    }

    /// Changes a declaration of shared memory: the token that ends it.
    fn shared(&mut self, at: usize, braces: usize) -> Result<usize, String> {
        let before = at.checked_sub(1).map_or("", |before| self.text(before));
        let first = if ["extern", "static"].contains(&before) { at - 1 } else { at };
        let end = (at..self.tokens.len()).find(|at| self.text(*at) == ";");
        let end = end.ok_or("a declaration of `__shared__` does not end")?;
        let mut of = at + 1;
        let mut is_extern = before == "extern";
        loop {
            match self.text(of) {
                "extern" => {
                    is_extern = true;
                    of += 1;
                }
                "static" => of += 1,
                "__align__" | "alignas" => of = self.closing(of + 1) + 1,
                _ => break,
            }
        }
        let declared = self.source[self.tokens[first].start..self.tokens[end].start].to_string();
        let unknown = || format!("the simulator does not understand the declaration `{declared}`");
        let names = self.names(of, end).ok_or_else(unknown)?;
        let until = |first: usize, end: usize| {
            &self.source[self.tokens[first].start..self.tokens[end].start]
        };
        let dtype = until(of, names[0].0).trim().replace('\n', " ");
        let mut by = String::new();
        if is_extern {
            let [(name, _)] = names[..] else { return Err(unknown()) };
            by.push_str(&format!("static ::wf::dynamic_shared<{dtype}> {}", self.text(name)));
        } else {
            if braces == 0 {
                return Err(format!(
                    "the simulator has no `__shared__` outside of functions: `{declared}`"
                ));
            }
            for (name, behind) in names {
                let (dimensions, name) =
                    (until(name + 1, behind).replace('\n', " "), self.text(name));
                by.push_str(&format!(
                    "static char wf_site_{name}; typedef {dtype} wf_element_{name}; typedef wf_element_{name} \
                     wf_whole_{name}{dimensions}; wf_whole_{name}& {name} = *(wf_whole_{name}*)wf_sim_shared(\
                     &wf_site_{name}, sizeof(wf_whole_{name}), \"{name}\"); "
                ));
            }
            // The semicolon of the declaration is left.
            by.truncate(by.trim_end().len() - 1);
        }
        self.edit(first, self.tokens[end].start, by);
        Ok(end)
    }

    /// The declared names up to a semicolon, each with what ends it.
    fn names(&self, from: usize, end: usize) -> Option<Vec<(usize, usize)>> {
        let (mut depth, mut name, mut names) = (0, None, vec![]);
        for at in from..=end {
            match self.text(at) {
                "[" | "(" | "<" => depth += 1,
                "]" | ")" | ">" => depth -= 1,
                "=" | "{" if depth == 0 => return None,
                "," | ";" if depth == 0 => names.push((name.take()?, at)),
                _ if depth == 0 && self.is_word(at) => name = Some(at),
                _ => {}
            }
        }
        // In front of the first stands its type.
        Some(names).filter(|names| !names.is_empty() && names[0].0 > from)
    }
}
