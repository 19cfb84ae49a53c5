//! Screenshots know which capture they show.

use crate::docs::Problem;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const FOLDER: &str = "docs/images";
/// For each screenshot a line: its capture's CRC-32, the capture, the picture.
const MANIFEST: &str = "docs/images/screenshots.txt";
/// A page shall load fast: bytes of one screenshot.
const LARGEST: usize = 150 * 1024;

/// A screenshot and the capture that it shall show, each without its ending.
type Shown<'a> = (&'a str, &'a str);

fn line(root: &Path, (picture, capture): Shown) -> Result<String> {
    let path = format!("captures/{capture}.pcapng");
    let bytes = fs::read(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
    Ok(format!("{:08x} {capture} {picture}.png", crc32fast::hash(&bytes)))
}

/// Whether a screenshot is missing or shows an earlier capture.
pub fn is_stale(root: &Path, shown: Shown) -> Result<bool> {
    // Without a list no picture is known.
    let manifest = fs::read_to_string(root.join(MANIFEST)).unwrap_or_default();
    let line = line(root, shown)?;
    Ok(!manifest.lines().any(|known| known == line) || !root.join(format!("{FOLDER}/{}.png", shown.0)).exists())
}

/// Notes which captures the screenshots show.
pub fn record(root: &Path, shown: &[Shown]) -> Result<()> {
    let lines: Result<Vec<String>> = shown.iter().map(|shown| line(root, *shown)).collect();
    fs::write(root.join(MANIFEST), lines?.join("\n") + "\n").with_context(|| format!("cannot write {MANIFEST}"))
}

/// Screenshots that do not show the captures as they are now, are not taken by this program, or are too large.
pub fn problems(root: &Path, shown: &[Shown]) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for (picture, capture) in shown {
        if is_stale(root, (picture, capture))? {
            let what =
                format!("does not show captures/{capture}.pcapng as it is now: run `make screenshots` and look at it");
            problems.push(Problem::new(&format!("{FOLDER}/{picture}.png"), what));
        }
    }
    for entry in fs::read_dir(root.join(FOLDER)).with_context(|| format!("cannot read {FOLDER}"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let (Some(picture), size) = (name.strip_suffix(".png"), entry.metadata()?.len() as usize) else { continue };
        let place = format!("{FOLDER}/{name}");
        if !shown.iter().any(|(known, _)| *known == picture) {
            problems.push(Problem::new(&place, "`make screenshots` does not take it"));
        }
        if size > LARGEST {
            problems.push(Problem::new(&place, format!("has {size} bytes, and may have {LARGEST}")));
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: [(&str, &str); 1] = [("01", "01_a")];

    /// A small repository: one capture, one picture of it.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let root = std::env::temp_dir().join(format!("pictures-{name}-{}", std::process::id()));
            fs::create_dir_all(root.join("captures")).unwrap();
            fs::create_dir_all(root.join(FOLDER)).unwrap();
            fs::write(root.join("captures/01_a.pcapng"), "capture").unwrap();
            fs::write(root.join(FOLDER).join("01.png"), "picture").unwrap();
            record(&root, &SHOWN).unwrap();
            Folder(root)
        }

        fn write(&self, path: &str, bytes: &[u8]) {
            fs::write(self.0.join(path), bytes).unwrap();
        }

        fn problems(&self) -> Vec<String> {
            problems(&self.0, &SHOWN).unwrap().iter().map(Problem::to_string).collect()
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
        assert_eq!(folder.problems(), [""; 0]);
        folder.write("captures/01_a.pcapng", b"recorded anew");
        assert!(folder.problems()[0].starts_with("docs/images/01.png: does not show captures/01_a.pcapng as it is now"));
    }

    #[test]
    fn a_picture_too_many_or_too_few_or_too_large_is_found() {
        let folder = Folder::new("list");
        folder.write("docs/images/02.png", &vec![0; LARGEST + 1]);
        let problems = folder.problems();
        assert!(problems[0].contains("02.png: `make screenshots` does not take it"), "{problems:?}");
        assert!(problems[1].contains("has 153601 bytes, and may have 153600"));
        fs::remove_file(folder.0.join("docs/images/02.png")).unwrap();
        fs::remove_file(folder.0.join("docs/images/01.png")).unwrap();
        assert!(folder.problems()[0].starts_with("docs/images/01.png: does not show"));
    }
}
