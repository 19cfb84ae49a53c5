//! The run file, and the lanes while it is written: as the lab's (`lab/src/record.rs`).

use super::Run;
use anyhow::{Context, Result};
use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use wire::lanes::{Lanes, Style};
use wire::lines::{clean, Lines};
use wire::run::{Event, Line};
use wire::Frame;

pub struct Recorder {
    path: PathBuf,
    file: wire::recorder::Recorder<BufWriter<File>>,
    /// The program of each node, and the beginning of a line that has no end yet, for each of its two streams.
    programs: Vec<(String, [Lines; 2])>,
    lanes: Option<Lanes>,
    packets: Vec<(&'static str, usize)>,
    trouble: Option<String>,
}

impl Recorder {
    /// Begins the file, and replaces that of the run before.
    pub fn begin(run: &Run, folder: &Path) -> Result<Recorder> {
        let path = folder.join("wire.pcapng");
        let mut nodes: Vec<_> = run.nodes.iter().map(|node| (node.name.as_str(), node.program())).collect();
        nodes.extend(run.shell.then_some(("client", "shell")));
        let names: Vec<&str> = nodes.iter().map(|(name, _)| *name).collect();
        let created = fs::create_dir_all(folder).and_then(|()| File::create(&path));
        let begun = created.and_then(|file| wire::recorder::Recorder::begin(BufWriter::new(file), "device", &names));
        let file = begun.with_context(|| format!("cannot write {}", path.display()))?;
        let lanes = (!run.quiet).then(|| Lanes::new(&names, style()));
        if let Some(lanes) = &lanes {
            print(&lanes.heading());
        }
        let programs = nodes.iter().map(|(_, program)| ((*program).to_owned(), Default::default())).collect();
        Ok(Recorder { path, file, programs, lanes, packets: Vec::new(), trouble: None })
    }

    /// A frame that a node's device sends, and what became of it if it was not simply delivered.
    pub fn packet(&mut self, node: usize, bytes: &[u8], comment: Option<&str>) -> Result<()> {
        let event = self.file.packet(node, bytes, comment)?;
        draw(&mut self.lanes, &event);
        if let Frame::Roce(packet) = Frame::ethernet(bytes) {
            match self.packets.iter_mut().find(|(name, _)| *name == packet.name()) {
                Some((_, count)) => *count += 1,
                None => self.packets.push((packet.name(), 1)),
            }
        }
        Ok(())
    }

    /// What a program said: whole lines are recorded.
    pub fn said(&mut self, node: usize, error: bool, bytes: &[u8]) -> Result<()> {
        let Some((program, streams)) = self.programs.get_mut(node) else { return Ok(()) };
        let program = program.clone();
        for line in streams[usize::from(error)].push(bytes) {
            let line = Line { program: program.clone(), text: clean(&line), error, ..Line::default() };
            self.line(line, Some(node))?;
        }
        Ok(())
    }

    /// What a node's device has decided.
    pub fn decision(&mut self, node: usize, bytes: &[u8]) -> Result<()> {
        self.line(Line { program: Line::DEVICE.into(), text: clean(bytes), ..Line::default() }, Some(node))
    }

    /// What the runner did to a node.
    pub fn act(&mut self, node: usize, act: &str, text: &str) -> Result<()> {
        self.line(Line { program: Line::LAB.into(), act: act.into(), text: text.into(), ..Line::default() }, Some(node))
    }

    /// Something was wrong with the run as a whole.
    pub fn trouble(&mut self, text: &str) -> Result<()> {
        self.trouble.get_or_insert_with(|| text.to_owned());
        self.act(usize::MAX, "trouble", text)
    }

    fn line(&mut self, line: Line, node: Option<usize>) -> Result<()> {
        let event = self.file.line(node, line)?;
        draw(&mut self.lanes, &event);
        Ok(())
    }

    /// Ends the file and says how it went; false if something was wrong.
    pub fn finish(mut self, run: &Run, exits: &[i32]) -> Result<bool> {
        for (node, error) in (0..self.programs.len()).flat_map(|node| [(node, false), (node, true)]) {
            // A program's last words need not end in a newline.
            let (program, streams) = &mut self.programs[node];
            if let Some(text) = streams[usize::from(error)].take_rest() {
                let line = Line { program: program.clone(), text, error, ..Line::default() };
                self.line(line, Some(node))?;
            }
        }
        let (program, act, text) = (Line::LAB.into(), Line::END.into(), "the end of the run".into());
        self.line(Line { program, act, text, ..Line::default() }, None)?;
        self.file.flush()?;
        if let Some(copy) = &run.copy {
            fs::copy(&self.path, copy).with_context(|| format!("cannot write {}", copy.display()))?;
        }
        let exits: Vec<String> =
            run.nodes.iter().zip(exits).map(|(node, exit)| format!("{} {exit}", node.name)).collect();
        let packets: Vec<String> = self.packets.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let file = shown(&self.path);
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

fn draw(lanes: &mut Option<Lanes>, event: &Event<'_>) {
    print(&lanes.as_mut().map(|lanes| lanes.event(event)).unwrap_or_default());
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

/// A path as short as it can be from here.
fn shown(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}
