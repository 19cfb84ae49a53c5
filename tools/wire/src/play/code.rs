//! Which line of a lesson's source acts when a line of the log is printed: the log says so, see [`run::source`].
//!
//! What is dropped has no line that calls for it. Then the log names the line where the stage begins, and the function is what
//! can be told. A line that is not in the lesson's sources of today is not shown.

use run::source::Source;

/// The file's place in the list of those that are shown, the line from 1, and whether just this line acts.
pub(super) type CodeLine = (usize, usize, bool);

/// What begins a stage.
const STAGE: &str = "stage(\"";

pub(super) struct Code {
    /// Name and text of all sources, and of those that are shown: a place names one.
    pub(super) sources: Vec<(String, String)>,
    pub(super) shown: Vec<(String, String)>,
}

impl Code {
    /// Where a program has said something.
    pub(super) fn place(&mut self, source: &Source) -> Option<CodeLine> {
        // `by_hand/client.rs` is no `client.rs`.
        let is_it = |(name, _): &&(String, String)| source.file.ends_with(&format!("/{name}"));
        let file = self.sources.iter().filter(is_it).max_by_key(|(name, _)| name.len())?;
        let line = source.find(&file.1)?;
        let shown = self.shown.iter().position(|shown| shown.0 == file.0).unwrap_or_else(|| {
            self.shown.push(file.clone());
            self.shown.len() - 1
        });
        Some((shown, line + 1, !source.text.contains(STAGE)))
    }
}
