//! RDMA beside plain TCP, both in the same machines: so that nobody believes SoftRoCE to be fast.

use crate::row::Row;
use crate::tools::{bin, field, numbers, optimized, take_turns, Contender, Effort};
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const SIZE: usize = 64;
const BLOCK: usize = 65536;

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    let (small, large) = (effort.count(1000), effort.count(100));
    let bench = bin()?.join("bench").display().to_string();
    let (lesson, pingpong) = (optimized("lesson-10", effort)?, optimized("pingpong", effort)?);
    let asleep = format!("-p 7472 --op send --wait sleep --turns {small}");
    let contenders = [
        ("RDMA there and back", format!("env RUST_LOG=off {pingpong} client -a server {asleep}")),
        (
            "RDMA blocks",
            format!("env RUST_LOG=off {lesson} client -a server --size {BLOCK} --depth 16 --count {large}"),
        ),
        ("TCP", format!("{bench} --tcp-client {small} {large}")),
    ];
    let contenders = contenders.map(|(name, client)| Contender { name: name.into(), server: None, client });
    let server = |rounds| {
        format!(
            "sh -c \"{bench} --tcp-server {rounds} & RUST_LOG=off {pingpong} server {asleep} -n {rounds} & \
             RUST_LOG=off {lesson} server -n {rounds}; wait\""
        )
    };
    let said = take_turns("bench-tcp", server, &contenders, effort)?;
    let micros = |name| numbers(&said, name, |text| field(text, "median_us"));
    let megabytes = |name| numbers(&said, name, |text| field(text, "bytes_per_s").map(|bytes| bytes / 1e6));
    let (there_and_back, blocks) = (micros("RDMA there and back")?, megabytes("RDMA blocks")?);
    let what = "SEND of 64 bytes, asleep, there and back / 2";
    Ok(vec![
        Row::beside(what, "µs", &there_and_back, "TCP, the same", &micros("TCP")?),
        Row::beside("WRITE of 64 KiB, depth 16", "MB/s", &blocks, "TCP, one stream", &megabytes("TCP")?),
    ])
}

/// TCP's side: answers each small message, until a larger one says how many bytes come, and then takes these.
pub fn serve(clients: usize) -> Result<()> {
    let listener = TcpListener::bind("[::]:18800")?;
    for _ in 0..clients {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut counts = [0; 16];
        stream.read_exact(&mut counts)?;
        let count = |half: &[u8]| half.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        let (small, large) = (count(&counts[..8]), count(&counts[8..]));
        let (mut message, mut block) = ([0; SIZE], vec![0; BLOCK]);
        for _ in 0..small {
            stream.read_exact(&mut message)?;
            stream.write_all(&message)?;
        }
        for _ in 0..large {
            stream.read_exact(&mut block)?;
        }
        stream.write_all(&[1])?;
    }
    Ok(())
}

pub fn connect(host: &str, small: usize, large: usize) -> Result<()> {
    let mut stream = TcpStream::connect((host, 18800)).with_context(|| format!("nobody listens at {host}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(&[(small as u64).to_be_bytes(), (large as u64).to_be_bytes()].concat())?;
    let (mut message, block, mut times) = ([0; SIZE], vec![0; BLOCK], Vec::new());
    for _ in 0..small {
        let started = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        times.push(started.elapsed() / 2);
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let started = Instant::now();
    (0..large).try_for_each(|_| stream.write_all(&block))?;
    stream.read_exact(&mut message[..1])?;
    let rate = (large * BLOCK) as f64 / started.elapsed().as_secs_f64();
    println!("median_us={:.3} bytes_per_s={rate:.0}", median.as_nanos() as f64 / 1e3);
    Ok(())
}
