//! `mine-nic/`: laid out once, and again when the project has changed. What a learner has written there stays.

use crate::mine::{Language, Mine};
use crate::nic::cut::{body, merged, with_body, without_tests};
use crate::nic::hole::Hole;
use crate::project::Project;
use crate::workspace;
use anyhow::{Context, Result};
use run::files::{name, read, tree, write};
use std::path::{Path, PathBuf};

/// The folder, in the repository's; version control leaves it alone.
pub const FOLDER: &str = "mine-nic";
/// Where it keeps what was laid out: what differs from that, the learner has written.
const LAID: &str = ".laid";
/// What is copied: the sources of two crates.
const SOURCES: [&str; 2] = ["tools/nic/src", "tools/roce/src"];
const TOOLS: &str = "tools";
/// What cargo needs beside them.
const MANIFESTS: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../../begin/nic/Cargo.toml.txt")),
    ("nic/Cargo.toml", include_str!("../../begin/nic/nic.toml.txt")),
    ("roce/Cargo.toml", include_str!("../../begin/nic/roce.toml.txt")),
    ("device/Cargo.toml", include_str!("../../begin/nic/device.toml.txt")),
    ("pair/Cargo.toml", include_str!("../../begin/nic/pair.toml.txt")),
    ("run/Cargo.toml", include_str!("../../begin/nic/run.toml.txt")),
];

/// The copy, and what is noted there, as for a program of one's own.
#[derive(Debug, Clone)]
pub struct MineNic(pub Mine);

impl MineNic {
    pub fn new(folder: PathBuf) -> Self {
        Self(Mine { folder, language: Language::Rust })
    }

    /// The learner's, if there is one.
    pub fn find(project: &Project) -> Option<Self> {
        let folder = project.root.join(FOLDER);
        folder.join(MANIFESTS[0].0).exists().then(|| Self::new(folder))
    }

    /// Lays it out with these holes open. Gives the files that were left as they are, because the learner has changed more than
    /// holes there, and the project has, too.
    pub fn lay_out(&self, project: &Project, holes: &[Hole]) -> Result<Vec<String>> {
        self.furnish(project)?;
        let mut left = Vec::new();
        for (file, text) in sources(project)? {
            let of_file: Vec<&Hole> = holes.iter().filter(|hole| hole.place.file == file).collect();
            let cut = of_file.iter().try_fold(text, |text, hole| with_body(&text, &hole.place.function, &hole.stub));
            let cut = cut.with_context(|| file.clone())?;
            let (here, laid) = (self.0.folder.join(&file), self.0.folder.join(LAID).join(&file));
            let functions: Vec<&str> = of_file.iter().map(|hole| hole.place.function.as_str()).collect();
            let new = match (read(&here), read(&laid)) {
                (Ok(hers), Ok(laid)) => merged(&hers, &laid, &cut, &functions),
                _ => Some(cut.clone()),
            };
            match new {
                Some(new) => {
                    write(&here, new)?;
                    write(&laid, cut)?;
                }
                None => left.push(file),
            }
        }
        Ok(left)
    }

    /// Writes what cargo needs, as it is today. Cargo tells packages apart by their names and versions alone, wherever they are.
    pub fn furnish(&self, project: &Project) -> Result<()> {
        let repository = project.root.display().to_string();
        let manifest = |(file, text): (&'static str, &str)| {
            let text = text.replace("{repository}", &repository).replace("{folder}", &name(&self.0.folder));
            let text = text.replace("{profiles}", workspace::profiles(project)?.trim_end());
            Ok((file, text.replace("{dependencies}", &dependencies(project, file)?)))
        };
        let manifests = MANIFESTS.into_iter().map(manifest).collect::<Result<Vec<_>>>()?;
        workspace::lay_out(&self.0.folder, manifests.into_iter().chain(workspace::beside_nic(project)?))
    }

    /// The files in which the learner has changed more than holes.
    pub fn changed_outside(&self, project: &Project, holes: &[Hole]) -> Result<Vec<String>> {
        let mut changed = Vec::new();
        for (file, text) in sources(project)? {
            let own = read(self.0.folder.join(&file))?;
            let emptied = |text: String| {
                let mut of_file = holes.iter().filter(|hole| hole.place.file == file);
                of_file.try_fold(text, |text, hole| with_body(&text, &hole.place.function, ""))
            };
            let (project_s, own) = (emptied(text)?, emptied(own));
            if own.map_or(true, |own| own != project_s) {
                changed.push(file);
            }
        }
        Ok(changed)
    }

    /// Puts a body into a hole.
    pub fn fill(&self, hole: &Hole, text: &str) -> Result<()> {
        let file = self.0.folder.join(&hole.place.file);
        write(&file, with_body(&read(&file)?, &hole.place.function, text)?)
    }
}

/// What is in a hole in the project's own source: the solution.
pub fn solution(project: &Project, hole: &Hole) -> Result<String> {
    let text = read(project.root.join(TOOLS).join(&hole.place.file))?;
    Ok(text[body(&text, &hole.place.function)?].to_owned())
}

/// What a manifest of the copy depends on: the same as the project's own. There the crates are below `tools/`.
fn dependencies(project: &Project, manifest: &str) -> Result<String> {
    let (of, section) = match manifest {
        "Cargo.toml" => (project.root.join(manifest), "[workspace.dependencies]"),
        _ => (project.root.join(TOOLS).join(manifest), "[dependencies]"),
    };
    // Also what only some targets have, as `[target.'cfg(unix)'.dependencies]`, and what is only for its build script.
    let is_other = |line: &str| ["[target.", "[build-"].iter().any(|start| line.starts_with(start));
    let is_wanted = |line: &str| line == section || is_other(line) && line.ends_with("dependencies]");
    let text = workspace::sections(&read(of)?, is_wanted);
    Ok(text.trim_end().replace("\"tools/", "\""))
}

/// The files of the copy in which holes are, or may be.
pub fn files(project: &Project) -> Result<Vec<String>> {
    Ok(sources(project)?.into_iter().map(|(file, _)| file).collect())
}

/// What is copied: each file by its path in the copy, with its text, but without its tests.
fn sources(project: &Project) -> Result<Vec<(String, String)>> {
    let mut sources = Vec::new();
    for folder in SOURCES {
        for file in tree(&project.root.join(folder))? {
            let file = Path::new(folder).join(file);
            let here = file.strip_prefix(TOOLS)?.display().to_string();
            sources.push((here, without_tests(&read(project.root.join(file))?).to_owned()));
        }
    }
    Ok(sources)
}
