//! The lesson that a run is of: its story, and its sources.

use roce::packet::Frame;
use run::capture::{Error, Reader};
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
    pub(super) fn story(&self, file: &[u8], name: &str) -> Option<&Story> {
        let named = self.stories.iter().find(|story| story.file_name() == name);
        named.or_else(|| self.stories.iter().min_by_key(|story| strangers(story, file)))
    }
}

/// How many packets and steps of run and story have no counterpart.
fn strangers(story: &Story, file: &[u8]) -> usize {
    let (mut follow, mut found, mut strange) = (story.follow(), vec![false; story.steps.len()], 0);
    let Ok(mut reader) = Reader::new(file) else { return 0 };
    while let Ok(Some(record)) = reader.next() {
        let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { continue };
        match follow.packet(record.number, &packet) {
            Ok(step) => found[step.number - 1] = true,
            Err(_) => strange += 1,
        }
    }
    strange + found.iter().filter(|found| !**found).count()
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
