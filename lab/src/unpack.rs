//! Taking apart compressed kernels and modules with the usual tools (`gzip`, `xz`, `zstd`).
//!
//! A bzImage unpacks itself, which takes five seconds on an emulated processor. The ELF file `vmlinux` inside
//! it can be booted directly (PVH entry), so it is taken out once, on the real processor.

use anyhow::{bail, Context, Result};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

/// One compression format: how it begins, and the command that undoes it from standard input to output.
struct Format {
    magic: &'static [u8],
    command: &'static [&'static str],
}

const FORMATS: [Format; 3] = [
    Format { magic: &[0x1f, 0x8b, 0x08], command: &["gzip", "-dc"] },
    Format { magic: &[0xfd, b'7', b'z', b'X', b'Z', 0], command: &["xz", "-dc"] },
    Format { magic: &[0x28, 0xb5, 0x2f, 0xfd], command: &["zstd", "-dc"] },
];

/// Unpacks `data` if it begins like one of the known formats; `None` if it does not.
///
/// # Errors
/// The tool is missing, or it gave nothing.
pub fn decompress(data: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(format) = FORMATS.iter().find(|format| data.starts_with(format.magic)) else {
        return Ok(None);
    };
    filter(format.command, data).map(Some)
}

/// The ELF file `vmlinux` inside an x86 kernel image; `None` if there is none that can be taken out, and
/// the image has to be booted as it is.
///
/// # Errors
/// The tool for its compression is missing, or it gave nothing.
pub fn vmlinux(image: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(payload) = bzimage_payload(image) else { return Ok(None) };
    let unpacked = decompress(payload)?;
    Ok(unpacked.filter(|elf| elf.starts_with(b"\x7fELF")))
}

/// The compressed kernel within a bzImage (Linux/x86 boot protocol, version 2.08 and later).
fn bzimage_payload(image: &[u8]) -> Option<&[u8]> {
    let header = image.get(0x1f1..0x250)?;
    if &header[0x202 - 0x1f1..0x206 - 0x1f1] != b"HdrS" {
        return None;
    }
    let word = |at: usize| {
        let bytes = &header[at - 0x1f1..at - 0x1f1 + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
    };
    // Sectors of the real-mode part; the first sector is not counted, and 0 means 4.
    let sectors = match header[0] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * 512 + word(0x248);
    // The last four bytes hold the unpacked size; the tools would take them for trailing garbage.
    let length = word(0x24c).checked_sub(4)?;
    image.get(start..start.checked_add(length)?)
}

fn filter(command: &[&str], data: &[u8]) -> Result<Vec<u8>> {
    let name = command[0];
    let mut child = Command::new(name)
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run `{name}` to unpack the kernel; {}", crate::libs::GET))?;
    let mut stdin = child.stdin.take().context("the child has no standard input")?;
    // Writing and reading side by side: with one thread both pipes would fill up and wait for each other.
    let output = thread::scope(|scope| {
        scope.spawn(move || {
            // A reader that stops early closes the pipe; the length of its output tells what happened.
            let _ = stdin.write_all(data);
        });
        child.wait_with_output()
    })?;
    if output.stdout.is_empty() {
        bail!("`{}` could not unpack the kernel or module ({})", command.join(" "), output.status);
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(command: &[&str], data: &[u8]) -> Vec<u8> {
        filter(command, data).unwrap()
    }

    /// A bzImage header around `payload`, as the boot protocol describes it.
    fn bzimage(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
        image.extend_from_slice(&[0xcc; 16]);
        image.extend_from_slice(payload);
        image.extend_from_slice(&[1, 2, 3, 4]);
        image.extend_from_slice(b"what follows the payload");
        image
    }

    #[test]
    fn each_compression_is_undone() {
        let elf = [b"\x7fELF".to_vec(), vec![7; 100_000]].concat();
        for command in [&["gzip", "-c"][..], &["xz", "-c", "--check=crc32"], &["zstd", "-c"]] {
            let image = bzimage(&pack(command, &elf));
            assert_eq!(vmlinux(&image).unwrap().as_ref(), Some(&elf), "{command:?}");
        }
    }

    #[test]
    fn other_images_are_left_alone() {
        assert_eq!(vmlinux(b"MZ").unwrap(), None);
        assert_eq!(vmlinux(&vec![0; 4096]).unwrap(), None);
        assert_eq!(vmlinux(&bzimage(b"not compressed")).unwrap(), None);
        assert_eq!(vmlinux(&bzimage(b"x")[..1030]).unwrap(), None, "cut in the middle");
    }
}
