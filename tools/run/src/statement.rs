//! The statements that a wire is described by: rules, and what a switch is like. Whoever mistypes a word is shown where.

use anyhow::{anyhow, Error};

/// One statement: words, each with where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'a> {
    pub text: &'a str,
    pub words: Vec<&'a str>,
    /// The place of the word that is taken next.
    pub next: usize,
}

impl<'a> Statement<'a> {
    /// The statements of a text, which semicolons part. Quotes mean nothing.
    pub fn all(text: &'a str) -> impl Iterator<Item = Statement<'a>> {
        let is_between = |c: char| c.is_whitespace() || c == '"' || c == '\'';
        let written = text.split(';').map(str::trim).filter(|statement| !statement.is_empty());
        written.map(move |text| {
            let words = text.split(is_between).filter(|word| !word.is_empty()).collect();
            Statement { text, words, next: 0 }
        })
    }

    pub fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }

    /// The next word; it is also the one that a complaint is about.
    pub fn take(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.next += 1;
        word
    }

    /// Takes the next word if it is this one.
    pub fn take_if(&mut self, word: &str) -> bool {
        let is_it = self.peek() == Some(word);
        self.next += usize::from(is_it);
        is_it
    }

    /// Complains about the word that was taken last.
    pub fn wrong(&self, hint: &str) -> Error {
        self.mark(self.next - 1, self.next, hint)
    }

    /// Complains about words, or about the end of the statement where there are none.
    pub fn mark(&self, first: usize, end: usize, hint: &str) -> Error {
        let place = |word: &str| word.as_ptr() as usize - self.text.as_ptr() as usize;
        let end_of_text = self.text.len() + 1;
        let start = self.words.get(first).map_or(end_of_text, |word| place(word));
        let end = self.words.get(end - 1).map_or(start + 1, |word| place(word) + word.len());
        let column = self.text.get(..start).map_or(start, |before| before.chars().count());
        let width = self.text.get(start..end).map_or(1, |words| words.chars().count());
        anyhow!("a wire rule is not understood:\n  {}\n  {:column$}{}\n{hint}", self.text, "", "^".repeat(width))
    }
}
