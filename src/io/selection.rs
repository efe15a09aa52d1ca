//! Which files a table has.
//!
//! | named | files |
//! |---|---|
//! | a file | itself |
//! | a directory | its files of the format, and those of the directories below it |
//! | a pattern | the files that match |
//!
//! A path means what the system means by it: nothing is taken out of its text. Entries of
//! directories whose names begin with `.` or `_` are left out.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::options::{FileKind, is_hidden};
use crate::error::{Error, ErrorKind, Result};

/// The paths of a table: one, or several. Each names a file, a directory or a pattern.
///
/// ```
/// use warpframe::prelude::*;
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let jets = session.scan_csv(["data/jets.csv", "data/jets.csv"])?;
/// assert_eq!(jets.collect()?.num_rows(), 200_000);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name files",
    label = "a path, or a list of paths, is wanted here",
    note = "write `\"file.parquet\"`, a `Path`, or an array or vector of them, such as \
            `[\"a.csv\", \"b.csv\"]`"
)]
pub trait IntoPaths {
    /// The paths, in the order of their rows.
    fn into_paths(self) -> Vec<PathBuf>;
}

macro_rules! one_path {
    ($($path:ty),*) => {
        $(impl IntoPaths for $path {
            fn into_paths(self) -> Vec<PathBuf> {
                vec![self.into()]
            }
        })*
    };
}

one_path!(&str, String, &String, &Path, PathBuf, &PathBuf, &OsStr, OsString);

macro_rules! several_paths {
    ($([$($generics:tt)*] $paths:ty),* $(,)?) => {
        $(impl<$($generics)*> IntoPaths for $paths {
            fn into_paths(self) -> Vec<PathBuf> {
                self.iter().map(|path| path.as_ref().to_path_buf()).collect()
            }
        })*
    };
}

several_paths!(
    [P: AsRef<Path>] Vec<P>,
    [P: AsRef<Path>] &Vec<P>,
    [P: AsRef<Path>] &[P],
    [P: AsRef<Path>, const N: usize] [P; N],
    [P: AsRef<Path>, const N: usize] &[P; N],
);

/// What files a table has: the paths that its user gave.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// At least one.
    named: Vec<PathBuf>,
    /// Of a directory's files.
    kind: FileKind,
}

/// The files of a selection at one time.
#[derive(Debug)]
pub(crate) struct Listing {
    /// In the order of their rows.
    pub(crate) files: Vec<PathBuf>,
    /// Whether no file comes or goes while the directories that were entered have the same entries.
    pub(crate) is_watched: bool,
}

impl Selection {
    #[cfg(test)]
    pub(crate) fn new(named: impl Into<PathBuf>, kind: FileKind) -> Selection {
        Selection { named: vec![named.into()], kind }
    }

    /// The files of several paths.
    ///
    /// # Errors
    /// [`ErrorKind::Plan`] of no path.
    pub(crate) fn of(named: Vec<PathBuf>, kind: FileKind) -> Result<Selection> {
        match named.is_empty() {
            false => Ok(Selection { named, kind }),
            true => {
                Err(ErrorKind::Plan { message: "a table of no files".into(), location: None }
                    .into())
            }
        }
    }

