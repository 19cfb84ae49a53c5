//! The run file, written while the run goes on: `wire.pcapng` with the packets and all that was said, and each node's log as
//! plain text beside it. Whoever watches the run is told what is in it.
//!
//! What has happened is in the files as soon as the lab waits for more, and the capture grows by whole blocks only. So it
//! can be opened whatever happens to the lab; nothing of it is kept in memory.

use crate::files;
use crate::interrupt::Interrupt;
use crate::run::Run;
use crate::terminal::Terminal;
use anyhow::{Context, Result};
use run::blocks::Blocks;
use run::file::{Event, Line};
use run::lanes::Live;
use run::recorder::Counts;
use run::sighting::Sighting;
use run::wire::Scribe;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub struct Recorder<'s> {
    capture: run::recorder::Recorder<Blocks>,
    /// The nodes' logs.
    logs: Vec<File>,
    folder: PathBuf,
    lock: File,
    live: Live<'s>,
    /// The terminal of the client's program, if that is a shell.
    pub terminal: Option<Terminal>,
}

/// What a run leaves behind.
pub struct Recorded {
    pub folder: PathBuf,
    /// Held as long as the folder is in use.
    pub lock: File,
    /// What has crossed the wire.
    pub counts: Counts,
    /// What has made the run no good.
    pub trouble: Option<String>,
}

impl<'s> Recorder<'s> {
    /// Begins the files of a run in `runs/NAME`, and replaces those of the run before. While another run of that name goes
    /// on, or its results are looked at, the folder is `runs/NAME-2` and so on.
    pub fn begin(runs: &Path, run: &'s Run, interrupt: &Interrupt, terminal: Option<Terminal>) -> Result<Self> {
        let (folder, lock) = free_folder(runs, &run.name, interrupt)?;
        let names = run.names();
        let live = Live::new(&names, run.options.json || terminal.is_some(), run.story.as_ref());
        let live = if terminal.is_some() { live.unnoticed() } else { live };
        let attempt = || -> io::Result<Self> {
            let file = File::options().create(true).append(true).open(folder.join("wire.pcapng"))?;
            let capture = run::recorder::Recorder::begin(Blocks::new(file), "lab", &names)?;
            let log = |name: &&str| File::create(folder.join(format!("{name}.log")));
            let logs = names.iter().map(log).collect::<io::Result<_>>()?;
            Ok(Self { capture, logs, folder: folder.clone(), lock, live, terminal })
        };
        attempt().with_context(|| cannot_write(&folder))
    }

    /// Records a line that a node's program or kernel said.
    pub fn said(&mut self, node: usize, program: &str, text: &str, error: bool) -> Result<()> {
        if program != Line::KERNEL {
            self.log(node, text, error).with_context(|| cannot_write(&self.folder))?;
        }
        self.line(Some(node), Line::of_program(program, text.to_owned(), error))
    }

    /// Tells what is waited for, if nothing was shown for a while.
    pub fn waits(&mut self, what: impl FnOnce() -> String) {
        self.live.waits(what);
    }

    /// Adds a line to a node's log, and to the one of its errors, which is a file as soon as there is something.
    fn log(&mut self, node: usize, text: &str, error: bool) -> io::Result<()> {
        let text = format!("{text}\n");
        self.logs[node].write_all(text.as_bytes())?;
        if !error {
            return Ok(());
        }
        let errors = self.folder.join(format!("{}.err", self.capture.nodes[node]));
        File::options().create(true).append(true).open(errors)?.write_all(text.as_bytes())
    }

    /// Brings all that was recorded to the file.
    pub fn flush(&mut self) -> Result<()> {
        self.capture.flush().with_context(|| cannot_write(&self.folder))
    }

    /// Ends the files, with a line that tells it to those who follow them.
    pub fn finish(mut self) -> Result<Recorded> {
        self.act(None, Line::END, "the end of the run")?;
        self.live.end();
        let Self { folder, lock, capture, .. } = self;
        Ok(Recorded { folder, lock, counts: capture.counts, trouble: capture.trouble })
    }
}

impl Scribe for Recorder<'_> {
    fn time_ns(&self) -> Option<u64> {
        Some(self.capture.time_ns())
    }

    fn packet(&mut self, node: usize, sighting: Sighting<'_>, comment: Option<&str>) -> Result<()> {
        let event = self.capture.packet(node, sighting, comment).with_context(|| cannot_write(&self.folder))?;
        tell(&mut self.live, &mut self.terminal, &event);
        Ok(())
    }

    fn line(&mut self, node: Option<usize>, line: Line) -> Result<()> {
        let event = self.capture.line(node, line).with_context(|| cannot_write(&self.folder))?;
        // Whoever has seen a line finds it in the file.
        self.flush()?;
        tell(&mut self.live, &mut self.terminal, &event);
        Ok(())
    }

    fn other(&mut self, name: &str) -> Result<usize> {
        self.capture.node(name).with_context(|| cannot_write(&self.folder))
    }

    fn first_trouble(&mut self) -> &mut Option<String> {
        &mut self.capture.trouble
    }
}

fn tell(live: &mut Live<'_>, terminal: &mut Option<Terminal>, event: &Event<'_>) {
    live.event(event);
    if let Some(terminal) = terminal {
        terminal.insert(event);
    }
}

fn cannot_write(folder: &Path) -> String {
    format!("cannot write the results to {} (is the disk full?). What was written before is usable", folder.display())
}

/// A new folder for a run of this name, locked against other runs until the file is closed.
fn free_folder(runs: &Path, name: &str, interrupt: &Interrupt) -> Result<(PathBuf, File)> {
    let _lock = files::lock(runs, files::CHANGE, "choosing a folder", interrupt)?;
    let renew = |folder: &Path| {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir(folder)
    };
    run::files::free_folder(runs, name, renew).with_context(|| cannot_write(&runs.join(name)))
}
