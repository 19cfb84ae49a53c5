//! The pictures of Wireshark know which capture they show: `tools/xtask/screenshots.sh` takes them, and keeps a list.

use crate::docs::Problem;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FOLDER: &str = "docs/images";
/// For each picture a line: its capture's CRC-32, the capture, the picture.
const LIST: &str = "docs/images/screenshots.txt";
/// A page shall load fast: bytes of one picture.
const LARGEST: u64 = 150 * 1024;

/// Pictures that do not show the captures as they are now, are not in the list, or are too large.
pub fn problems(root: &Path) -> Result<Vec<Problem>> {
    let (mut problems, mut known) = (Vec::new(), BTreeSet::new());
    let list = fs::read_to_string(root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    for line in list.lines() {
        let [sum, capture, picture] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let bytes = fs::read(root.join(format!("captures/{capture}.pcapng"))).unwrap_or_default();
        if format!("{:08x}", crc32fast::hash(&bytes)) != sum || !root.join(FOLDER).join(picture).exists() {
            let what =
                format!("does not show captures/{capture}.pcapng as it is now: run `make screenshots` and look at it");
            problems.push(Problem::new(&format!("{FOLDER}/{picture}"), what));
        }
        known.insert(picture);
    }
    for entry in fs::read_dir(root.join(FOLDER)).with_context(|| format!("cannot read {FOLDER}"))? {
        let (entry, mut problem) = (entry?, |place, what: String| problems.push(Problem::new(place, what)));
        let (name, size) = (entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len());
        let place = &format!("{FOLDER}/{name}");
        if name.ends_with(".png") && !known.contains(name.as_str()) {
            problem(place, "`make screenshots` does not take it".into());
        }
        if name.ends_with(".png") && size > LARGEST {
            problem(place, format!("has {size} bytes, and may have {LARGEST}"));
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_of_an_earlier_capture_is_found_and_one_too_many_or_too_few_or_too_large() -> Result<()> {
        let root = std::env::temp_dir().join(format!("pictures-{}", std::process::id()));
        let write = |path: &str, bytes: &[u8]| fs::write(root.join(path), bytes);
        fs::create_dir_all(root.join("captures"))?;
        fs::create_dir_all(root.join(FOLDER))?;
        write("captures/01_a.pcapng", b"123456789")?;
        // The sum of these nine digits is the one that descriptions of CRC-32 give.
        write(LIST, b"cbf43926 01_a 01.png\n")?;
        let found = || -> Result<Vec<String>> { Ok(problems(&root)?.iter().map(ToString::to_string).collect()) };
        assert!(found()?[0].starts_with("docs/images/01.png: does not show captures/01_a.pcapng as it is now"));
        write("docs/images/01.png", b"picture")?;
        assert_eq!(found()?, [""; 0]);
        write("captures/01_a.pcapng", b"recorded anew")?;
        assert_eq!(found()?.len(), 1);
        write("docs/images/02.png", &vec![0; LARGEST as usize + 1])?;
        let found = found()?;
        assert!(found[1].contains("02.png: `make screenshots` does not take it"), "{found:?}");
        assert!(found[2].contains("has 153601 bytes, and may have 153600"), "{found:?}");
        Ok(fs::remove_dir_all(&root)?)
    }
}
