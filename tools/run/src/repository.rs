//! Where the repository is that a tool works on: found when it runs, for a clone can be renamed, and copied with all that was
//! built in it.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::{env, iter};

/// The repository around the working directory, or else around this program.
///
/// # Errors
/// There is none.
pub fn root() -> Result<PathBuf> {
    let places = iter::once(env::current_dir()).chain(iter::once(env::current_exe()));
    let found = places.flatten().find_map(|place| around(&place));
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, "this is no clone of the course: run it in its folder"))
}

/// The folder at a place, or the next one above it, that has the lessons.
fn around(place: &Path) -> Option<PathBuf> {
    let is_root = |folder: &&Path| folder.join("lessons").is_dir() && folder.join("Cargo.toml").is_file();
    place.ancestors().find(is_root).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_renamed_clone_is_found_where_it_is_now() {
        let folder = env::temp_dir().join(format!("repository-{}", std::process::id()));
        let (clone, renamed) = (folder.join("clone"), folder.join("renamed"));
        fs::create_dir_all(clone.join("lessons/04")).unwrap();
        fs::write(clone.join("Cargo.toml"), "").unwrap();
        assert_eq!(around(&clone.join("lessons/04")), Some(clone.clone()));
        assert_eq!(around(&folder), None);
        fs::rename(&clone, &renamed).unwrap();
        assert_eq!((around(&renamed), around(&clone)), (Some(renamed.clone()), None));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_test_runs_in_the_repository() {
        assert!(root().unwrap().join("tools/run/src/repository.rs").exists());
    }
}
