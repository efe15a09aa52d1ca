//! Images on disk, each with a checksum, safe under concurrent processes.
//!
//! What goes wrong with a folder costs a note, never a query: what cannot be written is kept in a
//! folder of this process alone, and what is damaged, somebody else's or refused counts as absent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::tidy::tidy;
use crate::compile::hex::hex;
use crate::drivers::driver::StoredImage;
use crate::end::at_end;
use crate::error::{Error, ErrorKind, Result};

/// Bytes of the folder that is written to, where `WARPFRAME_CACHE_MIB` says nothing else: some ten
/// thousand kernels.
const MOST_BYTES: u64 = 512 << 20;
/// How exactly it is known when an image was used last. Each use would else be a write.
const USED_AGAIN: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a process looks whether a folder is too large.
const TIDIED_AGAIN: Duration = Duration::from_secs(60);
/// Bytes that a folder must take to count as one that can be written: more than an image has.
const PROBE: usize = 1 << 20;
/// Where a process keeps what it cannot keep elsewhere, if there is no room among the temporary
/// files: memory.
const IN_MEMORY: &str = "/dev/shm";

/// Which folders images are kept in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// The first is written to; all are read, in order.
    pub(super) paths: Vec<PathBuf>,
    /// Most bytes in the first; with 0 nothing is written to it.
    pub(super) most_bytes: u64,
    /// What is wrong with the environment.
    pub(super) note: Option<String>,
}

impl Folders {
    /// The folders that `WARPFRAME_CACHE_DIR` names, else `XDG_CACHE_HOME/warpframe`, else
    /// `HOME/.cache/warpframe`, else one of this user among the temporary files.
    ///
    /// Kernels that were shipped with the program are read, too: those of the folder
    /// `warpframe-kernels` beside it.
    pub fn of_environment() -> Folders {
        let mut folders = Self::by(crate::environment::os);
        let program = std::env::current_exe().ok();
        folders.paths.extend(program.and_then(|program| shipped_with(&program)));
        folders
    }

    pub(super) fn by(variable: impl Fn(&str) -> Option<OsString>) -> Folders {
        let value = |name| variable(name).filter(|value| !value.is_empty());
        let path = |name| value(name).map(PathBuf::from);
        let named: Vec<PathBuf> = value("WARPFRAME_CACHE_DIR")
            .map(|list| {
                std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect()
            })
            .unwrap_or_default();
        let paths = if !named.is_empty() {
            named
        } else if let Some(cache) = path("XDG_CACHE_HOME") {
            vec![cache.join("warpframe")]
        } else if let Some(home) = path("HOME") {
            vec![home.join(".cache").join("warpframe")]
        } else {
            vec![std::env::temp_dir().join(format!("warpframe-{}", user()))]
        };
        let mib =
            value("WARPFRAME_CACHE_MIB").map(|text| text.to_string_lossy().trim().to_string());
        let most = mib
            .as_ref()
            .map(|text| text.parse::<u64>().ok().and_then(|mib| mib.checked_mul(1 << 20)));
        let note = (most == Some(None)).then(|| {
            let text = mib.unwrap_or_default();
            format!(
                "WARPFRAME_CACHE_MIB: {text:?} is not a number of MiB; {} is used",
                MOST_BYTES >> 20
            )
        });
        Folders { paths, most_bytes: most.flatten().unwrap_or(MOST_BYTES), note }
    }

    /// One folder.
    #[cfg(test)]
    pub fn one(path: &Path) -> Folders {
        Folders { paths: vec![path.to_path_buf()], most_bytes: MOST_BYTES, note: None }
    }

    /// Whether names that end so lie in any of them: a look that ends with the first.
    pub(super) fn hold(&self, end: &str) -> bool {
        let trusted = self.paths.iter().filter(|path| distrust(path).is_none());
        let mut entries = trusted.filter_map(|path| fs::read_dir(path).ok()).flatten().flatten();
        entries.any(|entry| entry.file_name().to_string_lossy().ends_with(end))
    }
}

/// The folder of kernels beside a program, if there is one.
pub(super) fn shipped_with(program: &Path) -> Option<PathBuf> {
    let folder = program.canonicalize().ok()?.parent()?.join("warpframe-kernels");
    folder.is_dir().then_some(folder)
}

