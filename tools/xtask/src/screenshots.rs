//! The pictures of Wireshark know which capture they show: `tools/xtask/screenshots.sh` takes them, and keeps a list.

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
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let (mut problems, mut known) = (Vec::new(), BTreeSet::new());
    let list = fs::read_to_string(root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    for line in list.lines() {
        let [sum, capture, picture] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let bytes = fs::read(root.join(format!("captures/{capture}.pcapng"))).unwrap_or_default();
        if format!("{:08x}", crc32fast::hash(&bytes)) != sum || !root.join(FOLDER).join(picture).exists() {
            let now = format!("captures/{capture}.pcapng as it is now");
            problems.push(format!("{FOLDER}/{picture}: does not show {now}: run `make screenshots` and look at it"));
        }
        known.insert(picture);
    }
    for entry in fs::read_dir(root.join(FOLDER)).with_context(|| format!("cannot read {FOLDER}"))? {
        let entry = entry?;
        let (name, size) = (entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len());
        if name.ends_with(".png") && !known.contains(name.as_str()) {
            problems.push(format!("{FOLDER}/{name}: `make screenshots` does not take it"));
        }
        if name.ends_with(".png") && size > LARGEST {
            problems.push(format!("{FOLDER}/{name}: has {size} bytes, and may have {LARGEST}"));
        }
    }
    Ok(problems)
}
