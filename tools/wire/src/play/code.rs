//! Which line of a lesson's source acts when a line of the log is printed: the log says so, see [`run::source`].
//!
//! What is dropped has no line that calls for it. Then the log names the line where the stage begins, and the function is what
//! can be told. A line that is not in the lesson's sources of today is not shown.

use run::source::Source;

/// The file's place in the list of those that are shown, the line from 1, and whether just this line acts.
pub(super) type Place = (usize, usize, bool);

/// What begins a stage.
const STAGE: &str = "stage(\"";

pub(super) struct Code {
    pub(super) sources: Vec<(String, String)>,
    /// The sources that are shown.
    pub(super) shown: Vec<usize>,
}

impl Code {
    /// The sources that places name.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        self.shown.iter().map(|file| self.sources[*file].clone()).collect()
    }

    /// Where a program has said something.
    pub(super) fn place(&mut self, source: &Source) -> Option<Place> {
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
