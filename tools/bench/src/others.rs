//! Connections beside those of rdma-core's programs; and RDMA beside plain TCP, both in the same machines: so that nobody
//! believes SoftRoCE to be fast.

use crate::figure::Figure;
use crate::tools::{bin, field, numbers, optimized, take_turns, Contender, Effort};
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// So many connections, one after the other, are one value. Each is a program that starts, connects, hangs up, and ends.
const CONNECTIONS: usize = 5;

pub fn connections(effort: Effort) -> Result<Vec<Figure>> {
    // Seconds since the machine was started, before and after.
    let several = |command: &str| {
        let (uptime, times) = ("cut -d' ' -f1 /proc/uptime", "x ".repeat(CONNECTIONS));
        format!("sh -c \"{uptime}; for i in {times}; do {command} >/dev/null 2>&1 || exit 1; done; {uptime}\"")
    };
    let contender = |name: &str, client: &str| Contender { name: name.into(), server: None, client: several(client) };
    let contenders = [
        contender("lesson-02", "RUST_LOG=off lesson-02 client -a server"),
        contender("rping", "rping -c -a server -C 1 -p 18701"),
        // Its server serves one client, and has to be started again.
        contender("ucmatose", "while ! ucmatose -c 1 -C 0 -p 18702 -s server; do sleep 0.02; done"),
    ];
    let server = |rounds| {
        format!(
            "rping -s -P -p 18701 & while :; do ucmatose -c 1 -C 0 -p 18702; done >/dev/null 2>&1 & \
             RUST_LOG=off lesson-02 server -n {}",
            CONNECTIONS * rounds
        )
    };
    let said = take_turns("bench-connections", server, &contenders, effort)?;
    let rate = |name: &str| {
        numbers(&said, name, |text| {
            let times: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            Some(CONNECTIONS as f64 / (times.last()? - times.first()?).max(0.01))
        })
    };
    let ours = || rate("lesson-02");
    let what = "a program that starts, connects, hangs up and ends: lesson 02";
    Ok(vec![
        Figure::new(what, "1/s", ours()?).beside("rping, with one exchange", rate("rping")?),
        Figure::new(what, "1/s", ours()?).beside("ucmatose", rate("ucmatose")?),
    ])
}

const SIZE: usize = 64;
const BLOCK: usize = 65536;

pub fn tcp(effort: Effort) -> Result<Vec<Figure>> {
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
        ("TCP", format!("{bench} tcp-client server {small} {large}")),
    ];
    let contenders = contenders.map(|(name, client)| Contender { name: name.into(), server: None, client });
    let server = |rounds| {
        format!(
            "sh -c \"{bench} tcp-server {rounds} & RUST_LOG=off {pingpong} server {asleep} -n {rounds} & \
             RUST_LOG=off {lesson} server -n {rounds}; wait\""
        )
    };
    let said = take_turns("bench-tcp", server, &contenders, effort)?;
    let rdma = numbers(&said, "RDMA there and back", |text| field(text, "median_us"))?;
    let blocks = numbers(&said, "RDMA blocks", |text| field(text, "bytes_per_s").map(|bytes| bytes / 1e6))?;
    Ok(vec![
        Figure::new("SEND of 64 bytes, asleep, there and back / 2", "µs", rdma)
            .beside("TCP, the same", numbers(&said, "TCP", |text| field(text, "median_us"))?),
        Figure::new("WRITE of 64 KiB, depth 16", "MB/s", blocks).beside(
            "TCP, one stream",
            numbers(&said, "TCP", |text| field(text, "bytes_per_s").map(|bytes| bytes / 1e6))?,
        ),
    ])
}

/// TCP's side: answers each small message, until a larger one says how many bytes come, and then takes these.
pub fn tcp_server(clients: usize) -> Result<()> {
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

pub fn tcp_client(host: &str, small: usize, large: usize) -> Result<()> {
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