    /// The files: those of the first path, then those of the next; of a directory and of a pattern
    /// in the order of their paths' bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where there is no such file, and where nothing matches.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>> {
        Ok(self.list(&mut |_| Ok(()))?.files)
    }

    /// The files. Each directory in which some may come or go is shown before its entries are read.
    ///
    /// # Errors
    /// As [`Selection::paths`]; those of `enter`.
    pub(crate) fn list(&self, enter: &mut dyn FnMut(&Path) -> Result<()>) -> Result<Listing> {
        let mut listing = Listing { files: vec![], is_watched: true };
        for named in &self.named {
            let absent = |what: &str| {
                Error::io(named, std::io::Error::new(std::io::ErrorKind::NotFound, what))
            };
            let mut files = vec![];
            if named.is_dir() {
                self.walk(named, &mut vec![], enter, &mut files)?;
            } else if named.exists() {
                files.push(named.clone());
            } else {
                let pattern = pattern(named).ok_or_else(|| absent("there is no such file"))?;
                listing.is_watched &= watch(named, enter)?;
                files = matches(named, pattern)?;
            }
            if files.is_empty() {
                return Err(absent(match named.is_dir() {
                    true => "no file in the directory has an extension of its kind",
                    false => "no file has such a name",
                }));
            }
            sort(&mut files);
            listing.files.append(&mut files);
        }
        Ok(listing)
    }

    /// The files of a directory and of those below it, `open` being those that it lies in: a link
    /// to one of them would not end.
    fn walk(
        &self,
        directory: &Path,
        open: &mut Vec<PathBuf>,
        enter: &mut dyn FnMut(&Path) -> Result<()>,
        files: &mut Vec<PathBuf>,
    ) -> Result<()> {
        let failed = |error| Error::io(directory, error);
        let real = directory.canonicalize().map_err(failed)?;
        if open.contains(&real) {
            return Ok(());
        }
        enter(directory)?;
        open.push(real);
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.file_name().is_none_or(is_hidden) {
                continue;
            }
            if path.is_dir() {
                self.walk(&path, open, enter, files)?;
            } else if FileKind::in_folder(&path) == Some(self.kind) {
                files.push(path);
            }
        }
        open.pop();
        Ok(())
    }

    /// The first path, which a user knows the table's files by.
    pub(crate) fn named(&self) -> &Path {
        self.named.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Whether a directory lies in one that is named.
    pub(super) fn is_above(&self, directory: &Path) -> bool {
        self.named.iter().any(|named| directory != named && directory.starts_with(named))
    }

    /// The part of a file's path that may tell its partition: what is below the named directory, or
    /// all of it where a pattern matches. `None` of a file that is named itself.
    pub(crate) fn below<'a>(&self, file: &'a Path) -> Option<&'a Path> {
        for named in &self.named {
            match file.strip_prefix(named) {
                Ok(below) if below.as_os_str().is_empty() => return None,
                Ok(below) => return Some(below),
                Err(_) => {}
            }
        }
        Some(file)
    }
}

/// # Errors
/// [`ErrorKind::File`] of what names something on other machines, as in `s3://bucket/x.parquet`,
/// where there is no such file.
pub(crate) fn refuse_address(path: &Path) -> Result<()> {
    let Some(scheme) = scheme(path).filter(|_| !path.exists()) else { return Ok(()) };
    let message = match scheme {
        "file" => "is an address: files are named by their paths".to_string(),
        _ => format!("is an address: nothing is read or written over {scheme} yet, only files"),
    };
    Err(ErrorKind::File { path: path.into(), message }.into())
}

/// What stands before `://`.
fn scheme(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    let is_one = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_one.then_some(scheme)
}

/// The files that a path names or a pattern matches, of any kind, in the order of their paths'
/// bytes; none where there are none.
///
/// # Errors
/// What is no pattern; directories that cannot be read.
pub(super) fn matching(named: &Path) -> Result<Vec<PathBuf>> {
    let mut files = match pattern(named) {
        _ if named.is_file() => vec![named.to_path_buf()],
        Some(pattern) => matches(named, pattern)?,
        None => vec![],
    };
    sort(&mut files);
    Ok(files)
}

/// The files of several paths and patterns, of any kind.
///
/// # Errors
/// [`ErrorKind::Io`] where there is no such file, and where nothing matches.
pub(super) fn any_files(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = vec![];
    for named in named {
        let mut files = matching(named)?;
        if files.is_empty() {
            let what = match (named.is_dir(), pattern(named)) {
                (true, _) => "is a directory: a pattern names its files",
                (false, Some(_)) => "no file has such a name",
                (false, None) => "there is no such file",
            };
            return Err(Error::io(named, std::io::Error::new(std::io::ErrorKind::NotFound, what)));
        }
        all.append(&mut files);
    }
    Ok(all)
}

