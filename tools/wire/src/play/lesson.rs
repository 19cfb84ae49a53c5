//! The lesson that a run is of: its story, and its sources.

use run::capture::{Error, Events};
use run::story::{self, Story};
use std::path::Path;

/// A lesson, read from its folder.
#[derive(Debug)]
pub struct Lesson {
    name: String,
    stories: Vec<Story>,
    /// Name, as `client.rs`, and text.
    pub(super) sources: Vec<(String, String)>,
}

impl Lesson {
    /// Reads `lessons/NN_topic`: steps.toml, and the sources in src and beside it.
    pub fn read(folder: &Path) -> Result<Lesson, Error> {
        let folder = folder.canonicalize().map_err(|error| unfit(folder, error))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let steps = folder.join("steps.toml");
        let steps = std::fs::read_to_string(&steps).map_err(|error| unfit(&steps, error))?;
        let stories = story::parse(&name, &steps)?;
        let mut sources = Vec::new();
        for part in ["src", "puzzle"] {
            let part = folder.join(part);
            if part.is_dir() {
                read(&part, &part, &mut sources).map_err(|error| unfit(&part, error))?;
            }
        }
        sources.sort();
        Ok(Lesson { name, stories, sources })
    }

    /// What the lesson's main.rs says first: `Lesson 04: RDMA WRITE`.
    pub(super) fn title(&self) -> String {
        let main = self.sources.iter().find(|(name, _)| name == "main.rs");
        let first = main.and_then(|(_, text)| text.lines().next()?.strip_prefix("//! ")?.split('.').next());
        first.unwrap_or(&self.name).to_owned()
    }

    /// The variant that the run is of: the one whose name the file has, else the one that fits best.
    pub(super) fn story(&self, events: &Events, name: &str) -> Option<&Story> {
        let named = self.stories.iter().find(|story| story.file_name() == name);
        named.or_else(|| fittest(&self.stories, events))
    }
}

/// The story with which the fewest packets and steps of a run have no counterpart; None if nothing of the run is in any, as over TCP.
fn fittest<'s>(stories: &'s [Story], events: &Events) -> Option<&'s Story> {
    let begin = |story: &'s Story| (story, story.follow(), vec![false; story.steps.len()], 0);
    let mut all: Vec<_> = stories.iter().map(begin).collect();
    for sighting in events.packets() {
        let Some(packet) = sighting.packet() else { continue };
        for (_, follow, found, strange) in &mut all {
            match follow.packet(&sighting, packet) {
                Ok(step) => found[step.number - 1] = true,
                Err(_) => *strange += 1,
            }
        }
    }
    let strangers = |found: &[bool], strange: usize| strange + found.iter().filter(|found| !**found).count();
    let known = all.into_iter().filter(|(_, _, found, _)| found.contains(&true));
    let best = known.min_by_key(|(_, _, found, strange)| strangers(found, *strange));
    best.map(|(story, ..)| story)
}

fn read(root: &Path, folder: &Path, sources: &mut Vec<(String, String)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(root, &path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            sources.push((name, std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

fn unfit(path: &Path, error: std::io::Error) -> Error {
    Error::msg(format!("the lesson: {}: {error}", path.display()))
}
