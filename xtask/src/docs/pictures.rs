//! Screenshots know which capture they show.

use super::page::Problem;
use super::sources::Sources;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FOLDER: &str = "docs/images";
/// For each screenshot a line: its capture's CRC-32, the capture, the picture.
const MANIFEST: &str = "docs/images/screenshots.txt";
/// A page shall load fast: bytes of one screenshot.
const LARGEST: usize = 150 * 1024;

/// Which capture each screenshot shows: picture to (capture, CRC-32 of its file).
type Manifest = BTreeMap<String, (String, String)>;

/// For each screenshot, given as (picture, capture), whether it is missing or shows an earlier capture.
///
/// # Errors
/// There is no such capture.
pub fn stale(root: &Path, pictures: &[(String, &str)]) -> Result<Vec<bool>> {
    let sources = Sources::new(root);
    // Without a list no picture is known.
    let manifest = sources.text(MANIFEST).map_or(Ok(Manifest::new()), |text| read(&text))?;
    let is_stale = |(picture, capture): &(String, &str)| {
        let shows = (capture.to_string(), checksum(&sources, capture)?);
        Ok(manifest.get(picture) != Some(&shows) || !sources.path(&format!("{FOLDER}/{picture}")).exists())
    };
    pictures.iter().map(is_stale).collect()
}

/// Notes which captures the screenshots show, given as (picture, capture).
///
/// # Errors
/// There is no such capture, or the list cannot be written.
pub fn record(root: &Path, pictures: &[(String, &str)]) -> Result<()> {
    let sources = Sources::new(root);
    let mut text = String::new();
    for (picture, capture) in pictures {
        text += &format!("{} {capture} {picture}\n", checksum(&sources, capture)?);
    }
    fs::write(sources.path(MANIFEST), text).with_context(|| format!("cannot write {MANIFEST}"))
}

/// Screenshots that do not show the captures as they are now.
pub fn problems(sources: &Sources) -> Vec<Problem> {
    screenshots(sources).unwrap_or_else(|error| vec![Problem::new(MANIFEST, format!("{error:#}"))])
}

fn screenshots(sources: &Sources) -> Result<Vec<Problem>> {
    let manifest = read(&sources.text(MANIFEST)?)?;
    let mut problems = Vec::new();
    for file in sources.files(FOLDER, ".png")? {
        let name = file.trim_start_matches(FOLDER).trim_start_matches('/');
        let size = sources.bytes(&file)?.len();
        if !manifest.contains_key(name) {
            problems.push(Problem::new(&file, format!("is not in {MANIFEST}: `make screenshots` makes all pictures")));
        }
        if size > LARGEST {
            problems.push(Problem::new(&file, format!("has {size} bytes, and may have {LARGEST}")));
        }
    }
    for (picture, (capture, sum)) in &manifest {
        let path = format!("{FOLDER}/{picture}");
        if !sources.path(&path).exists() {
            problems.push(Problem::new(&path, format!("does not exist, but is in {MANIFEST}")));
        } else if checksum(sources, capture)? != *sum {
            let what = format!("shows an earlier captures/{capture}.pcapng: run `make screenshots` and look at it");
            problems.push(Problem::new(&path, what));
        }
    }
    Ok(problems)
}

fn checksum(sources: &Sources, capture: &str) -> Result<String> {
    let bytes = sources.bytes(&format!("captures/{capture}.pcapng"))?;
    Ok(format!("{:08x}", crc32fast::hash(&bytes)))
}

fn read(text: &str) -> Result<Manifest> {
    let mut manifest = Manifest::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [sum, capture, picture] = words[..] else { anyhow::bail!("`{line}` is not CRC-32, capture, picture") };
        manifest.insert(picture.into(), (capture.into(), sum.into()));
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small repository: one capture, one picture of it.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let root = std::env::temp_dir().join(format!("pictures-{name}-{}", std::process::id()));
            fs::create_dir_all(root.join("captures")).unwrap();
            fs::create_dir_all(root.join(FOLDER)).unwrap();
            fs::write(root.join("captures/01_a.pcapng"), "capture").unwrap();
            fs::write(root.join(FOLDER).join("01.png"), "picture").unwrap();
            record(&root, &[("01.png".into(), "01_a")]).unwrap();
            Folder(root)
        }

        fn write(&self, path: &str, bytes: &[u8]) {
            fs::write(self.0.join(path), bytes).unwrap();
        }

        fn problems(&self) -> Vec<String> {
            let problems = screenshots(&Sources::new(&self.0)).unwrap();
            problems.iter().map(Problem::to_string).collect()
        }

        fn stale(&self) -> Vec<bool> {
            stale(&self.0, &[("01.png".into(), "01_a")]).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_picture_of_an_earlier_capture_is_found() {
        let folder = Folder::new("earlier");
        assert_eq!((folder.problems(), folder.stale()), (vec![], vec![false]));
        folder.write("captures/01_a.pcapng", b"recorded anew");
        assert!(folder.problems()[0].starts_with("docs/images/01.png: shows an earlier captures/01_a.pcapng"));
        assert_eq!(folder.stale(), [true]);
    }

    #[test]
    fn a_picture_too_many_or_too_few_or_too_large_is_found() {
        let folder = Folder::new("list");
        folder.write("docs/images/02.png", &vec![0; LARGEST + 1]);
        let problems = folder.problems();
        assert!(problems[0].contains("02.png: is not in docs/images/screenshots.txt"), "{problems:?}");
        assert!(problems[1].contains("has 153601 bytes, and may have 153600"));
        fs::remove_file(folder.0.join("docs/images/02.png")).unwrap();
        fs::remove_file(folder.0.join("docs/images/01.png")).unwrap();
        assert!(folder.problems()[0].contains("01.png: does not exist"));
        assert_eq!(folder.stale(), [true]);
    }
}
