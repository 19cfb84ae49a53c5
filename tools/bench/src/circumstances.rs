//! Where and when a run was made.

use crate::tools::{bin, output};
use std::process::Command;

/// What is to be known of this machine, and of the programs.
pub fn facts() -> Vec<(String, String)> {
    // Whatever its exit status: perftest's programs tell their version, and fail.
    let say = |program: &str, arguments: &[&str]| {
        let told = Command::new(program).args(arguments).output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&told).lines().next().unwrap_or_default().to_owned()
    };
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // What the lab has found out (tools/lab/src/kvm.rs): it has just been used.
    let note = bin().and_then(|bin| Ok(std::fs::read_to_string(bin.join("../lab/kvm"))?)).unwrap_or_default();
    let kvm = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
    let kvm = match (kvm, note.starts_with("true")) {
        (false, _) => "cannot be used here: the lab emulates its machines",
        (true, false) => "can be opened, and runs no guest here: the lab emulates its machines",
        (true, true) => "runs the lab's machines",
    };
    let guest = bin().ok().map(|bin| Command::new(bin.join("lab"))).map(|mut lab| {
        lab.args(["exec", "--json", "--name", "bench-kernel", "--server", "uname -sr"]);
        let _ = output(&mut lab);
        let log = bin().map(|bin| bin.join("../lab/runs/bench-kernel/server.log"));
        log.ok().and_then(|log| std::fs::read_to_string(log).ok()).unwrap_or_default().trim().to_owned()
    });
    let rows = [
        ("date (UTC)", say("date", &["-u", "+%Y-%m-%d %H:%M"])),
        ("processor", format!("{model}, {cores} cores")),
        ("kernel here", say("uname", &["-sr"])),
        ("kernel in the lab", guest.unwrap_or_default()),
        ("/dev/kvm", kvm.into()),
        ("QEMU", say(&format!("qemu-system-{}", std::env::consts::ARCH), &["--version"])),
        ("libibverbs", say("pkg-config", &["--modversion", "libibverbs"])),
        ("perftest", say("ib_write_lat", &["--version"])),
        ("tshark", say("tshark", &["--version"])),
        ("rustc", say("rustc", &["--version"])),
    ];
    rows.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// The load of the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}
