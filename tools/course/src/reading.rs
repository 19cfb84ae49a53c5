//! Reading tasks: a capture is given, and the reader answers questions about it in a small file, `answers.toml`.
//!
//! The page of the exercise (see [`crate::page`]) has a folded part "The questions, …" with this:
//!
//! ```toml
//! read = "captures/changes/03-late-receive.pcapng"        # the reader gets a copy that does not tell this name
//!
//! [[questions]]
//! name = "frame"                 # what it is called in answers.toml
//! ask = "Which packet says that nobody has posted a receive? Its frame number."
//! frame = "server sends: RNR NAK"                         # the number of any such packet or line is right
//! hint = "Look for a packet that is neither a message nor an acknowledgement."
//!
//! [[questions]]
//! name = "status"
//! ask = "With which status does the client's SEND complete?"
//! answer = "IBV_WC_SUCCESS"      # capitals do not matter, nor does the prefix IBV_WC_ or RDMA_CM_EVENT_
//! hint = "…"
//!
//! [[questions]]
//! name = "why"
//! ask = "What does the client's program notice?"
//! choices = ["a time-out", "nothing", "an error"]         # called a, b, c …
//! answer = "b"
//! hint = "…"
//! ```

use crate::page::Name;
use crate::project::Project;
use anyhow::{ensure, Context, Result};
use judge::expected::Expected;
use judge::{judge, seen};
use run::capture::{Events, Reader};
use run::file::Event;
use run::files::bytes;
use run::pcapng::{Section, Writer};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The reader's file, in the exercise's folder.
pub const ANSWERS: &str = "answers.toml";
/// The capture, beside it.
pub const RUN: &str = "run.pcapng";
/// What the lab and the device call the line that tells a program's command.
const START: &str = "start";
/// What may be left out before a name.
const PREFIXES: [&str; 3] = ["ibv_wc_", "rdma_cm_event_", "ibv_qp_attr."];

/// A capture, and what is asked about it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// What the exercise is about, in a few words.
    #[serde(skip)]
    title: String,
    /// The package of its lesson.
    #[serde(skip)]
    lesson: String,
    /// The capture, below the repository's folder.
    pub read: String,
    pub questions: Vec<Question>,
}

/// A question about a capture.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// What the answer is called.
    pub name: String,
    pub ask: String,
    /// What there is to choose from, if there is a choice.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The answer in words, or the letter of a choice.
    #[serde(default)]
    pub answer: String,
    /// The packet or line whose number is the answer.
    pub frame: Option<Expected>,
    /// What helps, if the answer is wrong.
    pub hint: String,
}

impl Question {
    fn check(&self) -> Result<()> {
        let name = &self.name;
        ensure!(
            self.frame.is_some() == self.answer.is_empty(),
            "the question `{name}` must have either a frame or an answer"
        );
        let is_choice = self.choices.is_empty() || self.letters().any(|letter| letter == self.answer);
        ensure!(is_choice, "the answer to the question `{name}` must be one of its choices a, b, c …");
        Ok(())
    }

    fn letters(&self) -> impl Iterator<Item = String> {
        ('a'..).take(self.choices.len()).map(String::from)
    }

    /// All answers that are right.
    pub fn right(&self, capture: &Events) -> Result<Vec<String>> {
        let Some(expected) = &self.frame else { return Ok(vec![self.answer.clone()]) };
        let findings = judge(capture, std::slice::from_ref(expected))?;
        let numbers: Vec<String> = findings.iter().flat_map(|finding| &finding.found).map(u64::to_string).collect();
        ensure!(!numbers.is_empty(), "the capture contains nothing that the question `{}` asks for", self.name);
        Ok(numbers)
    }
}

impl Reading {
    pub(crate) fn of_page(name: &Name, title: &str, text: &str) -> Result<Self> {
        let lesson = format!("lesson-{}", name.number());
        let reading = Self { title: title.to_owned(), lesson, ..basic_toml::from_str(text)? };
        reading.questions.iter().try_for_each(Question::check)?;
        Ok(reading)
    }

