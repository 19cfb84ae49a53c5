//! Edits of a lesson's source, as a page shows them: a change's own, and what somebody makes of the hole of an exercise.
//!
//! ```diff
//! --- src/server.rs
//!  what stays, to tell the place
//! -what is there now
//! +what is there then
//! @@
//!  another place in the same file
//! +…
//! ```

use anyhow::{bail, ensure, Context, Result};

/// One place in a file.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    pub file: String,
    /// The lines that are there now, exactly once.
    pub from: String,
    /// Those that are there then.
    pub to: String,
}

impl Edit {
    pub fn of_diff(text: &str) -> Result<Vec<Self>> {
        let mut edits: Vec<Self> = Vec::new();
        for line in text.lines() {
            if let Some(file) = line.strip_prefix("--- ") {
                edits.push(Self { file: file.to_owned(), ..Self::default() });
                continue;
            }
            let edit = edits.last_mut().context("a diff must begin with its file, like `--- src/server.rs`")?;
            let whole = format!("{}\n", line.get(1..).unwrap_or_default());
            match line.chars().next() {
                Some('-') => edit.from += &whole,
                Some('+') => edit.to += &whole,
                Some(' ') | None => {
                    edit.from += &whole;
                    edit.to += &whole;
                }
                _ if line == "@@" => {
                    let file = edit.file.clone();
                    edits.push(Self { file, ..Self::default() });
                }
                _ => bail!("a line of a diff must begin with a space, - or +, not as this one: {line}"),
            }
        }
        let is_whole = edits.iter().all(|edit| !edit.from.is_empty() && edit.from != edit.to);
        ensure!(is_whole, "each place of a diff must have a line that is there now, and it must change something");
        Ok(edits)
    }

    /// A file with those of the edits in it that are about it.
    pub fn apply(edits: &[Self], file: &str, text: &str) -> Result<String> {
        let mut text = text.to_owned();
        for Self { from, to, .. } in edits.iter().filter(|edit| edit.file == file) {
            let count = text.matches(from).count();
            ensure!(count == 1, "this must occur once in {file}, but occurs {count} times:\n{from}");
            text = text.replacen(from, to, 1);
        }
        Ok(text)
    }

    /// The files that are edited, each once.
    pub fn files<'a>(edits: impl IntoIterator<Item = &'a Self>) -> Vec<&'a str> {
        let mut files: Vec<&str> = edits.into_iter().map(|edit| edit.file.as_str()).collect();
        files.dedup();
        files
    }

    /// Whether another edit also takes out a line that this one takes out.
    pub(crate) fn is_told_by(&self, other: &Edit) -> bool {
        let (ours, theirs) = (self.taken_out(), other.taken_out());
        let tells = |ours: &str| theirs.iter().any(|theirs| ours.contains(theirs) || theirs.contains(ours));
        self.file == other.file && ours.into_iter().any(tells)
    }

    fn taken_out(&self) -> Vec<&str> {
        let stays = |line: &str| self.to.lines().any(|other| other.trim() == line);
        // `Ok(())` and braces alone tell nothing.
        self.from.lines().map(str::trim).filter(|line| line.len() > 8 && !stays(line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_made_where_its_lines_stand_once() {
        let edits = Edit::of_diff("--- a.rs\n x\n-b\n+c\n+d\n@@\n-e\n--- b.rs\n x\n\n+y\n").unwrap();
        assert_eq!(Edit::apply(&edits, "a.rs", "x\nb\n\ne\n").unwrap(), "x\nc\nd\n\n");
        assert_eq!(Edit::apply(&edits, "b.rs", "x\n\nz\n").unwrap(), "x\n\ny\nz\n");
        for (text, count) in [("", 0), ("x\nb\nx\nb\n", 2)] {
            let error = Edit::apply(&edits, "a.rs", text).unwrap_err().to_string();
            assert!(error.contains(&format!("once in a.rs, but occurs {count} times")), "{error}");
        }
    }

    #[test]
    fn what_is_no_difference_is_named() {
        let error = |text: &str| Edit::of_diff(text).unwrap_err().to_string();
        assert!(error("-x\n").contains("its file"));
        assert!(error("--- f\nx\n").contains("not as this one: x"));
        assert!(error("--- f\n+x\n").contains("is there now"));
        assert!(error("--- f\n x\n").contains("change something"));
    }
}
