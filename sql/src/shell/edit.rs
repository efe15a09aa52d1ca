//! `.edit`: a statement in the person's own editor.

use std::io::Write;
use std::process::Command;

use crate::interrupt::Lent;
use crate::report::Failure;

/// Behind an unfinished statement, in a line of its own, this has the editor take what was typed.
const COMMAND: &str = ".edit";

/// The unfinished statement of an entry that ends in `.edit`.
pub fn begun(entry: &str) -> Option<&str> {
    let (before, last) = entry.trim_end().rsplit_once('\n')?;
    (last.trim() == COMMAND && !before.trim_start().starts_with('.')).then_some(before)
}

/// What the editor saved of a text; `None` where it saved nothing new.
///
/// # Errors
/// The editor fails, or there is none; its file cannot be written or read.
pub fn edit(text: &str) -> Result<Option<String>, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".into());
    let failed = |message: String| Failure::sql(format!(".edit: {message}"), None);
    let file = tempfile::Builder::new().prefix("warpframe-").suffix(".sql").tempfile();
    let mut file = file.map_err(|error| failed(error.to_string()))?;
    let path = file.path().to_path_buf();
    writeln!(file, "{text}").map_err(|error| Failure::file(&path, error))?;
    let status = {
        let _lent = Lent::begin();
        // Editors have options, which the system's shell tells from their names.
        Command::new("sh")
            .args(["-c", &format!("{editor} \"$1\""), "warpframe"])
            .arg(&path)
            .status()
    };
    let status = status.map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(format!(
            "{editor:?} failed ({status}); nothing runs. VISUAL or EDITOR name another"
        )));
    }
    // By its path: editors put a new file there.
    let saved = std::fs::read_to_string(&path).map_err(|error| Failure::file(&path, error))?;
    let saved = saved.trim_end();
    Ok((saved.trim() != text.trim() && !saved.trim().is_empty()).then(|| saved.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_statement_ends_in_the_command() {
        assert_eq!(begun("SELECT 1\n  + 2\n .edit"), Some("SELECT 1\n  + 2"));
        assert_eq!(begun(".edit"), None);
        assert_eq!(begun("SELECT 1;"), None);
        assert_eq!(begun("SELECT 1\n.editor"), None);
    }
}
