//! The run file, and the lanes while it is written.

use super::{Guest, Run};
use anyhow::{Context, Result};
use run::capture::Reader;
use run::ended::Ended;
use run::file::Line;
use run::lanes::{print, Live};
use run::lines::{clean, Lines};
use run::plot;
use serde_json::Value;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Who sends what comes from no node of the run.
const OUTSIDE: &str = "outside";

/// Who sends pause frames.
const SWITCH: &str = "switch";

pub struct Recorder {
    path: PathBuf,
    file: run::recorder::Recorder<BufWriter<File>>,
    /// The program of each node, and the beginning of a line that has no end yet, for each of its two streams.
    programs: Vec<(String, [Lines; 2])>,
    live: Live,
    trouble: Option<String>,
}

impl Recorder {
    /// Begins the file, and replaces that of the run before.
    pub fn begin(run: &Run, folder: &Path) -> Result<Recorder> {
        let path = folder.join("wire.pcapng");
        let names: Vec<&str> = run.nodes.iter().map(|node| node.name.as_str()).collect();
        let created = fs::create_dir_all(folder).and_then(|()| File::create(&path));
        let begun = created.and_then(|file| run::recorder::Recorder::begin(BufWriter::new(file), "device", &names));
        let file = begun.with_context(|| format!("cannot write {}", path.display()))?;
        let is_silent = run.options.quiet || run.options.json || run.guest == Guest::Only;
        let programs = run.nodes.iter().map(|node| (node.program(), Default::default())).collect();
        let live = Live::new(&names, is_silent, run.story.clone());
        Ok(Recorder { path, file, programs, live, trouble: None })
    }

    /// A frame that a node's device sends, and what became of it if it was not simply delivered.
    pub fn packet(&mut self, node: usize, bytes: &[u8], comment: Option<&str>) -> Result<()> {
        self.live.event(&self.file.packet(node, bytes, comment)?);
        Ok(())
    }

    /// A frame of a device that is not in this run. These have an interface of their own.
    pub fn outside(&mut self, frame: &[u8]) -> Result<()> {
        let outside = self.file.node(OUTSIDE)?;
        self.packet(outside, frame, None)
    }

    /// A frame that the switch itself sends.
    pub fn of_switch(&mut self, frame: &[u8]) -> Result<()> {
        let switch = self.file.node(SWITCH)?;
        self.packet(switch, frame, None)
    }

    /// It is so long after the begin; without this it is as long as it is.
    pub fn set_time(&mut self, time: Duration) {
        self.file.time = Some(time);
    }

    /// What a program said: whole lines are recorded.
    pub fn said(&mut self, node: usize, error: bool, bytes: &[u8]) -> Result<()> {
        let Some((program, streams)) = self.programs.get_mut(node) else { return Ok(()) };
        let program = program.clone();
        let lines = streams[usize::from(error)].push(bytes);
        lines.iter().try_for_each(|line| self.line(Some(node), Line::of_program(&program, clean(line), error)))
    }

    /// What a node's device has decided.
    pub fn decision(&mut self, node: usize, bytes: &[u8]) -> Result<()> {
        self.line(Some(node), Line::of_program(Line::DEVICE, clean(bytes), false))
    }

    /// What the runner did to a node, or to the run as a whole.
    pub fn act(&mut self, node: Option<usize>, act: &str, text: &str) -> Result<()> {
        self.line(node, Line::of_lab(act, text))
    }

    /// Something was wrong with the run as a whole.
    pub fn trouble(&mut self, text: &str) -> Result<()> {
        self.trouble.get_or_insert_with(|| text.to_owned());
        self.act(None, "trouble", text)
    }

    fn line(&mut self, node: Option<usize>, line: Line) -> Result<()> {
        self.live.event(&self.file.line(node, line)?);
        Ok(())
    }

    /// Ends the file and says how it went; false if something was wrong beside the exit statuses.
    pub fn finish(mut self, run: &Run, exits: &[i32]) -> Result<bool> {
        // A program's last words need not end in a newline.
        for (node, error) in (0..self.programs.len()).flat_map(|node| [(node, false), (node, true)]) {
            let (program, streams) = &mut self.programs[node];
            if let Some(text) = streams[usize::from(error)].take_rest() {
                let line = Line::of_program(program, text, error);
                self.line(Some(node), line)?;
            }
        }
        self.act(None, Line::END, "the end of the run")?;
        self.live.end();
        self.file.flush()?;
        if let Some(copy) = &run.options.pcap {
            fs::copy(&self.path, copy).with_context(|| format!("cannot write {}", copy.display()))?;
        }
        let exits = run.nodes.iter().zip(exits).map(|(node, exit)| (node.name.as_str(), Some(*exit))).collect();
        let ended = Ended { exits, trouble: self.trouble.as_deref(), counts: &self.file.counts, file: self.path };
        if run.options.json {
            // One line, as what a program that has the terminal said stands before it.
            print(&format!("{}\n", Value::Object(ended.json())));
        } else if run.guest != Guest::Only {
            // What a switch was like shows over time.
            if self.file.time.is_some() {
                print(&over_time(&ended.file)?);
            }
            print(&ended.text(None, &[]));
        }
        Ok(self.trouble.is_none())
    }
}

/// The plot of a run, with an empty line before it; nothing if nothing has happened.
fn over_time(file: &Path) -> Result<String> {
    let (seen, _) = plot::read(&mut Reader::new(File::open(file).context("the run file cannot be read")?)?);
    Ok(if seen.is_empty() { String::new() } else { format!("\n{}", seen.text()) })
}
