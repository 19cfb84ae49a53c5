//! The run file, and the lanes while it is written.

use super::{Guest, Run};
use anyhow::{Context, Result};
use run::blocks::Blocks;
use run::ended::Ended;
use run::exit::Exit;
use run::file::Line;
use run::files;
use run::lanes::{print, Live};
use run::lines::{clean, Lines};
use run::plot::Plotted;
use run::sighting::Sighting;
use run::story::Story;
use run::timing::Timing;
use run::wire::Scribe;
use serde_json::Value;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So many events are written at once at most.
const MANY: u64 = 256;

pub struct Recorder<'s> {
    path: PathBuf,
    /// Says that the folder is in use, as long as it is open.
    _folder: File,
    file: run::recorder::Recorder<Blocks>,
    /// The program of each node, and the beginning of a line that has no end yet, for each of its two streams.
    programs: Vec<(String, [Lines; 2])>,
    live: Live<'s>,
    /// What a switch was like over time, if there is one and somebody will see it.
    plot: Option<Plotted>,
    /// The number of the last event that is in the file for sure.
    written: u64,
    is_full: bool,
}

impl<'s> Recorder<'s> {
    /// Begins the file, `NAME/wire.pcapng` in the folder of all runs, and replaces that of the run before. While another run of that name
    /// goes on it is `NAME-2/wire.pcapng`, and so on.
    pub fn begin(run: &Run, story: Option<&'s Story>, runs: &Path) -> Result<Recorder<'s>> {
        let taken = files::free_folder(runs, &run.name, |folder| fs::create_dir_all(folder));
        let (folder, held) = taken.with_context(|| format!("cannot make a folder in {}", runs.display()))?;
        let path = folder.join("wire.pcapng");
        let names: Vec<&str> = run.nodes.iter().map(|node| node.name.as_str()).collect();
        let begun =
            File::create(&path).and_then(|file| run::recorder::Recorder::begin(Blocks::new(file), "device", &names));
        let file = begun.with_context(|| format!("cannot write {}", path.display()))?;
        let is_silent = run.options.quiet || run.options.json || run.guest == Guest::Only;
        let programs = run.nodes.iter().map(|node| (node.program(), Default::default())).collect();
        let live = Live::new(&names, is_silent, story);
        let live = if run.options.quiet || run.guest != Guest::None { live.unnoticed() } else { live };
        let shows_plot = !run.options.json && run.guest != Guest::Only;
        let plot = run.wire.switch().filter(|_| shows_plot).map(|_| Plotted::default());
        Ok(Recorder { path, _folder: held, file, programs, live, plot, written: 0, is_full: false })
    }

    /// Brings what has happened to the file. That is done whenever we would wait: then all of it is there, whatever happens to us.
    pub fn flush(&mut self) {
        match self.file.flush() {
            Ok(()) => self.written = self.file.number(),
            Err(error) => self.full(&error),
        }
    }

    /// The file ends here, at the end of a block. The programs go on: how they end is still told.
    fn full(&mut self, error: &io::Error) {
        let text = format!(
            "cannot write {}: {error}. What happened before is in the file, and it opens in Wireshark; make room on that disk and \
             run it again to have the rest",
            self.path.display()
        );
        self.is_full = true;
        let last = [Line::of_lab(Line::FULL, &text), Line::of_lab(Line::END, "the end of the run")];
        let _ = last.into_iter().try_for_each(|line| self.file.line(None, line).map(drop));
        let _ = self.file.flush();
        self.file.out().give_up();
        self.file.trouble.get_or_insert(text);
    }

    /// Tells what is waited for, if nothing was shown for a while.
    pub fn waits(&mut self, what: impl FnOnce() -> String) {
        self.live.waits(what);
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
        self.line(Some(node), Line::of_device(&String::from_utf8_lossy(bytes)))
    }

    /// Where much happens, we never wait.
    fn flush_in_time(&mut self) {
        if self.file.number() - self.written >= MANY {
            self.flush();
        }
    }

    /// Whether the file could not be written to its end.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Ends the file and says how it went; false if something was wrong beside the exit statuses.
    pub fn finish(&mut self, run: &Run, exits: &[Exit], mut timing: Timing) -> Result<bool> {
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
        self.flush();
        if let Some(copy) = &run.options.pcap {
            if let Err(error) = fs::copy(&self.path, copy) {
                self.is_full = true;
                self.file.trouble.get_or_insert_with(|| format!("cannot write {}: {error}", copy.display()));
            }
        }
        let exits = run.nodes.iter().zip(exits).map(|(node, exit)| (node.name.as_str(), Some(*exit))).collect();
        let ended =
            Ended { exits, trouble: self.file.trouble.as_deref(), counts: &self.file.counts, file: self.path.clone() };
        if run.options.json {
            // One line, as what a program that has the terminal said comes before it.
            print(&format!("{}\n", Value::Object(ended.json())));
        } else if run.guest != Guest::Only {
            if let Some(plot) = self.plot.take().filter(|plot| !plot.is_empty()) {
                print(&format!("\n{}", plot.text()));
            }
            timing.end("the run file is ended");
            print(&ended.text(run.options.timing.then(|| timing.to_string()), &[]));
        }
        Ok(self.file.trouble.is_none())
    }
}

impl Scribe for Recorder<'_> {
    fn time_ns(&self) -> Option<u64> {
        Some(self.file.time_ns())
    }

    fn packet(&mut self, node: usize, sighting: Sighting<'_>, comment: Option<&str>) -> Result<()> {
        let event = self.file.packet(node, sighting, comment)?;
        self.live.event(&event);
        self.plot.iter_mut().for_each(|plot| plot.event(&event));
        self.flush_in_time();
        Ok(())
    }

    fn line(&mut self, node: Option<usize>, line: Line) -> Result<()> {
        let event = self.file.line(node, line)?;
        self.live.event(&event);
        self.plot.iter_mut().for_each(|plot| plot.event(&event));
        self.flush_in_time();
        Ok(())
    }

    fn other(&mut self, name: &str) -> Result<usize> {
        Ok(self.file.node(name)?)
    }

    fn first_trouble(&mut self) -> &mut Option<String> {
        &mut self.file.trouble
    }
}
