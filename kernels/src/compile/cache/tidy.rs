//! A folder of images is kept small: what nobody used for long goes.
//!
//! Several processes do so at once, and others read meanwhile: a file that is gone already is no
//! error. The folder may be somebody's home by mistake, so that only files go whose names are as
//! those that [`super::store`] gives.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What stays however large the folder is: who made or found an image is about to load it.
const JUST_USED: Duration = Duration::from_secs(60);
/// Age of a draft whose process ended before it was finished: no compilation takes as long.
const STALE: Duration = Duration::from_secs(60 * 60);

/// An image and its checksum, or one of them.
#[derive(Default)]
struct ImageFiles {
    bytes: u64,
    used: Option<SystemTime>,
}

/// Removes images, those unused longest first, until no more than seven eighths of `most_bytes` are
/// taken, if more than `most_bytes` are; and drafts that nobody finishes.
pub(super) fn tidy(folder: &Path, most_bytes: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut images: BTreeMap<String, ImageFiles> = BTreeMap::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Of a link, what is told is the link's own.
        let Some(data) = entry.metadata().ok().filter(fs::Metadata::is_file) else { continue };
        let modified = data.modified().ok();
        if is_draft(&name) {
            if older(modified, STALE) {
                let _ = fs::remove_file(entry.path());
            }
        } else if let Some(image) = image_of(&name) {
            let files = images.entry(image.to_string()).or_default();
            // As it is on disk, in blocks of 512 bytes: checksums are short, and many.
            files.bytes += data.blocks() * 512;
            files.used = files.used.max(modified);
        }
    }
    let mut left: u64 = images.values().map(|files| files.bytes).sum();
    if left <= most_bytes {
        return;
    }
    let mut images: Vec<_> =
        images.into_iter().filter(|(_, files)| older(files.used, JUST_USED)).collect();
    images.sort_by_key(|(_, files)| files.used);
    for (image, files) in images {
        if left <= most_bytes / 8 * 7 {
            return;
        }
        // The checksum first: an image without it counts as absent, a checksum without image as
        // damaged.
        let _ = fs::remove_file(folder.join(format!("{image}.sha256")));
        let _ = fs::remove_file(folder.join(&image));
        left -= files.bytes;
    }
}

/// Whether a time lies so far back. Where it is unknown or to come, it does not.
fn older(time: Option<SystemTime>, than: Duration) -> bool {
    time.and_then(|time| time.elapsed().ok()).is_some_and(|ago| ago > than)
}

