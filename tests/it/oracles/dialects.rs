//! One text for two engines: where their spellings part, ours stands first.
//!
//! ```text
//!   SELECT «a ^ b¦(a | b) - (a & b)» FROM t      ours: SELECT a ^ b FROM t
//! ```

/// A part of a query as we spell it, and as SQLite does.
pub fn either(ours: &str, sqlite: &str) -> String {
    format!("«{ours}¦{sqlite}»")
}

/// The text as we spell it, and as SQLite does. Parts may lie within parts.
pub fn spelled(text: &str) -> (String, String) {
    let (mut ours, mut sqlite) = (String::new(), String::new());
    // Of each part around a character, whether it is SQLite's half.
    let mut halves = vec![];
    for character in text.chars() {
        match character {
            '«' => halves.push(false),
            '¦' => *halves.last_mut().expect("within a part") = true,
            '»' => drop(halves.pop()),
            _ => {
                if !halves.contains(&true) {
                    ours.push(character);
                }
                if !halves.contains(&false) {
                    sqlite.push(character);
                }
            }
        }
    }
    (ours, sqlite)
}

#[test]
fn texts_have_two_spellings() {
    let text = format!("SELECT {} FROM t", either(&either("a", "b"), &either("c", "d")));
    assert_eq!(spelled(&text), ("SELECT a FROM t".into(), "SELECT d FROM t".into()));
}