fn user() -> u32 {
    // SAFETY: has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

/// Images in folders.
#[derive(Debug)]
pub struct Store {
    /// Read in order.
    folders: Vec<PathBuf>,
    /// The folder that is written to, and the most bytes in it.
    written: Option<(PathBuf, u64)>,
    /// Whether it could not be written.
    given_up: AtomicBool,
    /// Of this process alone, and gone with it: among the temporary files, and [`IN_MEMORY`]. Each
    /// is made for the first image that cannot be kept elsewhere.
    private: [OnceLock<PathBuf>; 2],
    notes: Mutex<Notes>,
}

/// Sentences about folders, each told once.
#[derive(Debug, Default)]
struct Notes {
    all: Vec<String>,
    taken: usize,
}

impl Store {
    pub fn open(folders: &Folders) -> Store {
        let mut store = Store {
            folders: folders.paths.clone(),
            written: None,
            given_up: AtomicBool::new(false),
            private: Default::default(),
            notes: Mutex::default(),
        };
        folders.note.iter().for_each(|note| store.tell(note.clone()));
        if let Some(first) = folders.paths.first().filter(|_| folders.most_bytes > 0) {
            match create(first) {
                // Somebody else's is told of as such.
                Ok(()) if !store.trusts(first) => {}
                created => match created.and_then(|()| probe(first, b"probe")) {
                    Ok(()) => store.written = Some((first.clone(), folders.most_bytes)),
                    Err(error) => store.tell_unwritten(first, &error),
                },
            }
        }
        store
    }

    /// Whether images from a folder may be loaded, as code. It is asked each time: a folder that was
    /// removed may be made again by somebody else.
    fn trusts(&self, folder: &Path) -> bool {
        let why = distrust(folder);
        if let Some(why) = &why {
            self.tell(format!("kernels kept in {} are not used: {why}", folder.display()));
        }
        why.is_none()
    }

    /// Where an image of this file name is written to, if its folder can be written.
    pub fn place(&self, file: &str) -> PathBuf {
        self.folders.first().map_or_else(|| PathBuf::from(file), |folder| folder.join(file))
    }

    /// The image of this file name, if it is whole, and of this compiler where one is named.
    pub fn find(&self, file: &str, compiler: Option<&str>) -> Option<StoredImage> {
        let folders = self.folders.iter().filter(|folder| self.trusts(folder));
        let private = self.private.iter().filter_map(OnceLock::get);
        private.chain(folders).find_map(|folder| self.look(folder, file, compiler))
    }

    fn look(&self, folder: &Path, file: &str, compiler: Option<&str>) -> Option<StoredImage> {
        let path = folder.join(file);
        let noted = fs::read(checksum_of(&path)).ok()?;
        let noted = String::from_utf8_lossy(&noted);
        let mut lines = noted.lines();
        let (expected, by) = (lines.next().unwrap_or_default(), lines.next());
        if compiler.is_some() && compiler != by {
            let by = by.unwrap_or("an unknown compiler");
            self.tell(format!(
                "kernels kept in {} were made by {by}, and are compiled again",
                folder.display()
            ));
            return None;
        }
        // An image may go at any time: another process found that there are too many.
        let mut image = File::open(&path).ok()?;
        let mut bytes = vec![];
        image.read_to_end(&mut bytes).ok()?;
        if hex(&Sha256::digest(&bytes)) != expected.trim() {
            self.tell(format!(
                "kernels kept in {} are damaged, and are compiled again",
                folder.display()
            ));
            return None;
        }
        let used = image.metadata().and_then(|data| data.modified());
        if used.is_ok_and(|used| used.elapsed().is_ok_and(|ago| ago > USED_AGAIN)) {
            // Where it cannot be noted that it is used it goes sooner.
            let _ = image.set_modified(SystemTime::now());
        }
        Some(StoredImage { path, bytes })
    }

    /// Notes that an image that was found whole does not load.
    pub fn refused(&self, image: &StoredImage) {
        let folder = image.path.parent().unwrap_or(&image.path).display();
        self.tell(format!(
            "kernels kept in {folder} do not load on this device, and are compiled again"
        ));
    }

    /// Makes an image and enters it, in place of what was there. `make` says by which compiler; it
    /// is called again where its first image could not be kept.
    ///
    /// # Errors
    /// Those of `make`, or there is nowhere to write at all.
    pub fn insert(
        &self,
        file: &str,
        make: impl Fn(&Path) -> Result<String>,
    ) -> Result<StoredImage> {
        let written = self.written.as_ref().filter(|_| !self.given_up.load(Relaxed));
        if let Some((folder, most_bytes)) = written {
            match self.enter_written(folder, file, &make) {
                Ok(Some(image)) => {
                    tidy_behind(folder, *most_bytes);
                    return Ok(image);
                }
                Ok(None) => {}
                Err(error) if !is_of_folder(&error, folder) => return Err(error),
                Err(error) => {
                    if !self.given_up.swap(true, Relaxed) {
                        self.tell_unwritten(folder, &error);
                    }
                }
            }
        }
        self.enter_private(file, &make)
    }

    /// `None` where the folder is somebody else's by now.
    fn enter_written(
        &self,
        folder: &Path,
        file: &str,
        make: impl Fn(&Path) -> Result<String>,
    ) -> Result<Option<StoredImage>> {
        // It may have been removed, as one does with caches.
        create(folder)?;
        if self.trusts(folder) { enter(folder, file, make).map(Some) } else { Ok(None) }
    }

    fn enter_private(
        &self,
        file: &str,
        make: impl Fn(&Path) -> Result<String>,
    ) -> Result<StoredImage> {
        let mut failed = None;
        for (private, place) in self.private.iter().zip([std::env::temp_dir(), IN_MEMORY.into()]) {
            match private_folder(private, &place).and_then(|folder| enter(folder, file, &make)) {
                Ok(image) => return Ok(image),
                Err(error) if private.get().is_some_and(|folder| !is_of_folder(&error, folder)) => {
                    return Err(error);
                }
                // The first error is the one that somebody can do something about.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| Error::internal("there are two places")))
    }

    /// The folder in which later processes find what is entered here.
    ///
    /// # Errors
    /// There is none: it cannot be written, or nothing may be kept.
    pub fn written(&self) -> Result<&Path> {
        match self.written.as_ref().filter(|_| !self.given_up.load(Relaxed)) {
            Some((folder, _)) => Ok(folder),
            None => {
                let notes = self.notes.lock().all.join("; ");
                let nothing = || "WARPFRAME_CACHE_MIB=0 keeps nothing".into();
                let why = if notes.is_empty() { nothing() } else { notes };
                let folder = self.folders.first().map_or(Path::new(""), PathBuf::as_path);
                Err(Error::io(folder, std::io::Error::other(why)))
            }
        }
    }

    /// What somebody should know of the folders, since this was asked last.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        let mut notes = self.notes.lock();
        let new = notes.all[notes.taken..].to_vec();
        notes.taken = notes.all.len();
        new
    }

    fn tell(&self, note: String) {
        let mut notes = self.notes.lock();
        if !notes.all.contains(&note) {
            notes.all.push(note);
        }
    }

    fn tell_unwritten(&self, folder: &Path, error: &Error) {
        let text = match error.kind() {
            ErrorKind::Io { source, .. } => source.to_string(),
            _ => "there is no room".into(),
        };
        self.tell(format!(
            "compiled kernels are not kept for later processes: {}: {text}",
            folder.display()
        ));
    }

    #[cfg(test)]
    pub(super) fn private_folder(&self) -> Option<&Path> {
        self.private.iter().rev().find_map(OnceLock::get).map(PathBuf::as_path)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.private.iter().filter_map(OnceLock::get).for_each(|private| remove_private(private));
    }
}

/// The folder of this process in a place, made where it is not there.
fn private_folder<'a>(private: &'a OnceLock<PathBuf>, place: &Path) -> Result<&'a PathBuf> {
    if private.get().is_none()
        && let Err(spare) = private.set(make_private(place)?)
    {
        remove_private(&spare);
    }
    private.get().ok_or_else(|| Error::internal("a folder was just made"))
}

