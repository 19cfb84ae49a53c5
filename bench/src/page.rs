//! docs/benchmarks.md.

use crate::figure::{Figure, HEAD};
use crate::tools::{bin, output};
use std::process::Command;

pub struct Section {
    pub title: &'static str,
    /// What it says, and what it does not.
    pub about: &'static str,
    pub figures: Vec<Figure>,
    pub seconds: f64,
    /// Of the machine while it was measured: processes that want to run, on average over a minute.
    pub load: f64,
}

const TOP: &str = "# Benchmarks\n\n\
How fast is all this, beside what others have built? `make bench` measured what follows, and wrote this page: it is measured anew\n\
by running that again. Each figure is the median of its rounds, with the lowest and the highest; each ratio is one of medians, with\n\
the lowest and highest of single rounds. What stands in one row took turns, in the same machines, within the same minutes.\n\n\
The lab's machines are emulated and SoftRoCE is a driver in software: only the ratios say something, and about these programs alone.\n\n";

pub fn page(sections: &[Section]) -> String {
    let mut page = TOP.to_owned() + &circumstances();
    for Section { title, about, figures, seconds, load } in sections {
        let rows: String = figures.iter().map(|figure| figure.row() + "\n").collect();
        page += &format!("\n## {title}\n\nMeasured in {seconds:.0} s, at a load of {load:.1}. {about}\n\n{HEAD}{rows}");
    }
    page
}

/// Where and when.
fn circumstances() -> String {
    // Whatever its exit status: perftest's programs tell their version, and fail.
    let say = |program: &str, arguments: &[&str]| {
        let told = Command::new(program).args(arguments).output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&told).lines().next().unwrap_or_default().to_owned()
    };
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kvm = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
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
        ("/dev/kvm", if kvm { "can be opened; `make doctor` says whether it works" } else { "cannot be used" }.into()),
        ("QEMU", say(&format!("qemu-system-{}", std::env::consts::ARCH), &["--version"])),
        ("rdma-core", say("pkg-config", &["--modversion", "libibverbs"])),
        ("perftest", say("ib_write_lat", &["--version"])),
        ("tshark", say("tshark", &["--version"])),
        ("rustc", say("rustc", &["--version"])),
    ];
    rows.iter().fold("| | |\n|---|---|\n".to_owned(), |text, (name, value)| text + &format!("| {name} | {value} |\n"))
}

/// The load of the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}
