//! Reading captures: the table, the comparison and the explanation of a million packets, beside tshark with twelve fields of the table.

use crate::row::Row;
use crate::tools::{bin, optimized, Effort};
use anyhow::{ensure, Context, Result};
use nic::datagram::{ethernet, seal};
use nic::packet::{code, Aeth, Packet, Reth};
use nic::psn::Psn;
use roce::LinkType;
use run::files::read;
use run::pcapng::{Section, Writer};
use std::fs::File;
use std::io::BufWriter;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

const PACKETS: usize = 1_000_000;
/// Payloads in bytes, and how many times as fast as tshark the table must be.
const SIZES: [(usize, &str, f64); 2] = [(64, "64 bytes", 60.0), (1024, "1 KB", 50.0)];
const FIELDS: [&str; 12] = [
    "frame.number",
    "ip.src",
    "ip.dst",
    "infiniband.bth.opcode",
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
    "infiniband.bth.a",
    "infiniband.reth.va",
    "infiniband.reth.r_key",
    "infiniband.reth.dmalen",
    "infiniband.aeth.syndrome",
    "infiniband.aeth.msn",
];

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    let (wire, packets) = (optimized("wire", effort)?, effort.count(PACKETS));
    let mut rows = Vec::new();
    for (size, what, limit) in SIZES {
        let file = bin()?.join(format!("captures-{size}.pcapng"));
        write(&file, packets, size).with_context(|| format!("cannot write {}", file.display()))?;
        let name = file.display().to_string();
        let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
        let tshark: Vec<&str> = ["tshark", "-n", "-r", &name, "-T", "fields"].into_iter().chain(fields).collect();
        let all: [&[&str]; 4] = [
            &tshark,
            &[&wire, "show", "--format", "tsv", &name],
            &[&wire, "compare", &name, &name],
            &[&wire, "explain", &name],
        ];
        let mut rates = [(); 4].map(|()| Vec::new());
        for _ in 0..effort.rounds {
            for (rates, command) in rates.iter_mut().zip(all) {
                rates.push(packets as f64 / seconds(command)? / 1e6);
            }
        }
        let [tshark, ours @ ..] = &rates;
        let row = |(ours, which): (&Vec<f64>, &str)| {
            Row::beside(&format!("{which}, {what}"), "million packets/s", ours, "tshark, twelve fields", tshark)
        };
        let mut of_size = ours.iter().zip(["table", "comparison with itself", "explanation"]).map(row);
        rows.extend(of_size.next().map(|table| table.limit(limit)));
        rows.extend(of_size);
        std::fs::remove_file(&file)?;
    }
    Ok(rows)
}

/// How long the processor works for a command, so that it doesn't matter what else it has to do. What it prints goes nowhere.
fn seconds(command: &[&str]) -> Result<f64> {
    let before = ticks_of_children()?;
    let [program, arguments @ ..] = command else { return Ok(0.0) };
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {program}. Is it installed?"))?;
    ensure!(status.success(), "{} failed ({status})", command.join(" "));
    // A tick is a hundredth of a second.
    Ok((ticks_of_children()? - before).max(1.0) / 100.0)
}

/// The processor's time of all programs that this one has waited for (proc_pid_stat(5): cutime and cstime).
fn ticks_of_children() -> Result<f64> {
    let stat = read("/proc/self/stat")?;
    // The name of the program is in brackets, and may have spaces.
    let (_, fields) = stat.rsplit_once(") ").context("/proc/self/stat has no name")?;
    fields.split(' ').skip(13).take(2).map(|ticks| Ok(ticks.parse::<f64>()?)).sum()
}

/// A capture of WRITEs of this many bytes, of which each sixteenth is acknowledged.
fn write(file: &Path, packets: usize, size: usize) -> Result<()> {
    const WRITE_ONLY: u8 = 0x0a;
    const ACK: u8 = 0x1f;
    let [client, server] = [2, 1].map(|end| Ipv4Addr::new(10, 0, 0, end).into());
    // Written a megabyte at a time, as `cp` writes. In pieces of 8 KB the kernel would keep it so, and hand it out slower to both.
    let mut out = Writer::new(BufWriter::with_capacity(1 << 20, File::create(file)?), &Section::default())?;
    let interface = out.interface(LinkType::ETHERNET, None)?;
    let mut request = Packet { opcode: WRITE_ONLY, dest_qp: 0x12, payload: vec![7; size], ..Packet::default() };
    let mut answer = Packet { opcode: code::ACKNOWLEDGE, dest_qp: 0x11, ..Packet::default() };
    let mut psn = 0;
    for packet in 0..packets {
        let ip = if packet % 17 == 16 {
            answer.psn = Psn::new(psn - 1);
            answer.aeth = Aeth { syndrome: ACK, msn: psn };
            seal(server, client, &answer)
        } else {
            request.psn = Psn::new(psn);
            request.reth = Reth { va: 0x7f00_0000_0000 + u64::from(psn), rkey: 0x2c9, length: size as u32 };
            psn += 1;
            seal(client, server, &request)
        };
        let frame = ethernet(&ip);
        out.packet(interface, 1_000 * packet as u64, &frame, frame.len(), None)?;
    }
    Ok(out.flush()?)
}
