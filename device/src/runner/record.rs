//! The run file, and the lanes while it is written: as the lab's (`lab/src/record.rs`).

use super::Run;
use anyhow::{Context, Result};
use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wire::capture::Record;
use wire::lanes::{Lanes, Style};
use wire::pcapng::{Section, Writer};
use wire::run::{Event, Line};
use wire::{Frame, LinkType};

/// Writes a run.
pub struct Recorder {
    file: PathBuf,
    capture: Writer<BufWriter<File>>,
    /// Name and program of each node, and the beginning of a line that has no end yet, for each of its two streams.
    nodes: Vec<(String, String, [Vec<u8>; 2])>,
    number: u64,
    lanes: Option<Lanes>,
    packets: Vec<(&'static str, usize)>,
    trouble: Option<String>,
}

impl Recorder {
    /// Begins the file, and replaces that of the run before.
    ///
    /// # Errors
    /// No space or no permission.
    pub fn begin(run: &Run, folder: &Path) -> Result<Recorder> {
        let file = folder.join("wire.pcapng");
        let attempt = || -> io::Result<Writer<BufWriter<File>>> {
            fs::create_dir_all(folder)?;
            let section = Section { application: Some("device"), ..Section::default() };
            Writer::without_interface(BufWriter::new(File::create(&file)?), &section)
        };
        let mut capture = attempt().with_context(|| format!("cannot write {}", file.display()))?;
        let mut nodes: Vec<(String, String, [Vec<u8>; 2])> = Vec::new();
        for node in &run.nodes {
            nodes.push((node.name.clone(), node.program().to_owned(), Default::default()));
        }
        if run.shell {
            nodes.push(("client".into(), "shell".into(), Default::default()));
        }
        for (name, ..) in &nodes {
            capture.interface(LinkType::ETHERNET, Some(name))?;
        }
        let names: Vec<&str> = nodes.iter().map(|(name, ..)| name.as_str()).collect();
        let lanes = (!run.quiet).then(|| Lanes::new(&names, style()));
        if let Some(lanes) = &lanes {
            print(&lanes.heading());
        }
        Ok(Recorder { file, capture, nodes, number: 0, lanes, packets: Vec::new(), trouble: None })
    }

    /// A frame that a node's device sends, and what became of it if it was not simply delivered.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn packet(&mut self, node: usize, bytes: &[u8], comment: Option<&str>) -> Result<()> {
        self.number += 1;
        let time_ns = now().as_nanos() as u64;
        self.capture.cut_packet(node as u32, time_ns, bytes, bytes.len(), comment)?;
        if let Frame::Roce(packet) = Frame::ethernet(bytes) {
            match self.packets.iter_mut().find(|(name, _)| *name == packet.name()) {
                Some((_, count)) => *count += 1,
                None => self.packets.push((packet.name(), 1)),
            }
        }
        let name = self.nodes.get(node).map(|(name, ..)| name.as_str());
        let (number, length, link) = (self.number, bytes.len(), LinkType::ETHERNET);
        let record = Record { number, node: name, time_ns: Some(time_ns), link, data: bytes, length, comment };
        let drawn = self.lanes.as_mut().map(|lanes| lanes.event(&Event::Packet(record)));
        print(&drawn.unwrap_or_default());
        Ok(())
    }

    /// What a program said: whole lines are recorded.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn said(&mut self, node: usize, error: bool, bytes: &[u8]) -> Result<()> {
        let Some((_, program, rests)) = self.nodes.get_mut(node) else { return Ok(()) };
        let (program, rest) = (program.clone(), &mut rests[usize::from(error)]);
        rest.extend_from_slice(bytes);
        let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let whole: Vec<u8> = rest.drain(..end).collect();
        for line in String::from_utf8_lossy(&whole).lines() {
            self.line(Line { program: program.clone(), text: clean(line), error, ..Line::default() }, node)?;
        }
        Ok(())
    }

    /// What a node's device has decided.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn decision(&mut self, node: usize, bytes: &[u8]) -> Result<()> {
        let text = clean(&String::from_utf8_lossy(bytes));
        self.line(Line { program: Line::DEVICE.into(), text, ..Line::default() }, node)
    }

    /// What the runner did to a node.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn act(&mut self, node: usize, act: &str, text: &str) -> Result<()> {
        self.line(Line { program: Line::LAB.into(), act: act.into(), text: text.into(), ..Line::default() }, node)
    }

    /// Something was wrong with the run as a whole.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn trouble(&mut self, text: &str) -> Result<()> {
        self.trouble.get_or_insert_with(|| text.to_owned());
        self.act(usize::MAX, "trouble", text)
    }

    fn line(&mut self, line: Line, node: usize) -> Result<()> {
        self.number += 1;
        let node = self.nodes.get(node).map(|(name, ..)| name.clone()).unwrap_or_default();
        let line = Line { number: self.number, time_us: now().as_micros() as u64, node, ..line };
        self.capture.line(&line)?;
        let drawn = self.lanes.as_mut().map(|lanes| lanes.event(&Event::Line(line)));
        print(&drawn.unwrap_or_default());
        Ok(())
    }

    /// Ends the file and says how it went; false if something was wrong.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self, run: &Run, exits: &[i32]) -> Result<bool> {
        for node in 0..self.nodes.len() {
            // A program's last words need not end in a newline.
            self.said(node, false, b"")?;
            for error in [false, true] {
                if !self.nodes[node].2[usize::from(error)].is_empty() {
                    self.said(node, error, b"\n")?;
                }
            }
        }
        self.line(
            Line {
                program: Line::LAB.into(),
                act: Line::END.into(),
                text: "the end of the run".into(),
                ..Line::default()
            },
            usize::MAX,
        )?;
        self.capture.flush()?;
        if let Some(copy) = &run.copy {
            fs::copy(&self.file, copy).with_context(|| format!("cannot write {}", copy.display()))?;
        }
        let exits: Vec<String> =
            run.nodes.iter().zip(exits).map(|(node, exit)| format!("{} {exit}", node.name)).collect();
        let packets: Vec<String> = self.packets.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let file = shown(&self.file);
        let mut text = format!("\nexit:     {}\n", exits.join(", "));
        if let Some(trouble) = &self.trouble {
            text += &format!("trouble:  {trouble}\n");
        }
        text += &format!("packets:  {}\n", if packets.is_empty() { "none".into() } else { packets.join(", ") });
        text += &format!("files:    {file}\nnext:     wireshark {file}\n");
        print(&text);
        Ok(self.trouble.is_none())
    }
}

fn style() -> Style {
    let out = io::stdout();
    let color = out.is_terminal() && env::var_os("NO_COLOR").is_none();
    let size = rustix::termios::tcgetwinsize(&out).ok().filter(|_| out.is_terminal());
    Style { width: size.map_or(Style::FILE.width, |size| size.ws_col.into()), color }
}

/// Prints; a reader that has gone away does not end the run.
fn print(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn now() -> std::time::Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// A path as short as it can be from here.
fn shown(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// Text without control sequences, which would tear the lanes apart.
fn clean(line: &str) -> String {
    let mut characters = line.chars();
    let mut cleaned = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => drop(characters.by_ref().find(char::is_ascii_alphabetic)),
            '\t' => cleaned.push_str("    "),
            character if character.is_control() => {}
            character => cleaned.push(character),
        }
    }
    cleaned
}
