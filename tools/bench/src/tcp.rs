//! RDMA beside plain TCP, both in the same machines: so that nobody believes SoftRoCE to be fast.

use crate::row::Row;
use crate::tools::{bin, optimized, take_turns, Contender, Effort};
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
    let asleep = format!("--op send --wait sleep --turns {small}");
    let blocks = format!("--size {BLOCK} --depth 16 --count {large}");
    let server = format!("{bench} --tcp-server {{port}}");
    let client = format!("{bench} --tcp-client {{port}} {small} {large}");
    let contenders = [
        Contender::ours("there and back", &pingpong, &asleep, &asleep, "off"),
        Contender::ours("blocks", &lesson, "", &blocks, "off"),
        Contender { name: "TCP".into(), server, client },
    ];
    let told = take_turns("bench-tcp", &contenders, effort)?;
    let micros = |name| told.number(name, "median_us");
    let what = "SEND of 64 bytes, asleep, there and back / 2";
    Ok(vec![
        Row::beside(what, "µs", &micros("there and back")?, "TCP, the same", &micros("TCP")?),
        Row::beside("WRITE of 64 KiB, depth 16", "MB/s", &told.rate("blocks")?, "TCP, one stream", &told.rate("TCP")?),
    ])
}

/// TCP's side: answers each small message, as many as its client says at first, and then takes this many large ones.
pub fn serve(port: u16) -> Result<()> {
    let (mut stream, _) = TcpListener::bind(("::", port))?.accept()?;
    stream.set_nodelay(true)?;
    let [mut small, mut large] = [[0; 8]; 2];
    stream.read_exact(&mut small)?;
    stream.read_exact(&mut large)?;
    let (mut message, mut block) = ([0; SIZE], vec![0; BLOCK]);
    for _ in 0..u64::from_be_bytes(small) {
        stream.read_exact(&mut message)?;
        stream.write_all(&message)?;
    }
    (0..u64::from_be_bytes(large)).try_for_each(|_| stream.read_exact(&mut block))?;
    Ok(stream.write_all(&[1])?)
}

/// Its client, in the other machine.
pub fn connect(port: u16, small: usize, large: usize) -> Result<()> {
    let mut stream = TcpStream::connect(("server", port)).context("nobody listens at `server`")?;
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