    pub fn capture(&self, project: &Project) -> Result<Vec<u8>> {
        bytes(project.root.join(&self.read))
    }

    /// The capture as the reader gets it. The name of the change that it was recorded with, and its options, would tell too much.
    pub fn nameless(&self, project: &Project) -> Result<Vec<u8>> {
        let (capture, lesson) = (self.capture(project)?, &self.lesson);
        let mut reader = Reader::new(&capture[..])?;
        let mut writer = Writer::new(Vec::new(), &Section::default())?;
        while let Some(event) = reader.event()? {
            match event {
                Event::Packet(record) => {
                    let interface = writer.interface(record.link, record.node)?;
                    let time = record.time_ns.unwrap_or_default();
                    writer.packet(interface, time, record.data, record.length, record.comment)?;
                }
                Event::Line(mut line) => {
                    // Its path holds the name.
                    line.source = None;
                    if line.program.starts_with(lesson) {
                        line.program.clone_from(lesson);
                    }
                    if line.act == START {
                        let words = line.text.split(' ').skip(1).take_while(|word| !word.starts_with("--"));
                        line.text = words.fold(lesson.clone(), |text, word| text + " " + word);
                    }
                    for (link, name) in reader.interfaces() {
                        writer.interface(link, name.as_deref())?;
                    }
                    writer.line(&line)?;
                }
            }
        }
        Ok(writer.into_inner()?)
    }

    /// The file for the answers, with the questions in it, and those that are known.
    pub fn sheet(&self, answers: &[String]) -> String {
        let mut text = format!("# {}\n# The capture: {RUN}, next to this file\n", self.title);
        for (at, question) in self.questions.iter().enumerate() {
            text += "\n";
            text.extend(question.ask.trim().lines().map(|line| format!("# {line}\n")));
            text.extend(
                question.letters().zip(&question.choices).map(|(letter, choice)| format!("#   {letter}: {choice}\n")),
            );
            text += &format!("{} = \"{}\"\n", question.name, answers.get(at).map_or("", String::as_str));
        }
        text
    }

    /// Which questions are answered wrongly by a file's text.
    pub fn wrong(&self, capture: &Events, text: &str) -> Result<Vec<&Question>> {
        let answers: BTreeMap<String, Value> = basic_toml::from_str(text)
            .context("an answer must be a line like frame = \"31\", with the quotation marks")?;
        let mut wrong = Vec::new();
        for question in &self.questions {
            let given = answers.get(&question.name).map(|answer| match answer {
                Value::String(text) => bare(text),
                number => number.to_string(),
            });
            let right = question.right(capture)?;
            // The letter of a choice, or its own words.
            let chosen = question.letters().zip(&question.choices).filter(|(letter, _)| right.contains(letter));
            let mut right = right.iter().chain(chosen.map(|(_, choice)| choice));
            if !right.any(|right| given.as_ref() == Some(&bare(right))) {
                wrong.push(question);
            }
        }
        Ok(wrong)
    }

    /// Proves a reading task: the right answers are taken, and each one that is missing or wrong is noticed.
    pub fn prove(&self, project: &Project) -> Result<()> {
        let capture = seen::read(&self.capture(project)?)?;
        let right = self.questions.iter().map(|question| Ok(question.right(&capture)?.remove(0)));
        let right: Vec<String> = right.collect::<Result<_>>()?;
        let refused = |answers: &[String]| self.wrong(&capture, &self.sheet(answers));
        ensure!(refused(&right)?.is_empty(), "the judge refuses the right answers");
        for wrong in ["", "0"] {
            let refused = refused(&vec![wrong.to_owned(); right.len()])?.len();
            ensure!(refused == right.len(), "`{wrong}` as each answer: {refused} of {} are refused", right.len());
        }
        Ok(())
    }
}

/// An answer without what does not matter: capitals, a status's number, the structure around a field.
fn bare(text: &str) -> String {
    let text = text.trim().to_lowercase();
    let text = match text.rsplit_once(" (") {
        Some((name, number)) if number.strip_suffix(')').is_some_and(is_number) => name,
        _ => &text,
    };
    PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text).to_owned()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
