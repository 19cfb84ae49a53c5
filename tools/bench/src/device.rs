//! The device in user space beside rdma_rxe: the same programs with the same options, here on the device, there in the lab's machines.

use crate::row::Row;
use crate::tools::{bin, optimized, take_turns, Contender, Effort, Printed};
use crate::verbs::{mean_bandwidth, MEBIBYTE};
use anyhow::Result;
use run::capture::Reader;
use run::files::output;
use std::fs::File;
use std::process::Command;

/// What, its unit, what the client calls it, and the options of both sides of `pingpong`, or with a size those of lesson 10's client.
const WAYS: [(&str, &str, &str, &str); 4] = [
    ("WRITE, 64 bytes, there and back / 2", "µs", "median_us", "--op write"),
    ("SEND, 64 bytes, there and back / 2", "µs", "median_us", "--op send"),
    ("the call of post_send, which rings the doorbell", "µs", "post_us", "--op send"),
    ("WRITE, 64 KiB, depth 16", "MB/s", "bytes_per_s", "--op write --size 65536 --depth 16"),
];
const QUEUE_PAIRS: &str = "WRITE, 64 bytes, over 1,000 queue pairs";
const PERFTEST: &str = "ib_write_bw -q 1000 -s 64 -t 1 -Q 1 -F";
/// The device has one GID in its table, and rdma_rxe one for IPv4 behind that for IPv6.
const GID_OF_RXE: &str = "-x 1";

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    let (lesson, pingpong) = (optimized("lesson-10", effort)?, optimized("pingpong", effort)?);
    let mut contenders = Vec::new();
    for (what, unit, _, options) in WAYS {
        contenders.push(match unit {
            "µs" => {
                let options = format!("--turns {} {options}", effort.count(1000));
                Contender::ours(what, &pingpong, &options, &options, "off")
            }
            _ => Contender::ours(what, &lesson, "", &format!("--count {} {options}", effort.count(120)), "off"),
        });
    }
    let server = format!("{PERFTEST} {GID_OF_RXE} -n 5 -p {{port}}");
    contenders.push(Contender { name: QUEUE_PAIRS.into(), client: format!("{server} server"), server });
    let there = take_turns("bench-device", &contenders, effort)?;
    let mut here = Printed::default();
    for _ in 0..effort.rounds {
        for contender in &contenders {
            here.add(&contender.name, on_device(contender)?);
        }
    }
    let number = |printed: &Printed, what: &str, unit: &str, key: &str| {
        if unit == "MB/s" {
            printed.rate(what)
        } else {
            printed.number(what, key)
        }
    };
    let mut rows = Vec::new();
    for (what, unit, key, _) in WAYS {
        let [ours, others] = [number(&here, what, unit, key)?, number(&there, what, unit, key)?];
        rows.push(Row::beside(what, unit, &ours, "rdma_rxe in the lab", &others));
    }
    let bandwidth = |printed: &Printed| -> Result<Vec<f64>> {
        Ok(printed.find(QUEUE_PAIRS, mean_bandwidth)?.iter().map(|mebibytes| mebibytes * MEBIBYTE).collect())
    };
    rows.push(Row::beside(QUEUE_PAIRS, "MB/s", &bandwidth(&here)?, "rdma_rxe in the lab", &bandwidth(&there)?));
    Ok(rows)
}

/// The same two programs on the device: what they print.
fn on_device(contender: &Contender) -> Result<String> {
    const NAME: &str = "bench-device";
    let here = |command: &str| command.replace("{port}", "18600").replace(&format!(" {GID_OF_RXE}"), "");
    // The lab's machines know the server by its name.
    let client = here(&contender.client).replace("-a server", "-a $SERVER").replace(" server", " $SERVER");
    let mut device = Command::new(bin()?.join("device"));
    device.args(["exec", "--quiet", "--name", NAME, "--server", &here(&contender.server), "--client", &client]);
    output(&mut device)?;
    let mut reader = Reader::new(File::open(bin()?.join("../device/runs").join(NAME).join("wire.pcapng"))?)?;
    let mut said = String::new();
    while let Some(line) = reader.line()? {
        said += &(line.text + "\n");
    }
    Ok(said)
}
