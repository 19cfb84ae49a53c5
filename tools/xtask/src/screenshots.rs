//! The pictures of Wireshark know which capture they show: `tools/xtask/screenshots.sh` takes them, and keeps a list.

use crate::docs::sources::files;
use anyhow::Result;
use run::files::{bytes, read};
use std::collections::BTreeSet;
use std::path::Path;

const FOLDER: &str = "docs/images";
/// For each picture a line: its capture's CRC-32, the capture, the picture.
const LIST: &str = "docs/images/screenshots.txt";
/// A page should load fast: bytes of one picture.
const LARGEST: usize = 150 * 1024;

/// Pictures that do not show the captures as they are now, are not in the list, or are too large.
pub fn problems() -> Result<Vec<String>> {
    let (mut problems, mut known, list) = (Vec::new(), BTreeSet::new(), read(LIST)?);
    for line in list.lines() {
        let [sum, capture, picture] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let (capture, picture) = (format!("captures/{capture}.pcapng"), format!("{FOLDER}/{picture}"));
        let bytes = bytes(&capture).unwrap_or_default();
        if format!("{:08x}", crc32fast::hash(&bytes)) != sum || !Path::new(&picture).exists() {
            let todo = "as it is now: run `make screenshots` and look at it";
            problems.push(format!("{picture}: does not show {capture} {todo}"));
        }
        known.insert(picture);
    }
    for picture in files(FOLDER, ".png")? {
        let size = bytes(&picture)?.len();
        if !known.contains(&picture) {
            problems.push(format!("{picture}: `make screenshots` does not take it"));
        }
        if size > LARGEST {
            problems.push(format!("{picture}: has {size} bytes, and may have {LARGEST}"));
        }
    }
    Ok(problems)
}
