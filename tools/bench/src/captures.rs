//! `wire` beside tshark, and how it grows.

use crate::row::Row;
use crate::tools::{bin, optimized, root, timed, Effort};
use anyhow::{Context, Result};
use roce::Frame;
use run::capture::Reader;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

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

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    let wire = optimized("wire", effort)?;
    let (file, frames) = (bin()?.join("../bench.pcap"), frames()?);
    let mut rows = Vec::new();
    for packets in if effort.smoke { vec![1000] } else { vec![10_000, 1_000_000] } {
        write(&file, &frames, packets).with_context(|| format!("cannot write {}", file.display()))?;
        let (mut show, mut compare, mut tshark) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            show.push(timed(Command::new(&wire).args(["show", "--format", "tsv"]).arg(&file))?);
            compare.push(timed(Command::new(&wire).arg("compare").arg(&file).arg(&file))?);
            let mut other = Command::new("tshark");
            other.arg("-r").arg(&file).args(["-T", "fields"]).args(FIELDS.iter().flat_map(|field| ["-e", field]));
            tshark.push(timed(&mut other)?);
        }
        std::fs::remove_file(&file)?;
        let what = format!("wire show --format tsv, {packets} packets");
        let row = Row::beside(&what, "s", &show, "tshark -T fields", &tshark);
        // Eighty times as fast, once starting the programs does not count any more.
        rows.push(if packets < 1_000_000 { row } else { row.limit(1.0 / 80.0) });
        rows.push(Row::beside(&what, "s", &show, "wire compare, with themselves", &compare));
    }
    Ok(rows)
}

/// The RoCE packets of a bundled capture.
fn frames() -> Result<Vec<Vec<u8>>> {
    let mut reader = Reader::new(File::open(root()?.join("captures/10_going_fast.pcapng"))?)?;
    let mut frames = Vec::new();
    while let Some(record) = reader.next()? {
        if matches!(Frame::ethernet(record.data), Frame::Roce(_)) {
            frames.push(record.data.to_vec());
        }
    }
    Ok(frames)
}

/// A capture of so many packets: one connection after the other, all alike.
fn write(path: &Path, frames: &[Vec<u8>], packets: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // Magic, version 2.4, time zone, accuracy, most bytes of a packet, Ethernet.
    file.write_all(&words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]))?;
    for (at, frame) in frames.iter().cycle().take(packets).enumerate() {
        let length = frame.len() as u32;
        file.write_all(&words(&[(at / 1_000_000) as u32, (at % 1_000_000) as u32, length, length]))?;
        file.write_all(frame)?;
    }
    Ok(file.flush()?)
}
