//! `wire` beside tshark, and how it grows.

use crate::row::{Row, Wanted};
use crate::tools::{bin, optimized, root, timed, Effort};
use anyhow::{ensure, Context, Result};
use roce::{icrc, Frame};
use run::capture::Reader;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
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
    let (folder, frames) = (bin()?.join("../bench"), frames()?);
    std::fs::create_dir_all(&folder)?;
    let mut rows = Vec::new();
    for packets in if effort.smoke { vec![1000] } else { vec![10_000, 1_000_000] } {
        let file = capture(&folder, &frames, packets)?;
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
        rows.push(if packets < 1_000_000 { row } else { row.wanted(Wanted::AtMost(1.0 / 80.0)) });
        rows.push(Row::beside(&what, "s", &show, "wire compare, with themselves", &compare));
    }
    Ok(rows)
}

/// What a bundled capture has of a connection.
struct Frames {
    handshake: Vec<Vec<u8>>,
    /// WRITEs, each followed by its ACK.
    data: Vec<Vec<u8>>,
}

fn frames() -> Result<Frames> {
    let file = root()?.join("captures/10_going_fast.pcapng");
    let mut reader = Reader::new(File::open(&file)?).map_err(|error| anyhow::anyhow!("{error}"))?;
    let (mut handshake, mut data) = (Vec::new(), Vec::new());
    while let Some(record) = reader.next().map_err(|error| anyhow::anyhow!("{error}"))? {
        match Frame::ethernet(record.data) {
            Frame::Roce(packet) if packet.cm().is_none() => data.push(record.data.to_vec()),
            // After the data it is the goodbye.
            Frame::Roce(_) if data.is_empty() => handshake.push(record.data.to_vec()),
            _ => {}
        }
    }
    ensure!(handshake.len() == 3 && data.len() > 4, "{} lacks packets", file.display());
    Ok(Frames { handshake, data })
}

/// A capture of so many packets: the handshake, then the WRITEs and ACKs again and again, with numbers that go on.
fn capture(folder: &Path, Frames { handshake, data }: &Frames, packets: usize) -> Result<PathBuf> {
    let path = folder.join(format!("{packets}.pcap"));
    let mut file = BufWriter::new(File::create(&path).with_context(|| format!("cannot write {}", path.display()))?);
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // Magic, version 2.4, time zone, accuracy, most bytes of a packet, Ethernet.
    file.write_all(&words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]))?;
    // A WRITE and its ACK have one number.
    let rest = (0..).flat_map(|round| data.iter().map(move |frame| later(frame, round * data.len() as u32 / 2)));
    for (at, frame) in handshake.iter().cloned().chain(rest).take(packets).enumerate() {
        let length = frame.len() as u32;
        file.write_all(&words(&[(at / 1_000_000) as u32, (at % 1_000_000) as u32, length, length]))?;
        file.write_all(&frame)?;
    }
    file.flush()?;
    Ok(path)
}

/// The frame as it comes so many requests later: its PSN and an ACK's MSN are higher, modulo 2^24, and its ICRC fits.
fn later(frame: &[u8], requests: u32) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let Frame::Roce(packet) = Frame::ethernet(&frame) else { return frame };
    let (ip, udp, bth) = (packet.datagram.ip_offset, packet.datagram.udp_offset, packet.bth_offset());
    let (is_ack, end) = (packet.aeth().is_some(), packet.datagram.wire_length - icrc::LENGTH);
    let ip = &mut frame[ip..];
    let mut add = |at: usize| {
        let number = u32::from_be_bytes([0, ip[at], ip[at + 1], ip[at + 2]]) + requests;
        ip[at..at + 3].copy_from_slice(&number.to_be_bytes()[1..]);
    };
    // The PSN ends the BTH, the MSN ends the AETH behind it.
    add(bth + 9);
    if is_ack {
        add(bth + 13);
    }
    let sum = icrc::compute(&ip[..end], udp).unwrap_or_default();
    ip[end..end + icrc::LENGTH].copy_from_slice(&sum.to_le_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce::{icrc::Icrc, track::Tracker};

    #[test]
    fn a_capture_is_one_connection_in_which_nothing_is_sent_again() {
        let file = capture(&bin().unwrap(), &frames().unwrap(), 1003).unwrap();
        let (mut reader, mut tracker) = (Reader::new(File::open(&file).unwrap()).unwrap(), Tracker::default());
        let mut numbers = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            let Frame::Roce(packet) = Frame::ethernet(record.data) else { panic!("{record:?}") };
            let seen = tracker.see(&packet).unwrap();
            assert_eq!((packet.icrc(), seen.again, seen.connection), (Icrc::Ok, false, 0), "{packet:?}");
            numbers.extend(seen.psn.zip(packet.aeth()).map(|(psn, ack)| (psn, ack.msn)));
        }
        assert_eq!(numbers, (0..500).map(|at| (at, at as u32 + 1)).collect::<Vec<_>>());
        std::fs::remove_file(&file).unwrap();
    }
}