fn sort(files: &mut [PathBuf]) {
    files.sort_by(|one, other| {
        one.as_os_str().as_encoded_bytes().cmp(other.as_os_str().as_encoded_bytes())
    });
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn pattern(named: &Path) -> Option<&str> {
    named.to_str().filter(|text| has_wildcard(text))
}

/// Shows the directory of a pattern's files, if there is only one.
fn watch(named: &Path, enter: &mut dyn FnMut(&Path) -> Result<()>) -> Result<bool> {
    let Some(folder) = named.parent() else { return Ok(false) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let is_one = folder.is_dir();
    if is_one {
        enter(folder)?;
    }
    Ok(is_one)
}

/// The files that match a pattern. A hidden entry is matched only by a part that begins as it does.
fn matches(named: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let options =
        glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
    let matches = glob::glob_with(pattern, options).map_err(|error| {
        Error::from(ErrorKind::File {
            path: named.into(),
            message: format!("not a pattern: {error}"),
        })
    })?;
    let names = |path: &Path| -> Vec<OsString> {
        path.components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_os_string()),
                _ => None,
            })
            .collect()
    };
    let said = names(named);
    let literal = said
        .iter()
        .take_while(|part| part.to_str().is_some_and(|text| !has_wildcard(text)))
        .count();
    let may_be_hidden = said.iter().skip(literal).any(|part| is_hidden(part));
    let mut files = vec![];
    for entry in matches {
        let file = entry.map_err(|error| Error::io(error.path().to_path_buf(), error.into()))?;
        let is_left_out =
            !may_be_hidden && names(&file).iter().skip(literal).any(|name| is_hidden(name));
        if file.is_file() && !is_left_out {
            files.push(file);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory for tests");
        for file in files {
            let path = directory.path().join(file);
            std::fs::create_dir_all(path.parent().expect("it has one"))
                .expect("directories can be made");
            std::fs::write(path, "a\n1\n").expect("the file can be written");
        }
        directory
    }

    fn listed(directory: &tempfile::TempDir, named: &[&str]) -> Vec<String> {
        let named = named.iter().map(|named| directory.path().join(named)).collect();
        let files = Selection::of(named, FileKind::Csv).expect("paths").paths().expect("files");
        let below = |file: &PathBuf| {
            file.strip_prefix(directory.path()).expect("it is there").display().to_string()
        };
        files.iter().map(below).collect()
    }

    #[test]
    fn directories_are_walked_and_hidden_entries_left_out() {
        let files = [
            "b.csv",
            "a/2.csv",
            "a/1.CSV",
            "a.csv",
            "a/x/1.csv",
            "_log/1.csv",
            "a/.t.csv",
            "a/_t.csv",
            "n.txt",
        ];
        let directory = made(&files);
        let all = ["a.csv", "a/1.CSV", "a/2.csv", "a/x/1.csv", "b.csv"];
        assert_eq!(listed(&directory, &["."]).len(), all.len());
        assert_eq!(listed(&directory, &[""]), all);
        assert_eq!(listed(&directory, &["*.csv"]), ["a.csv", "b.csv"]);
        assert_eq!(listed(&directory, &["**/*.csv"]), ["a.csv", "a/2.csv", "a/x/1.csv", "b.csv"]);
        assert_eq!(listed(&directory, &["**/_*.csv"]), ["a/_t.csv"]);
        assert_eq!(listed(&directory, &["b.csv", "a", "b.csv"])[..2], ["b.csv", "a/1.CSV"]);
        assert_eq!(listed(&directory, &["b.csv", "a", "b.csv"]).len(), 5);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_as_the_system_does_and_loops_end() {
        let directory = made(&["real/deep/1.csv", "real/x.csv", "x.csv"]);
        let at = |name: &str| directory.path().join(name);
        std::os::unix::fs::symlink(at("real/deep"), at("link")).expect("links can be made");
        std::os::unix::fs::symlink(at("real"), at("real/deep/up")).expect("links can be made");
        assert_eq!(listed(&directory, &["real"]), ["real/deep/1.csv", "real/x.csv"]);
        // The directory above is that of what the link names.
        let selection = Selection::new(at("link/../x.csv"), FileKind::Csv);
        assert_eq!(selection.paths().expect("it is there"), [at("link/../x.csv")]);
        std::fs::remove_file(at("real/x.csv")).expect("it was there");
        assert!(selection.paths().is_err());
    }

    #[test]
    fn addresses_are_no_paths() {
        for path in ["s3://b/x.parquet", "https://h/x.csv?a=*", "gs://b", "file:///x.csv"] {
            assert!(refuse_address(Path::new(path)).is_err(), "{path}");
        }
        for path in ["x.csv", "a/b://c", "://x", "C:\\x", "/http://x"] {
            assert!(refuse_address(Path::new(path)).is_ok(), "{path}");
        }
    }

    #[test]
    fn no_path_and_no_match_are_errors() {
        let directory = made(&["a/notes.txt"]);
        assert!(Selection::of(vec![], FileKind::Csv).is_err());
        for named in ["a", "a/*.csv", "b"] {
            assert!(
                Selection::new(directory.path().join(named), FileKind::Csv).paths().is_err(),
                "{named}"
            );
        }
    }
}
