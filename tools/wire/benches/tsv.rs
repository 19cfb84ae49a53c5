//! `wire show --format tsv` against `tshark -T fields` with the same columns.
//!
//! Reads the captures of the lessons (or those in `WIRE_CAPTURES`, separated by `:`), repeats their packets
//! up to a million (or `WIRE_PACKETS`), and prints time and memory of both programs and the ratio of times.

#![allow(clippy::unwrap_used)] // A benchmark may end with a panic.

use roce::{Frame, LinkType};
use run::capture::Reader;
use run::pcapng::{Section, Writer};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TSHARK_COLUMNS: &str = "frame.number ip.src ip.dst infiniband.bth.opcode infiniband.bth.destqp \
    infiniband.bth.psn infiniband.bth.a infiniband.bth.padcnt infiniband.reth.va infiniband.reth.r_key \
    infiniband.reth.dmalen infiniband.aeth.syndrome infiniband.aeth.msn infiniband.immdt \
    infiniband.mad.attributeid infiniband.cm.req infiniband.cm.rep infiniband.cm.rep.remotecommid data.len \
    infiniband.invariant.crc frame.time_epoch infiniband.deth.srcqp infiniband.cm.req.serviceid";

fn main() {
    let packets = std::env::var("WIRE_PACKETS").map_or(1_000_000, |text| text.parse().unwrap());
    let capture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench.pcapng");
    let size = repeat(&sources(), packets, &capture);
    println!("{packets} packets, {} MB", size / 1_000_000);

    let mut wire = Command::new(env!("CARGO_BIN_EXE_wire"));
    wire.args(["show", "--format", "tsv"]).arg(&capture);
    // The first run also waits for the disk, so the best of three counts; tshark is not slowed by the disk.
    let ours = (0..3).map(|_| measure(&mut wire)).min().unwrap();
    ours.print("wire");

    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-Y", "infiniband", "-T", "fields", "-r"]).arg(&capture);
    tshark.args(TSHARK_COLUMNS.split_whitespace().flat_map(|column| ["-e", column]));
    let theirs = measure(&mut tshark);
    theirs.print("tshark");
    let ratio = |theirs: Duration, ours: Duration| theirs.as_secs_f64() / ours.as_secs_f64();
    let (processor, clock) = (ratio(theirs.processor, ours.processor), ratio(theirs.clock, ours.clock));
    println!("ratio   {processor:8.1}   by the clock {clock:8.1}");
    std::fs::remove_file(&capture).unwrap();
}

fn sources() -> Vec<PathBuf> {
    if let Ok(list) = std::env::var("WIRE_CAPTURES") {
        return list.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    }
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let entries = std::fs::read_dir(&bundled).expect("captures/ is there").flatten();
    let files = entries.map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "pcapng")).collect()
}

/// Writes the RoCEv2 packets of `sources` over and over; returns the size of the file in bytes.
fn repeat(sources: &[PathBuf], packets: usize, target: &Path) -> u64 {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for path in sources {
        let mut reader = Reader::new(std::fs::File::open(path).unwrap()).unwrap();
        while let Some(record) = reader.next().unwrap() {
            if matches!(Frame::decode(record.link, record.data), Frame::Roce(_)) {
                frames.push(record.data.to_vec());
            }
        }
    }
    assert!(!frames.is_empty(), "no RoCEv2 packets in {sources:?}");
    let file = std::io::BufWriter::new(std::fs::File::create(target).unwrap());
    let mut writer = Writer::new(file, LinkType::ETHERNET, &Section::default()).unwrap();
    for (i, frame) in frames.iter().cycle().take(packets).enumerate() {
        writer.packet(1_700_000_000_000_000_000 + i as u64 * 1000, frame, None).unwrap();
    }
    writer.into_inner().unwrap().get_ref().sync_all().unwrap();
    std::fs::metadata(target).unwrap().len()
}

/// What running a program took.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    /// On a machine that does other things, too, this tells more than the clock.
    processor: Duration,
    clock: Duration,
    /// Peak memory in kB, 0 where unknown.
    memory: u64,
}

impl Taken {
    fn print(&self, program: &str) {
        let Taken { processor, clock, memory } = self;
        println!("{program:<7} {processor:8.2?}   by the clock {clock:8.2?}   {memory:>7} kB");
    }
}

/// Runs a program to its end.
fn measure(command: &mut Command) -> Taken {
    let (start, before) = (Instant::now(), children());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut memory = 0;
    loop {
        if let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", child.id())) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let now = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
            memory = memory.max(now.unwrap_or(0));
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return Taken { processor: children() - before, clock: start.elapsed(), memory };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Processor time of all children that have ended: the 16th and 17th number of `stat`, in hundredths of a second.
fn children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    let ticks: u64 = after_name.split(' ').skip(13).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