/// Makes an image in a folder: first under another name, so that nobody sees half of one.
fn enter(folder: &Path, file: &str, make: impl Fn(&Path) -> Result<String>) -> Result<StoredImage> {
    let path = folder.join(file);
    let draft = unique(&path);
    let finish = || -> Result<Vec<u8>> {
        let compiler = make(&draft)?;
        let bytes = fs::read(&draft).map_err(|e| Error::io(&draft, e))?;
        let noted = format!("{}\n{compiler}\n", hex(&Sha256::digest(&bytes)));
        fs::rename(&draft, &path).map_err(|e| Error::io(&path, e))?;
        // Without its checksum an image counts as absent, and only takes room.
        write_atomically(&checksum_of(&path), noted.as_bytes())
            .inspect_err(|_| drop(fs::remove_file(&path)))?;
        Ok(bytes)
    };
    let result = finish();
    if result.is_err() {
        let _ = fs::remove_file(&draft);
    }
    result.map(|bytes| StoredImage { path, bytes })
}

/// Whether an image could not be made because its folder does not take it. A compiler that is a
/// program of its own only says that it failed.
fn is_of_folder(error: &Error, folder: &Path) -> bool {
    match error.kind() {
        ErrorKind::Io { path, .. } => path.starts_with(folder),
        ErrorKind::Compile { .. } => probe(folder, &vec![1; PROBE]).is_err(),
        _ => false,
    }
}

