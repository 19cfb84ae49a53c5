//! `wire` beside tshark, and how it grows.

use crate::figure::{Figure, Wanted};
use crate::tools::{bin, root, timed, Effort};
use anyhow::{ensure, Context, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use wire::capture::Reader;

/// What tshark is asked for: the fields that `wire show --format tsv` tells, too.
const FIELDS: [&str; 9] = [
    "frame.number",
    "ip.src",
    "ip.dst",
    "infiniband.bth.opcode",
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
    "infiniband.reth.va",
    "infiniband.reth.dmalen",
    "infiniband.aeth.msn",
];

pub fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let folder = bin()?.join("../bench");
    std::fs::create_dir_all(&folder)?;
    let frames = frames()?;
    let release = bin()?.join("../release/wire");
    // A smoke run takes the one that is there.
    let wire = if effort.smoke { bin()?.join("wire") } else { release };
    ensure!(wire.exists(), "{} is missing: cargo build --release -p wire", wire.display());
    let mut figures = Vec::new();
    let beside = |packets: usize, rounds: usize| -> Result<Figure> {
        let file = capture(&folder, &frames, packets)?;
        let (mut ours, mut tshark) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(
                timed(Command::new(&wire).args(["show", "--format", "tsv"]).arg(&file))?.0 * 1e9 / packets as f64,
            );
            let mut other = Command::new("tshark");
            other.arg("-r").arg(&file).args(["-T", "fields"]).args(FIELDS.iter().flat_map(|field| ["-e", field]));
            tshark.push(timed(&mut other)?.0 * 1e9 / packets as f64);
        }
        std::fs::remove_file(&file)?;
        // As how many times as fast.
        let what = format!("tshark -T fields, {packets} packets");
        Ok(Figure::new(&what, "ns/packet", tshark).beside("wire show --format tsv", ours).wanted(Wanted::AtLeast(80.0)))
    };
    if effort.smoke {
        let figure = beside(1000, 1)?;
        figures.push(Figure { wanted: None, ..figure });
    } else {
        figures.push(beside(1_000_000, 3)?);
    }
    let sizes: &[usize] = if effort.smoke { &[1000] } else { &[1_000, 10_000, 100_000, 1_000_000, 10_000_000] };
    for packets in sizes {
        let file = capture(&folder, &frames, *packets)?;
        let rounds = if *packets > 1_000_000 { 1 } else { effort.rounds };
        let mut show = (Vec::new(), Vec::new());
        let mut compare = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (seconds, memory) = timed(Command::new(&wire).args(["show", "--format", "tsv"]).arg(&file))?;
            show.0.push(seconds);
            show.1.push(memory);
            if *packets <= 1_000_000 {
                let (seconds, memory) = timed(Command::new(&wire).arg("compare").arg(&file).arg(&file))?;
                compare.0.push(seconds);
                compare.1.push(memory);
            }
        }
        std::fs::remove_file(&file)?;
        let beside = if compare.0.is_empty() { "" } else { "wire compare, with themselves" };
        let figure = |what, unit, show, compare| {
            Figure::new(&format!("{what}wire show --format tsv, {packets} packets"), unit, show).beside(beside, compare)
        };
        figures.push(figure("", "s", show.0, compare.0));
        // What ends within milliseconds has not been looked at often enough.
        if *packets >= 1_000_000 {
            figures.push(figure("memory of ", "MB", show.1, compare.1));
        }
    }
    Ok(figures)
}

/// A WRITE and its ACK, with the connection before them, out of a bundled capture.
fn frames() -> Result<Vec<Vec<u8>>> {
    let file = root().join("captures/10_going_fast.pcapng");
    let mut reader = Reader::new(File::open(&file)?).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut frames = Vec::new();
    while let Some(record) = reader.next().map_err(|error| anyhow::anyhow!("{error}"))? {
        frames.push(record.data.to_vec());
    }
    // ARP and the connection manager take some; the requests and ACKs of the lesson are many.
    let data: Vec<_> = frames.iter().filter(|frame| frame.len() > 42 && frame.len() < 200).cloned().collect();
    ensure!(data.len() > 4, "{} has no packets", file.display());
    Ok(data)
}

/// A capture of so many packets: the frames again and again, with rising PSNs.
fn capture(folder: &Path, frames: &[Vec<u8>], packets: usize) -> Result<PathBuf> {
    let path = folder.join(format!("{packets}.pcap"));
    let mut file = BufWriter::new(File::create(&path).with_context(|| format!("cannot write {}", path.display()))?);
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // Magic, version 2.4, time zone, accuracy, most bytes of a packet, Ethernet.
    file.write_all(&words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]))?;
    for at in 0..packets {
        let frame = &frames[at % frames.len()];
        let length = frame.len() as u32;
        file.write_all(&words(&[(at / 1_000_000) as u32, (at % 1_000_000) as u32, length, length]))?;
        file.write_all(frame)?;
    }
    file.flush()?;
    Ok(path)
}
