//! Which line of a lesson's source acts when a line of the log is printed: the log says so, see [`run::source`].
//!
//! What is dropped has no line that calls for it. Then the log names the line where the stage begins, and the function is what
//! can be told. A line that is not in the lesson's sources of today is not shown.

use run::file::Line;
use run::source::Source;
use run::story::Act;

/// The file's place in the list of those that are shown, the line from 1, and whether just this line acts.
pub(super) type Place = (usize, usize, bool);

/// What begins a stage.
const STAGE: &str = "stage(\"";

pub(super) struct Code {
    sources: Vec<(String, String)>,
    /// The sources that are shown.
    shown: Vec<usize>,
    /// What each node has said in a stage, and where.
    said: Vec<(String, String, String, Place)>,
}

impl Code {
    pub(super) fn new(sources: Vec<(String, String)>) -> Code {
        Code { sources, shown: Vec::new(), said: Vec::new() }
    }

    /// The sources that places name.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        self.shown.iter().map(|file| self.sources[*file].clone()).collect()
    }

    /// Where a program says this.
    pub(super) fn line(&mut self, line: &Line) -> Option<Place> {
        let place = self.place(line.source.as_ref()?)?;
        let stage = line.stage().unwrap_or_default().to_owned();
        self.said.push((line.node.clone(), stage, line.words().to_owned(), place));
        Some(place)
    }

    /// Where a node last did what a step of the story tells.
    pub(super) fn act(&self, node: &str, act: &Act) -> Option<Place> {
        let is_it = |(of, stage, said, _): &&(String, String, String, Place)| {
            of == node && *stage == act.stage && said.contains(&act.log)
        };
        self.said.iter().rfind(is_it).map(|(.., place)| *place)
    }

    fn place(&mut self, source: &Source) -> Option<Place> {
        // `by_hand/client.rs` is no `client.rs`.
        let is_it = |(_, (name, _)): &(usize, &(String, String))| source.file.ends_with(&format!("/{name}"));
        let named = self.sources.iter().enumerate().filter(is_it).max_by_key(|(_, (name, _))| name.len());
        let (file, (_, text)) = named?;
        let line = source.find(text)?;
        let shown = self.shown.iter().position(|shown| *shown == file).unwrap_or_else(|| {
            self.shown.push(file);
            self.shown.len() - 1
        });
        Some((shown, line + 1, !source.text.contains(STAGE)))
    }
}