pub(super) fn checksum_of(image: &Path) -> PathBuf {
    let mut name = image.as_os_str().to_owned();
    name.push(".sha256");
    PathBuf::from(name)
}

/// Removes what is too much in a folder, on a thread of its own: nobody waits for it, the process's
/// end neither.
fn tidy_behind(folder: &Path, most_bytes: u64) {
    static TIDIED: Mutex<BTreeMap<PathBuf, Instant>> = Mutex::new(BTreeMap::new());
    let mut tidied = TIDIED.lock();
    if tidied.get(folder).is_some_and(|last| last.elapsed() < TIDIED_AGAIN) {
        return;
    }
    tidied.insert(folder.to_path_buf(), Instant::now());
    drop(tidied);
    let folder = folder.to_path_buf();
    // Without a thread a later image's turn comes.
    let _ = std::thread::Builder::new()
        .name("warpframe-cache".into())
        .spawn(move || tidy(&folder, most_bytes));
}

fn create(folder: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|e| Error::io(folder, e))
}

/// The folders of this process that are there.
static PRIVATE: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

/// A new folder of this process: nobody else can have put an image there. Where its store is never
/// dropped, because a device is in a static variable, it goes at the process's end.
fn make_private(place: &Path) -> Result<PathBuf> {
    static REGISTERED: Once = Once::new();
    let private = unique(&place.join("warpframe"));
    fs::DirBuilder::new().mode(0o700).create(&private).map_err(|e| Error::io(&private, e))?;
    PRIVATE.lock().push(private.clone());
    REGISTERED.call_once(|| at_end(remove_all_private));
    match probe(&private, &vec![1; PROBE]) {
        Ok(()) => Ok(private),
        Err(error) => {
            remove_private(&private);
            Err(error)
        }
    }
}

fn remove_private(folder: &Path) {
    PRIVATE.lock().retain(|other| other != folder);
    let _ = fs::remove_dir_all(folder);
}

extern "C" fn remove_all_private() {
    let folders = std::mem::take(&mut *PRIVATE.lock());
    folders.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
}

/// Why images from a folder are not to be loaded, as code: somebody else could have put them there.
/// Folders above it may be open to others as those of temporary files are, where nobody moves what
/// is another's; and to the user's own group, of which there may be nobody else.
fn distrust(folder: &Path) -> Option<String> {
    const STICKY: u32 = 0o1000;
    const GROUP: u32 = 0o020;
    const OTHERS: u32 = 0o002;
    let at = folder.canonicalize().ok()?;
    let Ok(own) = fs::metadata(&at) else { return Some("it is not there".into()) };
    // Who can change the program needs no folder.
    let of_program = || std::env::current_exe().and_then(fs::metadata).map(|data| data.uid());
    let owner = own.uid();
    if owner != user() && owner != 0 && !of_program().is_ok_and(|program| program == owner) {
        return Some("it is somebody else's".into());
    }
    if own.mode() & (GROUP | OTHERS) != 0 {
        return Some("others may write to it".into());
    }
    // SAFETY: has no preconditions and cannot fail.
    let group = unsafe { libc::getegid() };
    let is_open = |folder: &&Path| {
        fs::metadata(folder).is_ok_and(|data| {
            let by_group = data.mode() & GROUP != 0 && data.gid() != group;
            data.mode() & STICKY == 0 && (by_group || data.mode() & OTHERS != 0)
        })
    };
    let open = at.ancestors().skip(1).find(is_open)?;
    Some(format!("others may write to {}, above it", open.display()))
}

/// Whether a folder takes these bytes.
fn probe(folder: &Path, bytes: &[u8]) -> Result<()> {
    let probe = unique(&folder.join("probe"));
    let written = fs::write(&probe, bytes).map_err(|e| Error::io(folder, e));
    let _ = fs::remove_file(&probe);
    written
}

/// Writes a whole file or leaves what was there.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let draft = unique(path);
    let result = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    result.map_err(|e| {
        let _ = fs::remove_file(&draft);
        Error::io(path, e)
    })
}

/// `path` with a suffix that no other process and no other call of this one uses.
pub(super) fn unique(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    let clock = std::time::UNIX_EPOCH.elapsed().map_or(0, |d| d.subsec_nanos());
    // The clock tells apart processes of the same number in containers that share a directory.
    name.push(format!(".{}-{}-{clock}.tmp", std::process::id(), NEXT.fetch_add(1, Relaxed)));
    PathBuf::from(name)
}
