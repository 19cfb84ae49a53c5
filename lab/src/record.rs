//! The run file, written while the run goes on: `wire.pcapng` with the packets and all that was said, and each node's log as
//! plain text beside it.
//!
//! What has happened is in the files as soon as the lab waits for more, and the capture grows by whole blocks only. So it
//! can be opened whatever happens to the lab; nothing of it is kept in memory.

use crate::files;
use crate::interrupt::Interrupt;
use crate::run::Run;
use anyhow::{Context, Result};
use rustix::fs::{flock, FlockOperation};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use wire::capture::{Reader, Record};
use wire::lanes::{self, Lanes, Style};
use wire::pcapng::{Section, Writer};
use wire::run::Line;
use wire::{Frame, LinkType};

/// Writes the files of one run.
#[derive(Debug)]
pub struct Recorder {
    capture: Writer<Blocks>,
    nodes: Vec<NodeFiles>,
    /// Events so far.
    number: u64,
    started: (Instant, SystemTime),
    packets: Vec<(&'static str, usize)>,
    other_frames: usize,
    folder: PathBuf,
    lock: File,
}

/// What the recorder knows of a node.
#[derive(Debug)]
struct NodeFiles {
    name: String,
    /// Its card in the capture.
    interface: u32,
    log: BufWriter<File>,
    /// What was said on standard error alone; a file as soon as there is something.
    errors: Option<File>,
}

impl NodeFiles {
    fn say(&mut self, folder: &Path, text: &str, error: bool) -> io::Result<()> {
        writeln!(self.log, "{text}")?;
        if !error {
            return Ok(());
        }
        let file = match self.errors.take() {
            Some(file) => file,
            None => File::create(folder.join(format!("{}.err", self.name)))?,
        };
        writeln!(self.errors.insert(file), "{text}")
    }
}

/// What is left of a recorder when all is written.
pub(crate) struct Recorded {
    pub packets: Vec<(&'static str, usize)>,
    pub other_frames: usize,
    pub folder: PathBuf,
    pub lock: File,
}

impl Recorder {
    /// Begins the files of a run in `runs/NAME`, and replaces those of the run before. While another run of that name goes
    /// on, or its results are looked at, the folder is `runs/NAME-2` and so on.
    ///
    /// # Errors
    /// No space or no permission; the message names the folder.
    pub fn begin(runs: &Path, run: &Run, interrupt: &Interrupt) -> Result<Self> {
        let (folder, lock) = free_folder(runs, &run.name, interrupt)?;
        let attempt = || -> io::Result<Self> {
            let section = Section { application: Some("lab"), ..Section::default() };
            let blocks = Blocks::new(File::options().create(true).append(true).open(folder.join("wire.pcapng"))?);
            let mut capture = Writer::without_interface(blocks, &section)?;
            let mut nodes = Vec::new();
            for name in run.names() {
                let interface = capture.interface(LinkType::ETHERNET, Some(name))?;
                let log = BufWriter::new(File::create(folder.join(format!("{name}.log")))?);
                nodes.push(NodeFiles { name: name.to_owned(), interface, log, errors: None });
            }
            let (started, packets) = ((Instant::now(), SystemTime::now()), Vec::new());
            let (folder, lock) = (folder.clone(), lock.try_clone()?);
            Ok(Self { capture, nodes, number: 0, started, packets, other_frames: 0, folder, lock })
        };
        attempt().with_context(|| cannot_write(&folder))
    }

    /// Records a frame that a node has sent, and what became of it if it was not simply delivered.
    ///
    /// # Errors
    /// It cannot be written; what was written before stays good.
    pub fn packet<'a>(&'a mut self, node: usize, frame: &'a [u8], comment: Option<&'a str>) -> Result<Record<'a>> {
        self.count(frame);
        let time_ns = self.now().as_nanos() as u64;
        self.number += 1;
        let NodeFiles { interface, .. } = self.nodes[node];
        let written = self.capture.cut_packet(interface, time_ns, frame, frame.len(), comment);
        self.checked(written)?;
        Ok(Record {
            number: self.number,
            node: Some(&self.nodes[node].name),
            time_ns: Some(time_ns),
            link: LinkType::ETHERNET,
            data: frame,
            length: frame.len(),
            comment,
        })
    }

    /// Records a line that a node's program said, perhaps on standard error.
    ///
    /// # Errors
    /// As for [`Recorder::packet`].
    pub fn said(&mut self, node: usize, program: &str, text: &str, error: bool) -> Result<Line> {
        let written = self.nodes[node].say(&self.folder, text, error);
        self.checked(written)?;
        self.write(Some(node), Line { program: program.to_owned(), text: text.to_owned(), error, ..Line::default() })
    }

