//! `docs/methods.md` names no method of ours that is not there.

use std::collections::BTreeSet;
use std::path::Path;

const PAGE: &str = include_str!("../../docs/methods.md");

/// What the sources that users see define: public functions, macros, and the entries of macros that
/// make functions, which stand below the text that documents them.
fn defined() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let session =
        ["session.rs", "session/device_doors.rs", "session/from_values.rs", "session/tables.rs"];
    let mut files: Vec<_> = session.map(|file| root.join(file)).into();
    let mut folders = vec![root.join("frame")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("a file").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source");
        let mut documented = false;
        for line in text.lines().map(str::trim) {
            let item = ["pub fn ", "macro_rules! "].iter().find_map(|kind| line.strip_prefix(kind));
            let entry = Some(line).filter(|_| documented && !line.starts_with("///"));
            let name = item.or(entry).unwrap_or_default();
            names.insert(
                name.chars()
                    .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                    .collect(),
            );
            documented = line.starts_with("///") || documented && line.starts_with("#[");
        }
    }
    // Of `impl From`.
    names.insert("from".into());
    names
}

/// The names of functions in a piece of code: those that are called, and one that stands alone.
fn called(code: &str) -> Vec<String> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    if code.chars().all(is_name) {
        return vec![code.to_string()];
    }
    // What is between quotes is no code.
    let code: String = code.split('"').step_by(2).collect();
    let mut names = vec![];
    for (at, _) in code.match_indices(['(', '!']).chain(code.match_indices("::<")) {
        let before = &code[..at];
        let name = before.rsplit(|letter| !is_name(letter)).next().unwrap_or_default();
        if name.starts_with(char::is_lowercase) && name != "vec" {
            names.push(name.to_string());
        }
    }
    names
}

/// What the page says is here.
fn claimed() -> Vec<String> {
    let mut claims = vec![];
    let mut same = false;
    for line in PAGE.lines() {
        same = line.starts_with("The same: ") || same && !line.is_empty();
        let row = line.replace("\\|", " ");
        let cells: Vec<&str> = row.split('|').collect();
        let ours = match cells[..] {
            _ if same => row.as_str(),
            ["", _, ours, _, ""] => ours,
            _ => continue,
        };
        claims.extend(ours.split('`').skip(1).step_by(2).flat_map(called));
    }
    claims
}

/// Rust's own account of a type that fits none of our traits is seldom of use.
#[test]
fn public_traits_say_what_to_write() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut traits, mut silent) = (vec![root], 0, vec![]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source");
            for (at, _) in text.match_indices("\npub trait ") {
                traits += 1;
                let item = text[..at].rsplit("\n\n").next().unwrap_or_default();
                // What is sealed is named by another, which says it through this one.
                let name = text[at + 11..].split([':', ' ', '{']).next().unwrap_or_default();
                if !item.contains("#[diagnostic::on_unimplemented(") && name != "FrameState" {
                    silent.push(format!("{}: {name}", path.display()));
                }
            }
        }
    }
    assert!(traits > 10, "{traits} traits");
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
fn methods_that_the_page_names_are_there() {
    let (defined, claimed) = (defined(), claimed());
    for known in ["select", "sum", "to_uppercase", "eq", "rank", "frame", "read_csv"] {
        assert!(defined.contains(known), "{known} is not seen");
    }
    assert!(!defined.contains("map_elements"));
    assert!(claimed.len() > 400, "{} names", claimed.len());
    for name in ["rename_with", "take", "column", "to_vec", "to_titlecase"] {
        assert!(claimed.iter().any(|claim| claim == name), "{name} is not read from the page");
    }
    let missing: BTreeSet<_> = claimed.into_iter().filter(|name| !defined.contains(name)).collect();
    assert!(missing.is_empty(), "docs/methods.md names what is not there: {missing:?}");
}
