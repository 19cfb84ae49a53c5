//! The run file, and the lanes while it is written.

use super::Run;
use anyhow::{Context, Result};
use run::file::Line;
use run::lanes::{print, Live};
use run::lines::{clean, Lines};
use std::env;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

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
        let programs = run.nodes.iter().map(|node| (node.program(), Default::default())).collect();
        Ok(Recorder { path, file, programs, live: Live::new(&names, run.options.quiet), trouble: None })
    }

    /// A frame that a node's device sends, and what became of it if it was not simply delivered.
    pub fn packet(&mut self, node: usize, bytes: &[u8], comment: Option<&str>) -> Result<()> {
        self.live.event(&self.file.packet(node, bytes, comment)?);
        Ok(())
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

    /// Ends the file and says how it went; false if something was wrong.
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
        self.file.flush()?;
        if let Some(copy) = &run.options.pcap {
            fs::copy(&self.path, copy).with_context(|| format!("cannot write {}", copy.display()))?;
        }
        let exits = run.nodes.iter().zip(exits).map(|(node, exit)| format!("{} {exit}", node.name)).collect::<Vec<_>>();
        let trouble = self.trouble.as_ref().map(|trouble| format!("trouble:  {trouble}\n")).unwrap_or_default();
        // As short as it can be told.
        let here = env::current_dir().unwrap_or_default();
        let file = self.path.strip_prefix(here).unwrap_or(&self.path).display();
        let (exits, packets) = (exits.join(", "), self.file.counts);
        print(&format!(
            "\nexit:     {exits}\n{trouble}packets:  {packets}\nfiles:    {file}\nnext:     wireshark {file}\n"
        ));
        Ok(self.trouble.is_none())
    }
}
