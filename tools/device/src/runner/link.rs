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
use std::time::SystemTime;

const FILE: &str = "libibverbs.so.1";
/// The other names. perftest asks for the last three.
const NAMES: [&str; 4] = ["librdmacm.so.1", "libmlx5.so.1", "libefa.so.1", "libhns.so.1"];
/// Which symbol has which version.
const VERSIONS: &str = include_str!("../../verbs.map");

/// The folder with the libraries, newer than the archive.
pub fn library() -> Result<PathBuf> {
    let own = env::current_exe().context("where is this program?")?;
    let build = own.parent().context("this program lies nowhere")?;
    let not_built = || format!("no libdevice.a in {}: cargo build -p device", build.display());
    let (built, archive) = newest_archive(build).with_context(not_built)?;
    let folder = build.join("device-libraries");
    if modified(&folder.join(FILE)).map_or(true, |linked| linked < built) {
        link(&archive, &folder)?;
    }
    Ok(folder)
}

/// The archive that cargo has built last, and when. `cargo test` leaves its own in `deps`, with a number in its name, and the
/// one of the last `cargo build` where it is.
fn newest_archive(build: &Path) -> Option<(SystemTime, PathBuf)> {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libdevice-") && name.ends_with(".a")
    };
    let files = fs::read_dir(build.join("deps")).into_iter().flatten().flatten().map(|file| file.path());
    let all = files.filter(is_ours).chain([build.join("libdevice.a")]);
    all.filter_map(|path| Some((modified(&path)?, path))).max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn programs_get_the_device_that_was_built_last() {
        let build = env::temp_dir().join(format!("device-link-{}", std::process::id()));
        fs::create_dir_all(build.join("deps")).unwrap();
        assert_eq!(newest_archive(&build), None);
        let mut time = SystemTime::UNIX_EPOCH;
        for name in ["deps/libdevice-0a.a", "libdevice.a", "deps/libdevice-0b.a", "libdevice.a"] {
            time += Duration::from_secs(1);
            fs::File::create(build.join(name)).unwrap().set_modified(time).unwrap();
            // What is no archive of the device does not count, however new it is.
            for other in ["deps/libdevice-0a.rlib", "deps/libdevices-0c.a"] {
                fs::write(build.join(other), "").unwrap();
            }
            assert_eq!(newest_archive(&build), Some((time, build.join(name))));
        }
        fs::remove_dir_all(&build).unwrap();
    }
}
