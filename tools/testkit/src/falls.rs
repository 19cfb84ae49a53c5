//! Somebody of a run is ended in the middle of it, at a moment that nobody chose: what its run file says then.

use run::capture::Reader;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What `wire explain` says of a run file on one line, after Wireshark's sibling has opened it.
pub fn explained(file: &Path) -> String {
    let opened = Command::new("tshark").arg("-r").arg(file).output().unwrap();
    assert!(opened.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&opened.stderr));
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    wire::explain::explain(&mut reader).unwrap().to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Each of these falls `times` times, after a number of milliseconds below `limit`. The `SEED` that's printed repeats the moments.
pub fn each_falls<F>(falls: &[F], times: usize, limit: u64, mut fall: impl FnMut(usize, &F, u64)) {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(std::process::id());
    println!("SEED={seed}");
    let mut random = u64::from(seed);
    for (number, victim) in std::iter::repeat(falls).take(times).flatten().enumerate() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        fall(number, victim, (random >> 33) % limit);
    }
}

#[track_caller]
pub fn waits_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes in whose file of this name, such as `cmdline` or `environ`, something fits.
pub fn processes(file: &str, fits: impl Fn(&str) -> bool) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let bytes = fs::read(entry.path().join(file)).ok()?;
        fits(&String::from_utf8_lossy(&bytes)).then_some(number)
    });
    all.collect()
}
