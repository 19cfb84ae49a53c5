//! docs/benchmarks.md.

use crate::figure::{Figure, HEAD};
use crate::tools::{bin, output};
use std::collections::BTreeMap;
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
by running that again. Each figure is the median of its rounds, with the lowest and the highest; so is each ratio, of rounds in which\n\
both took turns in the same machines. A program that stood still was ended: its round is left out, and counted.\n\n\
The lab's machines are emulated and SoftRoCE is a driver in software: only the ratios say something, and about these programs alone.\n\n";

/// `old` is the page of an earlier run.
pub fn page(sections: &[Section], old: &str) -> String {
    let mut page = TOP.to_owned() + &circumstances();
    for Section { title, about, figures, seconds, load } in sections {
        let rows: String = figures.iter().map(|figure| figure.row() + "\n").collect();
        page += &format!("\n## {title}\n\nMeasured in {seconds:.0} s, at a load of {load:.1}. {about}\n\n{HEAD}{rows}");
    }
    let (agree, of, others) = agree(old, &page);
    let others: String = others.iter().map(|row| format!("; not {row}")).collect();
    if of > 0 {
        let before = row_of(old, "date (UTC)").unwrap_or_default();
        let line = format!("| beside the run of {before} | {agree} of {of} rows agree: each median lies in the other's spread{others} |\n");
        page = page.replacen("\n\n## ", &format!("\n{line}\n## "), 1);
    }
    page
}

fn row_of(page: &str, name: &str) -> Option<String> {
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("| {name} |")))?;
    Some(line.trim_end_matches('|').trim().to_owned())
}

/// Of the rows that both pages have, with a spread: how many agree, how many there are, and which do not agree. Two runs agree
/// if the ratio of each (or the figure, where nothing stands beside it) lies between the lowest and highest of the other.
pub fn agree(old: &str, new: &str) -> (usize, usize, Vec<String>) {
    let rows = |page: &str| -> BTreeMap<String, [f64; 3]> {
        let cells = page.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        cells.filter(|cells| cells.len() == 9).filter_map(|cells| Some((name(&cells), spread(&cells)?))).collect()
    };
    let (old, new) = (rows(old), rows(new));
    let both: Vec<_> = new.iter().filter_map(|(name, new)| Some((name, new, old.get(name)?))).collect();
    let within = |[median, ..]: &[f64; 3], [_, low, high]: &[f64; 3]| low <= median && median <= high;
    let apart = both.iter().filter(|(_, new, old)| !(within(new, old) && within(old, new)));
    let apart: Vec<String> = apart.map(|(name, ..)| (*name).clone()).collect();
    (both.len() - apart.len(), both.len(), apart)
}

fn name(cells: &[&str]) -> String {
    if cells[4].is_empty() {
        cells[1].to_owned()
    } else {
        format!("{} beside {}", cells[1], cells[4])
    }
}

/// Median, lowest and highest of a row's ratio, or else of its own figure.
fn spread(cells: &[&str]) -> Option<[f64; 3]> {
    let cell = [cells[6], cells[3]].into_iter().find(|cell| cell.contains('–') && cell.contains('('))?;
    let words: Vec<f64> =
        cell.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse().ok()).take(3).collect();
    words.try_into().ok()
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
    // What the lab has found out (lab/src/kvm.rs): it has just been used.
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

#[cfg(test)]
mod tests {
    use super::agree;

    #[test]
    fn rows_agree_if_each_median_lies_in_the_others_spread() {
        let page = |ratio: &str, seconds: &str| {
            format!("| a | µs | 3.00 (1.00–9.00) | b | 2.00 (1.00–3.00, 1 stood still) | **{ratio}** (0.90–1.10) | ≤ 1.05: yes |\n\
                     | c | s | {seconds} (0.50–2.00) |  | – | – |  |\n| d | s | 1.00 (one run) |  | – | – |  |\n")
        };
        assert_eq!(agree(&page("1.00", "1.00"), &page("1.09", "1.90")), (2, 2, vec![]));
        assert_eq!(agree(&page("1.00", "1.00"), &page("1.20", "1.00")), (1, 2, vec!["a beside b".into()]));
        assert_eq!(agree("", &page("1.00", "1.00")).1, 0);
    }
}