/// The image's name, of the name of an image or of its checksum.
fn image_of(name: &str) -> Option<&str> {
    let image = name.strip_suffix(".sha256").unwrap_or(name);
    let (key, kind) = image.split_at_checked(64)?;
    let is_key = key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let kind = kind.strip_prefix(".quick").unwrap_or(kind);
    let architecture = |text: &str| {
        let number = text.strip_prefix(".sm_").unwrap_or_default();
        text.is_empty()
            || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    (is_key && (kind == ".so" || kind.strip_suffix(".cubin").is_some_and(architecture)))
        .then_some(image)
}

/// Whether this is a name of [`super::store::unique`], of something in a folder of images.
fn is_draft(name: &str) -> bool {
    let Some((of, numbers)) = name.strip_suffix(".tmp").and_then(|name| name.rsplit_once('.'))
    else {
        return false;
    };
    let are_numbers = numbers
        .split('-')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let is_of_sim = of.starts_with("sim-runtime-") || of.starts_with("sim-head-");
    are_numbers
        && numbers.split('-').count() == 3
        && (of == "probe" || is_of_sim || image_of(of).is_some())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::PathBuf;

    use super::super::store::unique;
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn name(number: usize, kind: &str) -> String {
        format!("{number:064x}.{kind}")
    }

    fn write(folder: &Path, name: &str, bytes: usize, age: Duration) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, vec![1; bytes]).unwrap();
        File::open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        path
    }

    fn left(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn names_of_ours_are_told_from_others() {
        let key = "0123456789abcdef".repeat(4);
        for kind in ["cubin", "so", "sm_90.cubin", "quick.sm_120a.cubin", "quick.cubin"] {
            let image = format!("{key}.{kind}");
            assert_eq!(image_of(&image), Some(&*image));
            assert_eq!(image_of(&format!("{image}.sha256")), Some(&*image));
            assert!(is_draft(unique(Path::new(&image)).to_str().unwrap()));
            assert!(is_draft(unique(Path::new(&format!("{image}.sha256"))).to_str().unwrap()));
            assert!(!is_draft(&image));
        }
        assert!(is_draft(unique(Path::new("probe")).to_str().unwrap()));
        let short = &key[1..];
        for other in [
            format!("{short}.cubin"),
            format!("{short}g.cubin"),
            format!("{key}0.cubin"),
            format!("{}.so", key.to_uppercase()),
            format!("{key}.txt"),
            format!("{key}.sha256"),
            format!("{key}.sm_.cubin"),
            format!("{key}.sm_9/0.cubin"),
            format!("é{short}.so"),
            "libthings.so".into(),
            "sim-runtime-0123.so".into(),
        ] {
            assert_eq!(image_of(&other), None, "{other}");
        }
        for other in
            ["notes.tmp", "notes.1-2-3.tmp", "probe.1-2.tmp", "probe.1--3.tmp", "probe.a-b-c.tmp"]
        {
            assert!(!is_draft(other), "{other}");
        }
    }

    #[test]
    fn images_unused_longest_go_first_and_those_just_used_stay() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..16 {
            // The largest number was used last.
            let age = DAY * (20 - number as u32);
            write(dir.path(), &name(number, "sm_90.cubin"), 60 << 10, age);
            write(dir.path(), &name(number, "sm_90.cubin.sha256"), 80, age);
        }
        write(dir.path(), &name(99, "so"), 60 << 10, Duration::ZERO);
        tidy(dir.path(), 64 << 20);
        assert_eq!(left(dir.path()).len(), 33, "there is room");
        // An image and its checksum take 64 KiB: seven eighths of a MiB are fourteen.
        tidy(dir.path(), 1 << 20);
        let kept = left(dir.path());
        assert!(
            !kept.contains(&name(0, "sm_90.cubin"))
                && !kept.contains(&name(0, "sm_90.cubin.sha256"))
        );
        assert!(
            kept.contains(&name(15, "sm_90.cubin"))
                && kept.contains(&name(15, "sm_90.cubin.sha256"))
        );
        assert!((25..=28).contains(&kept.len()), "{kept:?}");
        tidy(dir.path(), 1);
        assert_eq!(left(dir.path()), [name(99, "so")], "somebody is about to load it");
    }

    #[test]
    fn stale_drafts_go_and_what_is_not_ours_stays() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join(name(1, "so"));
        let [stale, fresh] = [DAY, Duration::ZERO].map(|age| {
            let draft = unique(&image);
            write(dir.path(), draft.file_name().unwrap().to_str().unwrap(), 10, age)
        });
        let others = [
            "thesis.tex",
            "notes.tmp",
            "notes.1-2-3.tmp",
            "key.cubin",
            "libthings.so",
            "abc.sha256",
        ];
        others.iter().for_each(|other| drop(write(dir.path(), other, 4 << 20, 100 * DAY)));
        let folder = dir.path().join(name(2, "so"));
        fs::create_dir(&folder).unwrap();
        tidy(dir.path(), 1 << 20);
        assert!(!stale.exists() && fresh.exists() && folder.is_dir());
        assert!(
            others.iter().all(|other| dir.path().join(other).exists()),
            "{:?}",
            left(dir.path())
        );
        tidy(&dir.path().join("none"), 0);
    }
}
