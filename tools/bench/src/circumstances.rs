//! Where and when a run was made.

use crate::tools::{bin, lab};
use anyhow::Result;
use std::process::Command;

/// What is to be known of this machine, and of the programs.
pub fn facts() -> Result<Vec<(String, String)>> {
    let guest = lab("bench-kernel", "server", &["--server", "uname -sr"])?;
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // What the lab has found out (tools/lab/src/kvm.rs): it has just been used.
    let note = std::fs::read_to_string(bin()?.join("../lab/kvm")).unwrap_or_default();
    let kvm = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
    let kvm = match (kvm, note.starts_with("true")) {
        (false, _) => "cannot be used here: the lab emulates its machines",
        (true, false) => "can be opened, and runs no guest here: the lab emulates its machines",
        (true, true) => "runs the lab's machines",
    };
    let rows = [
        ("date (UTC)", date()),
        ("processor", format!("{model}, {cores} cores")),
        ("kernel here", say("uname", &["-sr"])),
        ("kernel in the lab", guest.trim().to_owned()),
        ("/dev/kvm", kvm.into()),
        ("QEMU", say(&format!("qemu-system-{}", std::env::consts::ARCH), &["--version"])),
        ("libibverbs", say("pkg-config", &["--modversion", "libibverbs"])),
        ("perftest", say("ib_write_lat", &["--version"])),
        ("rustc", say("rustc", &["--version"])),
    ];
    Ok(rows.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

/// Today, and the time.
pub fn date() -> String {
    say("date", &["-u", "+%Y-%m-%d %H:%M"])
}

/// A program's first line. Whatever its exit status: perftest's programs tell their version, and fail.
fn say(program: &str, arguments: &[&str]) -> String {
    let told = Command::new(program).args(arguments).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&told).lines().next().unwrap_or_default().to_owned()
}

/// The load of the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}
