//! How a run has ended, told to a person and to a program: alike wherever the programs ran.

use crate::exit::{signal_name, Exit};
use crate::lanes::wrap;
use crate::look::Style;
use crate::recorder::Counts;
use serde_json::{json, Map, Value};
use std::env;
use std::path::PathBuf;

/// How a run went.
pub struct Ended<'a> {
    /// Each node that had a program, and how that ended; None if the run ended it, or never started it.
    pub exits: Vec<(&'a str, Option<Exit>)>,
    /// Why the run was no good although each program may have ended well.
    pub trouble: Option<&'a str>,
    /// What has crossed the wire.
    pub counts: &'a Counts,
    /// The run file.
    pub file: PathBuf,
}

impl Ended<'_> {
    /// Whether all programs ended with status 0 and by themselves, and nothing else was wrong.
    pub fn succeeded(&self) -> bool {
        self.trouble.is_none() && self.exits.iter().all(|(_, exit)| exit.is_some_and(Exit::is_good))
    }

    /// Exit statuses, packets by kind, `details`, the run file and the `logs` beside it, and what to do next.
    pub fn text(&self, details: Option<String>, logs: &[String]) -> String {
        let exit = |exit: &Option<Exit>| exit.map_or("did not end by itself".to_owned(), Exit::brief);
        let exits: Vec<String> = self.exits.iter().map(|(name, status)| format!("{name} {}", exit(status))).collect();
        let wrapped = |line: String| wrap(&line, Style::of_output().width);
        let mut lines = vec![String::new()];
        lines.extend(wrapped(format!("exit:     {}", exits.join(", "))));
        lines.extend(self.trouble.map(|trouble| format!("trouble:  {trouble}")));
        lines.extend(wrapped(format!("packets:  {}", self.counts)));
        lines.extend(self.counts.calls.told(|node| self.exits.get(node).map_or("?", |(name, _)| name)));
        lines.extend(details);
        // As short as it can be told.
        let here = env::current_dir().unwrap_or_default();
        let file = self.file.strip_prefix(here).unwrap_or(&self.file).display().to_string();
        let files: Vec<&str> = [&file].into_iter().chain(logs).map(String::as_str).collect();
        lines.extend(wrapped(format!("files:    {}", files.join(", "))));
        lines.push(format!("next:     wireshark {file}"));
        lines.extend(self.lesson().map(|commands| format!("          {commands}")));
        lines.join("\n") + "\n"
    }

    /// What else there is to do with the run of a lesson, which is where runs of its place lie.
    fn lesson(&self) -> Option<String> {
        let mut folders = self.file.parent()?.iter().rev().map(|name| name.to_string_lossy());
        let (number, _runs, place) = (folders.next()?, folders.next()?, folders.next()?);
        // With SoftiWARP the folder's name says so.
        let (number, is_siw) = number.strip_suffix("-siw").map_or((&*number, false), |number| (number, true));
        let is_lesson = number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit());
        let on = match &*place {
            "lab" if is_siw => " on=siw",
            "device" => " on=device",
            "mine-nic" => " on=mine",
            _ => "",
        };
        is_lesson.then(|| format!("make compare-{number}{on}; make play-{number}{on}; make next"))
    }

    /// The same for a program to read.
    pub fn json(&self) -> Map<String, Value> {
        let exits = self.exits.iter().map(|(name, exit)| ((*name).to_owned(), json!(exit.map(Exit::number))));
        let signals = self.exits.iter().filter_map(|(name, exit)| Some(((*name).to_owned(), exit.as_ref()?.signal()?)));
        let signals = signals.map(|(name, signal)| (name, json!(signal_name(signal))));
        let packets = self.counts.packets.iter().map(|(name, count)| ((*name).to_owned(), json!(count)));
        let members = [
            ("succeeded", json!(self.succeeded())),
            ("exit", Value::Object(exits.collect())),
            ("signal", Value::Object(signals.collect())),
            ("trouble", json!(self.trouble)),
            ("packets", Value::Object(packets.collect())),
            ("other_frames", json!(self.counts.others)),
            ("file", json!(self.file)),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
