//! Taking apart compressed kernels and modules with the usual tools.
//!
//! A bzImage unpacks itself, which takes five seconds on an emulated processor. The ELF file `vmlinux` inside
//! it can be booted directly (PVH entry), so it is taken out once, on the real processor.

use crate::{elf, libs};
use anyhow::{ensure, Context, Result};
use std::io::{self, Seek, Write};
use std::process::{Command, Output, Stdio};

/// How compressed data begins, and the tool that undoes it.
const FORMATS: [(&[u8], &str); 3] = [(b"\x1f\x8b\x08", "gzip"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")];

/// Unpacks `data` if it begins like one of the known formats; `None` if it does not.
pub fn decompress(data: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some((_, tool)) = FORMATS.iter().find(|(magic, _)| data.starts_with(magic)) else { return Ok(None) };
    let output = filter(tool, "-dc", data);
    let output = output.with_context(|| format!("cannot run `{tool}` to unpack the kernel; {}", libs::GET))?;
    // The status does not tell: behind a kernel stands something that the tool complains about.
    ensure!(!output.stdout.is_empty(), "`{tool} -dc` could not unpack the kernel or module ({})", output.status);
    Ok(Some(output.stdout))
}

/// The input is a file, as two pipes would fill up and wait for each other.
fn filter(tool: &str, option: &str, data: &[u8]) -> io::Result<Output> {
    let mut input = tempfile::tempfile()?;
    input.write_all(data)?;
    input.rewind()?;
    Command::new(tool).arg(option).stdin(input).stderr(Stdio::null()).output()
}

/// The ELF file `vmlinux` inside an x86 kernel image; `None` if there is none that can be taken out, and
/// the image must be booted as it is.
pub fn vmlinux(image: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(payload) = bzimage_payload(image) else { return Ok(None) };
    Ok(decompress(payload)?.filter(|unpacked| unpacked.starts_with(elf::MAGIC)))
}

/// The compressed kernel within a bzImage (Linux/x86 boot protocol, version 2.08 and later).
fn bzimage_payload(image: &[u8]) -> Option<&[u8]> {
    let header = image.get(0x1f1..0x250)?;
    if &header[0x202 - 0x1f1..0x206 - 0x1f1] != b"HdrS" {
        return None;
    }
    let word = |at: usize| u32::from_le_bytes(header[at - 0x1f1..at - 0x1ed].try_into().unwrap_or_default()) as usize;
    // Sectors of the real-mode part; the first sector is not counted, and 0 means 4.
    let sectors = if header[0] == 0 { 4 } else { usize::from(header[0]) };
    let start = (sectors + 1) * 512 + word(0x248);
    // The last four bytes hold the unpacked size; the tools would take them for trailing garbage.
    let length = word(0x24c).checked_sub(4)?;
    image.get(start..start.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bzImage header around `payload`, as the boot protocol describes it.
    fn bzimage(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1040];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
        [&image[..], payload, &[1, 2, 3, 4], b"what follows the payload"].concat()
    }

    #[test]
    fn each_compression_is_undone_and_other_images_are_left_alone() {
        let elf = [b"\x7fELF".to_vec(), vec![7; 100_000]].concat();
        for (_, tool) in FORMATS {
            let image = bzimage(&filter(tool, "-c", &elf).unwrap().stdout);
            assert_eq!(vmlinux(&image).unwrap().as_ref(), Some(&elf), "{tool}");
        }
        for image in [&b"MZ"[..], &[0; 4096], &bzimage(b"not compressed"), &bzimage(b"x")[..1030]] {
            assert_eq!(vmlinux(image).unwrap(), None);
        }
    }
}