    /// Records what a node's kernel says, or the lab about a node (with one word for what it did). Without a node it is about
    /// the run as a whole.
    ///
    /// # Errors
    /// As for [`Recorder::packet`].
    pub fn line(&mut self, node: Option<usize>, program: &str, text: &str, act: &str) -> Result<Line> {
        let (program, text, act) = (program.to_owned(), text.to_owned(), act.to_owned());
        self.write(node, Line { program, text, act, ..Line::default() })
    }

    fn write(&mut self, node: Option<usize>, line: Line) -> Result<Line> {
        self.number += 1;
        let node = node.map(|node| self.nodes[node].name.clone()).unwrap_or_default();
        let line = Line { number: self.number, time_us: self.now().as_micros() as u64, node, ..line };
        let written = self.capture.line(&line);
        self.checked(written)?;
        // Whoever has seen a line finds it in the file.
        self.flush()?;
        Ok(line)
    }

    /// Brings all that was recorded to the files.
    ///
    /// # Errors
    /// As for [`Recorder::packet`].
    pub fn flush(&mut self) -> Result<()> {
        let mut written = self.capture.flush();
        for node in &mut self.nodes {
            written = written.and(node.log.flush());
        }
        self.checked(written)
    }

    /// Where the files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends the files, with a line that tells it to those who follow them.
    ///
    /// # Errors
    /// As for [`Recorder::packet`].
    pub(crate) fn finish(mut self) -> Result<Recorded> {
        self.line(None, Line::LAB, "the end of the run", Line::END)?;
        self.flush()?;
        let Self { packets, other_frames, folder, lock, .. } = self;
        Ok(Recorded { packets, other_frames, folder, lock })
    }

    /// Since 1970, by a clock that does not jump.
    fn now(&self) -> Duration {
        (self.started.1 + self.started.0.elapsed()).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    fn count(&mut self, frame: &[u8]) {
        let Frame::Roce(packet) = Frame::ethernet(frame) else {
            self.other_frames += 1;
            return;
        };
        match self.packets.iter_mut().find(|(name, _)| *name == packet.name()) {
            Some((_, count)) => *count += 1,
            None => self.packets.push((packet.name(), 1)),
        }
    }

    fn checked(&self, written: io::Result<()>) -> Result<()> {
        written.with_context(|| cannot_write(&self.folder))
    }
}

/// Draws the lanes of a finished run file beside it, and makes the copy that the run asks for.
///
/// # Errors
/// No space or no permission.
pub fn write_views(folder: &Path, run: &Run) -> Result<()> {
    let capture = folder.join("wire.pcapng");
    let attempt = || -> Result<()> {
        let mut reader = Reader::new(File::open(&capture)?)?;
        let mut out = BufWriter::new(File::create(folder.join("timeline.txt"))?);
        Ok(lanes::write(&mut reader, Lanes::new(&run.names(), Style::FILE), &mut out)?)
    };
    attempt().with_context(|| cannot_write(folder))?;
    if let Some(copy) = &run.pcap {
        fs::copy(&capture, copy).with_context(|| format!("cannot write {}", copy.display()))?;
    }
    Ok(())
}

fn cannot_write(folder: &Path) -> String {
    format!("cannot write the results to {} (is the disk full?); what was written before is good", folder.display())
}

/// A new folder for a run of this name, locked against other runs until the file is closed.
fn free_folder(runs: &Path, name: &str, interrupt: &Interrupt) -> Result<(PathBuf, File)> {
    let _lock = files::lock(runs, "choosing a folder", interrupt)?;
    let names = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}-{number}")));
    for folder in names.map(|name| runs.join(name)) {
        let in_use = File::open(&folder).is_ok_and(|old| flock(old, FlockOperation::NonBlockingLockExclusive).is_err());
        if in_use {
            continue;
        }
        let attempt = || -> io::Result<File> {
            if folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
            fs::create_dir(&folder)?;
            let lock = File::open(&folder)?;
            // A file system without locks has no second run at a time.
            let _ = flock(&lock, FlockOperation::NonBlockingLockShared);
            Ok(lock)
        };
        let lock = attempt().with_context(|| cannot_write(&folder))?;
        return Ok((folder, lock));
    }
    unreachable!("there is no end of names")
}

/// A file that gets whole blocks only: each is written to this in pieces.
#[derive(Debug)]
struct Blocks {
    file: File,
    waiting: Vec<u8>,
    /// Length of the file up to the last whole block.
    good: u64,
}

impl Blocks {
    fn new(file: File) -> Self {
        Self { file, waiting: Vec::new(), good: 0 }
    }
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.file.write_all(&self.waiting);
        match result {
            Ok(()) => self.good += self.waiting.len() as u64,
            // A part may have found room. If it cannot be taken away, readers say where the good part ends.
            Err(_) => drop(self.file.set_len(self.good)),
        }
        self.waiting.clear();
        result
    }
}
