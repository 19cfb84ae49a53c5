//! For the tests: random calls and random drops. Whatever a program of safe Rust does with `common`, it must neither crash nor
//! hang nor leave anything open; each call returns, with success or with an error in words.
//!
//! ```text
//! fuzz FIRST LAST CALLS    seeds FIRST to LAST, so many calls each
//! ```
//!
//! The same seed makes the same calls; what the device answers meanwhile may differ.

mod connections;
mod objects;
mod requests;

use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

use common::args::PORT;
use common::*;

/// Random numbers (xorshift, Marsaglia 2003): all that is needed, and the same everywhere.
pub struct Random(u64);

impl Random {
    /// From 0 up to below `end`, which is taken for 1 if it is 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of them, if there are any.
    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    /// Drops one of them.
    fn toss<T>(&mut self, from: &mut Vec<T>) {
        if !from.is_empty() {
            drop(from.swap_remove(self.below(from.len())));
        }
    }
}

/// Everything that exists at a moment.
#[derive(Default)]
pub struct World {
    contexts: Vec<Context>,
    pds: Vec<ProtectionDomain>,
    channels: Vec<CompletionChannel>,
    cqs: Vec<CompletionQueue>,
    srqs: Vec<SharedReceiveQueue>,
    qps: Vec<QueuePair>,
    buffers: Vec<Buffer>,
    regions: Vec<MemoryRegion>,
    /// Of regions that may be gone by now.
    known: Vec<Metadata>,
    event_channels: Vec<EventChannel>,
    ids: Vec<CmId>,
    /// Taken, and not acknowledged.
    events: Vec<CmEvent>,
    succeeded: usize,
    failed: usize,
}

impl World {
    /// Counts a call, and gives what it brought.
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => {
                self.succeeded += 1;
                Some(value)
            }
            Err(error) => {
                self.failed += 1;
                info!("{error}");
                None
            }
        }
    }

    /// One call, or some drops. None: there was nothing to do it with, or it failed.
    fn step(&mut self, random: &mut Random, server: std::net::SocketAddr) -> Option<()> {
        match random.below(46) {
            0..=17 => self.make(random),
            18..=34 => self.request(random),
            35..=39 => self.complete(random),
            40..=44 => self.connect(random, server),
            _ => {
                (0..=random.below(4)).for_each(|_| self.toss(random));
                Some(())
            }
        }
    }

    fn toss(&mut self, random: &mut Random) {
        match random.below(11) {
            0 => random.toss(&mut self.contexts),
            1 => random.toss(&mut self.pds),
            2 => random.toss(&mut self.channels),
            3 => random.toss(&mut self.cqs),
            4 => random.toss(&mut self.srqs),
            5 => random.toss(&mut self.qps),
            6 => random.toss(&mut self.regions),
            7 => random.toss(&mut self.buffers),
            8 => random.toss(&mut self.event_channels),
            9 => random.toss(&mut self.ids),
            _ => random.toss(&mut self.events),
        }
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn play(seed: u64, calls: usize, ip: IpAddr) -> Result<World> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut world = World { contexts: vec![Context::open("rxe0")?, Context::open("rxe0")?], ..World::default() };
    let server = (ip, PORT + (seed % 100) as u16).into();
    for _ in 0..calls {
        world.step(&mut random, server);
        if random.one_in(50) {
            // So that packets can come.
            std::thread::sleep(Duration::from_micros(300));
        }
    }
    Ok(world)
}

/// An address of the device's own: from there it reaches itself.
fn own_address() -> Result<IpAddr> {
    let context = Context::open("rxe0")?;
    let ipv4 = (0..8).find_map(|index| context.query_gid(1, index).ok()?.to_ipv4_mapped());
    ipv4.map(IpAddr::V4).ok_or_else(|| Error::content("rxe0 has no IPv4 address", "Give its netdev one"))
}

fn run(first: u64, last: u64, calls: usize) -> Result<()> {
    let ip = own_address()?;
    deadline::set(Duration::from_millis(20));
    // librdmacm opens each device once, and keeps it.
    drop(play(first, calls, ip)?);
    for seed in first..=last {
        let before = descriptors();
        let world = play(seed, calls, ip)?;
        let (succeeded, failed) = (world.succeeded, world.failed);
        drop(world);
        say!("seed {seed}: {succeeded} calls succeeded, {failed} failed");
        if descriptors() != before {
            let what = format!("seed {seed}: {before} descriptors were open before, {} are now", descriptors());
            return Err(Error::content(what, "Look for a Drop that does not destroy"));
        }
    }
    say!("all seeds are done");
    Ok(())
}

fn main() -> ExitCode {
    narrate::start(narrate::ALL);
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let result = match numbers[..] {
        [first, last, calls] => run(first, last, calls as usize),
        _ => Err(Error::content("not FIRST LAST CALLS", "Read the head of main.rs")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            narrate::failure(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
