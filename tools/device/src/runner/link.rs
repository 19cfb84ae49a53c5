//! Makes one shared library with both names out of the archive that cargo has built.
//!
//! Cargo cannot do it alone: programs ask for symbols with versions, and a Rust library gets none. One file, because the two
//! libraries share one device; the loader knows a file by its inode, so it loads it once, whatever it is called.

use anyhow::{bail, Context, Result};
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "libibverbs.so.1";
/// The other names. perftest asks for the last three.
const NAMES: [&str; 4] = ["librdmacm.so.1", "libmlx5.so.1", "libefa.so.1", "libhns.so.1"];
/// Which symbol has which version.
const VERSIONS: &str = include_str!("../../verbs.map");

/// The folder with the libraries, newer than the archive.
pub fn library() -> Result<PathBuf> {
    let own = env::current_exe().context("where is this program?")?;
    let build = own.parent().context("this program lies nowhere")?;
    let archive = build.join("libdevice.a");
    let built = fs::metadata(&archive).and_then(|file| file.modified());
    let built = built.with_context(|| format!("{} is not built: cargo build -p device", archive.display()))?;
    let folder = build.join("device-libraries");
    if fs::metadata(folder.join(FILE)).and_then(|file| file.modified()).map_or(true, |linked| linked < built) {
        link(&archive, &folder)?;
    }
    Ok(folder)
}

fn link(archive: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let own = |name: &str| folder.join(format!("{name}.{}", std::process::id()));
    let (versions, new) = (own("verbs.map"), own(FILE));
    fs::write(&versions, VERSIONS).with_context(|| format!("cannot write {}", versions.display()))?;
    let output = Command::new("cc")
        .args(["-shared", "-o"])
        .arg(&new)
        .arg("-Wl,--whole-archive")
        .arg(archive)
        .args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-Wl,-z,now", "-Wl,--strip-debug"])
        .arg(format!("-Wl,-soname,{FILE}"))
        .arg(format!("-Wl,--version-script={}", versions.display()))
        .output()
        .context("cannot run cc, which links Rust programs, too")?;
    let _ = fs::remove_file(&versions);
    if !output.status.success() {
        bail!("cc does not link the libraries: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    // In one step each: others may link at the same time, and a program that starts meanwhile gets the old file or the new one.
    let put = |new: &Path, name: &str| {
        fs::rename(new, folder.join(name)).with_context(|| format!("cannot write {}", folder.join(name).display()))
    };
    for name in NAMES {
        let new = own(name);
        symlink(FILE, &new).with_context(|| format!("cannot make {}", new.display()))?;
        put(&new, name)?;
    }
    put(&new, FILE)
}
