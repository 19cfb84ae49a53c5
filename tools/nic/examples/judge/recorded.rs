//! The packets that rdma_rxe sent in the bundled captures.

use roce::link::{self, LinkType};
use roce::Packet;
use run::capture::{Error, Reader};
use run::files::{files, name};
use std::fs::File;
use std::path::Path;

/// How captures begin whose NICs are no rdma_rxe: of lesson 20, which is recorded on the device, behind a switch.
const SIMULATED: &str = "20_";

/// One of them.
pub struct Recorded {
    /// As `04_rdma_write, frame 17`.
    pub name: String,
    /// The capture's name.
    pub capture: String,
    /// It is from a run with a fault in it.
    pub is_faulty: bool,
    /// The wire has not delivered it.
    pub is_lost: bool,
    /// The wire has delivered it late, twice or damaged.
    pub is_mangled: bool,
    link: LinkType,
    frame: Vec<u8>,
}

impl Recorded {
    /// Its headers and bytes; whoever is here has been read once.
    pub fn packet(&self) -> Option<Packet<'_>> {
        Packet::new(link::datagram(self.link, &self.frame).ok()?).ok()
    }
}

/// All of them, in order: those of the lessons, then those of runs in which something was lost.
pub fn all(captures: &Path) -> Result<Vec<Recorded>, Error> {
    let mut all = Vec::new();
    for (folder, is_faulty) in [(captures.to_owned(), false), (captures.join("changes"), true)] {
        let is_one =
            |path: &Path| path.extension().is_some_and(|end| end == "pcapng") && !name(path).starts_with(SIMULATED);
        for file in files(&folder, is_one)? {
            let (mut reader, capture) = (Reader::new(File::open(&file)?)?, name(&file.with_extension("")));
            while let Some(record) = reader.next()? {
                let by_the_lab = record.comment.as_ref().filter(|comment| comment.contains("lab: "));
                let is_lost = by_the_lab.is_some_and(|comment| comment.contains("lab: dropped"));
                let recorded = Recorded {
                    name: format!("{capture}, frame {}", record.number),
                    capture: capture.clone(),
                    is_faulty,
                    is_lost,
                    is_mangled: by_the_lab.is_some() && !is_lost,
                    // The reader's crates are the project's own, this NIC's are perhaps the learner's.
                    link: LinkType(record.link.0),
                    frame: record.data.to_vec(),
                };
                all.extend(Some(recorded).filter(|recorded| recorded.packet().is_some()));
            }
        }
    }
    Ok(all)
}
