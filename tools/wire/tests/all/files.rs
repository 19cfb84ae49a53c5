//! Captures as files, what is in them, and the command that reads them.

use roce::{Frame, LinkType, Packet};
use run::capture::{Error, Reader};
use run::file::{Event, Line};
use run::pcapng::{Section, Writer};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A frame with what its file says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    pub node: Option<String>,
    pub time_ns: Option<u64>,
    pub link: LinkType,
    pub data: Vec<u8>,
    pub length: usize,
    pub comment: Option<String>,
}

impl Recorded {
    /// An Ethernet frame.
    pub fn of(data: Vec<u8>) -> Recorded {
        let (node, link, length) = (None, LinkType::ETHERNET, data.len());
        Recorded { node, time_ns: None, link, data, length, comment: None }
    }

    pub fn from(self, node: &str) -> Recorded {
        Recorded { node: Some(node.into()), ..self }
    }

    pub fn with(self, comment: Option<&str>) -> Recorded {
        Recorded { comment: comment.map(String::from), ..self }
    }
}

#[derive(Clone, Debug)]
pub enum Piece {
    Frame(Recorded),
    Line(Line),
}

impl Piece {
    fn node(&self) -> Option<&str> {
        match self {
            Piece::Frame(frame) => frame.node.as_deref(),
            Piece::Line(line) => Some(&line.node),
        }
    }
}

/// All that a file has, or the error.
pub fn read(file: &[u8]) -> Result<Vec<Piece>, Error> {
    let (mut reader, mut pieces) = (Reader::new(file)?, Vec::new());
    while let Some(event) = reader.event()? {
        pieces.push(match event {
            Event::Line(line) => Piece::Line(line),
            Event::Packet(record) => {
                assert_eq!(record.number, pieces.len() as u64 + 1);
                let [node, comment] = [record.node, record.comment].map(|text| text.map(String::from));
                let (time_ns, link, data, length) = (record.time_ns, record.link, record.data.to_vec(), record.length);
                Piece::Frame(Recorded { node, time_ns, link, data, length, comment })
            }
        });
    }
    Ok(pieces)
}

/// The frames of a file.
pub fn frames(file: &[u8]) -> Vec<Recorded> {
    let frame = |piece| match piece {
        Piece::Frame(frame) => Some(frame),
        Piece::Line(_) => None,
    };
    read(file).unwrap().into_iter().filter_map(frame).collect()
}

/// A run file of these, which describes its nodes first. What has no time comes a microsecond after the other.
pub fn written(pieces: impl IntoIterator<Item = Piece>) -> Vec<u8> {
    let pieces: Vec<Piece> = pieces.into_iter().collect();
    let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
    let nodes: BTreeSet<&str> = pieces.iter().filter_map(Piece::node).collect();
    for name in ["server", "client"].into_iter().filter(|name| nodes.contains(name)) {
        writer.interface(LinkType::ETHERNET, Some(name)).unwrap();
    }
    for (i, piece) in (0..).zip(&pieces) {
        match piece {
            Piece::Line(line) => writer.line(line).unwrap(),
            Piece::Frame(Recorded { node, time_ns, link, data, length, comment }) => {
                let interface = writer.interface(*link, node.as_deref()).unwrap();
                let time = time_ns.unwrap_or(1_700_000_000_000_000_000 + i * 1000);
                writer.packet(interface, time, data, *length, comment.as_deref()).unwrap();
            }
        }
    }
    writer.into_inner().unwrap()
}

/// A file of these Ethernet frames.
pub fn capture<F: AsRef<[u8]>>(frames: impl IntoIterator<Item = F>) -> Vec<u8> {
    written(frames.into_iter().map(|frame| Piece::Frame(Recorded::of(frame.as_ref().to_vec()))))
}

/// A RoCEv2 packet, or None for ARP.
pub fn packet(frame: &[u8]) -> Option<Packet<'_>> {
    match Frame::ethernet(frame) {
        Frame::Roce(packet) => Some(packet),
        Frame::Other(_) => None,
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The capture of a lesson: `04_rdma_write`.
pub fn bundled(name: &str) -> PathBuf {
    root().join(format!("captures/{name}.pcapng"))
}

/// The captures of all lessons.
pub fn all_bundled() -> Vec<PathBuf> {
    let files = std::fs::read_dir(root().join("captures")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "pcapng")).collect()
}

/// An empty folder for one test.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file for one test.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// What `wire` does with a file.
pub fn wire(command: &str, file: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wire")).arg(command).arg(file).args(arguments).output().unwrap()
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
