//! `make screenshots`: Wireshark itself, with the bundled profile, shows the key packets of the lessons.
//!
//! Wireshark runs on a screen that exists only in memory, with a home of its own, and its keys are pressed by xdotool.
//! Where a field is in its tree is asked of tshark. Look at every picture before you commit it.

mod screen;

use crate::docs::pictures;
use crate::output;
use anyhow::{Context, Result};
use screen::Screen;
use std::path::Path;

/// A packet, and what of it is shown.
struct Picture {
    /// The file, without `.png`.
    name: &'static str,
    /// The capture, without `.pcapng`.
    capture: &'static str,
    /// A display filter: the packet is the first that it finds.
    packet: &'static str,
    /// The line of the tree at the top, by how it begins.
    top: &'static str,
    /// The line of the tree that is selected, and whose bytes are marked.
    field: &'static str,
}

impl Picture {
    /// Whether the list above the tree has the log lines, too.
    fn shows_lines(&self) -> bool {
        self.name.ends_with("_run")
    }
}

const fn picture(
    name: &'static str,
    capture: &'static str,
    packet: &'static str,
    top: &'static str,
    field: &'static str,
) -> Picture {
    Picture { name, capture, packet, top, field }
}

const PICTURES: [Picture; 17] = [
    // All of a run: its log lines, too.
    picture("04_run", WRITE, "infiniband.bth.opcode == 10", "InfiniBand", "RETH"),
    picture("01_req", LISTEN, "infiniband.mad.attributeid == 0x10", "CM ConnectRequest", "Destination Port"),
    picture("01_rej", LISTEN, "infiniband.mad.attributeid == 0x12", "CM ConnectReject", "Reason"),
    picture("02_rep", RESOURCES, "infiniband.mad.attributeid == 0x13", "CM ConnectReply", "Local QPN"),
    picture("02_req_qpn", RESOURCES, "infiniband.mad.attributeid == 0x10", "CM ConnectRequest", "Local QPN"),
    picture("02_dreq", RESOURCES, "infiniband.mad.attributeid == 0x15", "CM DisconnectRequest", "Remote QPN"),
    picture("03_send", METADATA, "infiniband.bth.opcode == 4", "InfiniBand", "Data"),
    picture("03_private_data", PRIVATE, "infiniband.mad.attributeid == 0x13", "CM ConnectReply", "PrivateData"),
    picture("04_write_reth", WRITE, "infiniband.bth.opcode == 10", "InfiniBand", "RETH"),
    picture("04_write_ack", WRITE, "infiniband.aeth.msn == 2", "InfiniBand", "AETH"),
    picture("04_write_first", LONG_WRITE, "infiniband.bth.opcode == 6", "InfiniBand", "DMA Length"),
    picture("04_write_last", LONG_WRITE, "infiniband.bth.opcode == 8", "InfiniBand", "Acknowledge Request"),
    picture("05_read_request", READ, "infiniband.bth.opcode == 12", "InfiniBand", "RETH"),
    picture("05_read_response", READ, "infiniband.bth.opcode == 16", "InfiniBand", "AETH"),
    picture("06_done", STATES, "infiniband.bth.opcode == 4 && frame contains \"message from\"", "InfiniBand", "Data"),
    picture("07_dreq", FLUSH, "infiniband.mad.attributeid == 0x15", "CM DisconnectRequest", "Remote QPN"),
    picture("07_ack_of_done", FLUSH, "infiniband.aeth.msn == 3", "InfiniBand", "AETH"),
];

const LISTEN: &str = "01_cm_listen";
const RESOURCES: &str = "02_resources";
const METADATA: &str = "03_metadata_exchange";
const PRIVATE: &str = "03_metadata_exchange-private-data";
const WRITE: &str = "04_rdma_write";
const LONG_WRITE: &str = "04_rdma_write-multi-packet";
const READ: &str = "05_rdma_read";
const STATES: &str = "06_send_recv_state_machine";
const FLUSH: &str = "07_disconnect_flush";

/// Takes the pictures that are missing or show an earlier capture, and notes which captures they show. To have one taken
/// anew, delete it.
///
/// # Errors
/// A program is missing, or Wireshark does not show what it should.
pub fn take(root: &Path) -> Result<()> {
    let mut wanted = Vec::new();
    for (picture, shown) in PICTURES.iter().zip(shown()) {
        if pictures::is_stale(root, shown)? {
            wanted.push(picture);
        }
    }
    println!("{} of {} pictures are to be taken", wanted.len(), PICTURES.len());
    if !wanted.is_empty() {
        let screen = Screen::open(&root.join("captures/wireshark-profile"))?;
        for picture in wanted {
            let capture = root.join(format!("captures/{}.pcapng", picture.capture));
            let file = root.join(format!("docs/images/{}.png", picture.name));
            let taken = place(&screen, picture, &capture)
                .and_then(|place| screen.picture(&capture, picture.packet, &place, &file));
            taken.with_context(|| picture.name.to_string())?;
            println!("docs/images/{}.png", picture.name);
        }
    }
    pictures::record(root, &shown())
}

/// All pictures, each with the capture that it shows.
pub fn shown() -> Vec<(&'static str, &'static str)> {
    PICTURES.iter().map(|picture| (picture.name, picture.capture)).collect()
}

/// Where things are in Wireshark's window.
struct Place {
    /// The list above the tree: a display filter, and how many lines it has.
    filter: String,
    rows: usize,
    /// Its columns Info and Step, in pixels.
    info: usize,
    step: usize,
    /// Lines of the tree from 0, when all below the line `InfiniBand` is open.
    infiniband: usize,
    top: usize,
    field: usize,
    /// How many lines there are.
    lines: usize,
}

fn place(screen: &Screen, picture: &Picture, capture: &Path) -> Result<Place> {
    let tshark =
        |options: &[&str]| output(screen.command("tshark").args(["-C", "rdma", "-r"]).arg(capture).args(options));
    let text = tshark(&["-Y", picture.packet, "-O", "infiniband"])?;
    // The first packet found, to the empty line below it.
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let frame = lines.iter().find_map(|line| line.strip_prefix("Frame ")?.split(':').next()?.parse::<u64>().ok());
    let frame = frame.with_context(|| format!("{} has no packet {}", picture.capture, picture.packet))?;
    let find = |from: usize, start: &str| {
        // Bits come before the name: `1... .... = Acknowledge Request: True`.
        let name = |line: &str| line.split_once(" = ").map_or(line, |(_, name)| name).starts_with(start);
        let found = lines.iter().skip(from).position(|line| name(line));
        found.map(|at| at + from).with_context(|| format!("the packet's tree has no line `{start}`"))
    };
    let infiniband = find(0, "InfiniBand")?;
    let top = find(infiniband, picture.top)?;
    let field = find(top, picture.field)?;
    let (filter, rows, info, step) = if picture.shows_lines() {
        // The packet is in the middle of what happens around it.
        (format!("frame.number in {{{}..{}}}", frame.saturating_sub(15), frame + 11), 27, 678, 320)
    } else {
        ("infiniband".into(), tshark(&["-Y", "infiniband"])?.lines().count(), 238, 391)
    };
    Ok(Place { filter, rows, info, step, infiniband, top, field, lines: lines.len() })
}
