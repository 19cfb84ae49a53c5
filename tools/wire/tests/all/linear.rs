//! Whatever the bytes: what takes a second for a small file takes eight for one eight times as large, and not a minute.

use crate::frames;
use roce::LinkType;
use run::capture::Reader;
use run::file::Line;
use run::lanes::{self, Style};
use run::pcapng::{Section, Writer};
use std::time::Duration;
use testkit::clock::cost;
use wire::play::{self, page};
use wire::show;

/// A hostile file, `size` of something large.
type Make = fn(&mut Writer<Vec<u8>>, usize);

/// What is done with it; how many bytes come of that.
type Act = fn(&[u8]) -> usize;

const FACTOR: usize = 8;
/// Eight times the file is eight times the work; with squares it would be 64 times.
const MOST: f64 = 24.0;

fn file(make: Make, size: usize) -> Vec<u8> {
    let mut writer = Writer::without_interface(Vec::new(), &Section::default()).unwrap();
    make(&mut writer, size);
    writer.into_inner().unwrap()
}

fn line(node: &str, text: &str) -> Line {
    Line { node: node.into(), program: "x".into(), text: text.into(), ..Line::default() }
}

/// Time and output may grow as the file does, and not as its square.
fn grows_as_the_file(what: &str, make: Make, size: usize) {
    let acts: [(&str, Act); 3] = [
        ("lanes", |file| lanes::text(file, Style::FILE, 0..=u64::MAX).map_or(0, |text| text.len())),
        ("ladder", |file| {
            let (mut out, reader) = (Vec::new(), || Reader::new(file).unwrap());
            let _ = show::ladder::write(&mut reader(), run::row::clients(&mut reader()), Style::FILE, &mut out);
            out.len()
        }),
        ("play", |file| page::page(&play::run(file, "x", None).unwrap(), &page::ladder(file)).len()),
    ];
    let (small, large) = (file(make, size), file(make, size * FACTOR));
    for (name, act) in acts {
        let (one, other) = (cost(|| act(&small)), cost(|| act(&large)));
        // A page has the player.
        let output = other.0 as f64 / one.0.max(100_000) as f64;
        let time = other.1.as_secs_f64() / one.1.max(Duration::from_millis(1)).as_secs_f64();
        assert!(time < MOST, "{what}: {name} takes {:.1?}, and {FACTOR} times the file {:.1?}", one.1, other.1);
        assert!(output < MOST, "{what}: {name} writes {} bytes, and of {FACTOR} times the file {}", one.0, other.0);
    }
}

#[test]
fn a_long_line() {
    grows_as_the_file("a line", |writer, size| writer.line(&line("client", &"x y".repeat(size))).unwrap(), 20_000);
}

#[test]
fn a_node_with_a_long_name_that_says_much() {
    let make: Make = |writer, size| {
        for name in ["a", &"n".repeat(size), "c"] {
            writer.interface(LinkType::ETHERNET, Some(name)).unwrap();
        }
        (0..size / 10).for_each(|_| writer.line(&line("c", &"word ".repeat(20))).unwrap());
    };
    grows_as_the_file("a name", make, 5000);
}

#[test]
fn many_nodes() {
    let make: Make = |writer, size| {
        for n in 0..size {
            writer.interface(LinkType::ETHERNET, Some(&format!("node-{n}"))).unwrap();
        }
        (0..size).for_each(|n| writer.line(&line(&format!("node-{n}"), "hello")).unwrap());
    };
    grows_as_the_file("nodes", make, 1000);
}

/// Each WRITE goes into all the regions before it: they are one over the other.
#[test]
fn regions_one_over_the_other() {
    let make: Make = |writer, size| {
        let nodes = ["client", "server"].map(|name| writer.interface(LinkType::ETHERNET, Some(name)).unwrap());
        for n in 0..size as u32 {
            writer.line(&line("server", "ibv_reg_mr access=LOCAL_WRITE|REMOTE_WRITE")).unwrap();
            writer.line(&line("server", "MR: addr=0x1000 len=4096 lkey=0x1 rkey=0x2")).unwrap();
            let write =
                frames::frame(frames::CLIENT, frames::SERVER, 10, 0x11, n, &frames::reth(0x1000, 2, 64), &[7; 64]);
            writer.cut_packet(nodes[0], u64::from(n), &write, write.len(), None).unwrap();
        }
    };
    // The page shows 3000 events at most: a third of them are these packets.
    grows_as_the_file("regions", make, 120);
}
