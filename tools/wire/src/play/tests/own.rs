//! Captures that are of no lesson: without a log, hostile, empty, cut, long.

use super::*;
use run::file::Line;

fn written(fill: impl FnOnce(&mut Writer<Vec<u8>>)) -> Vec<u8> {
    let mut writer = Writer::without_interface(Vec::new(), &Section::default()).unwrap();
    fill(&mut writer);
    writer.into_inner().unwrap()
}

#[test]
fn a_hostile_capture_cannot_write_into_the_page() {
    let text = "</script><script>alert(1)</script><!-- & \u{2028}";
    let file = written(|writer| {
        writer.interface(LinkType::ETHERNET, Some(text)).unwrap();
        let line = Line { node: text.into(), program: "<b>".into(), text: text.into(), ..Line::default() };
        writer.line(&line).unwrap();
    });
    let run = run(&file, text, None).unwrap();
    assert_eq!(parsed(&run)["events"][0]["text"], text, "nothing is lost");
    let page = page::page(&run, &page::ladder(&file));
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2), "the data and the player");
    assert!(!page.contains("alert(1)<") && !page.contains("<b>"));
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe"));
    let nonce = |page: &str| page.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
    assert_eq!(page.matches(&format!("nonce=\"{}\"", nonce(&page))).count(), 2, "the style and the player");
    assert_ne!(nonce(&page), nonce(&page::page(&run, "")), "nobody knows it beforehand");
}

#[test]
fn a_hostile_capture_cannot_turn_around_what_stands_beside_it() {
    let turned = "\u{202e}\u{2067}\u{200f}revres\u{1b}[31m";
    let file = written(|writer| {
        writer.interface(LinkType::ETHERNET, Some(turned)).unwrap();
        for text in ["ibv_reg_mr access=A|B", "MR: addr=0x10 len=16 lkey=0x1 rkey=0x2", "QP: qpn=1 state=INIT x=y"] {
            let text = format!("[1 #0001 stage{turned}] INFO  {text}{turned}");
            writer.line(&Line { node: turned.into(), program: turned.into(), text, ..Line::default() }).unwrap();
        }
    });
    let run = run(&file, turned, None).unwrap();
    let page = page::page(&run, &page::ladder(&file));
    let found: Vec<_> = page.chars().filter(|c| turned[..9].contains(*c) || *c == '\u{1b}').collect();
    assert!(found.is_empty() && run.json().contains("revres"), "{found:?}");
}

/// The label of a reply says that its sender is ready to receive, before its log does: so do the states.
#[test]
fn states_are_never_behind_what_the_packets_say() {
    let run = Bundled::new("04_rdma_write");
    let states = |tag| run.find("server", tag)["qp"].clone();
    assert!(run.find("server", "ConnectReply")["text"].as_str().unwrap().contains("RTR or RTS"));
    assert_eq!(
        (&states("ConnectReply")[0]["node"], &states("ConnectReply")[0]["state"]),
        (&1.into(), &"RTR or RTS".into())
    );
}

/// The packets of a bundled run without its log, each with what `comment` says about it.
fn packets_of(name: &str, comment: impl Fn(&Packet) -> Option<&'static str>) -> Vec<u8> {
    let file = capture(name);
    written(|writer| {
        let interface = writer.interface(LinkType::ETHERNET, None).unwrap();
        let mut reader = Reader::new(file.as_slice()).unwrap();
        while let Some(record) = reader.next().unwrap() {
            let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { continue };
            let time = record.time_ns.unwrap();
            writer.cut_packet(interface, time, record.data, record.length, comment(&packet)).unwrap();
        }
    })
}

#[test]
fn captures_without_a_log_tell_what_their_packets_imply() {
    let own = Bundled(parsed(&run(&packets_of("04_rdma_write", |_| None), "my", None).unwrap()));
    assert_eq!((&own.0["title"], own.0["files"].as_array().unwrap().len()), (&"my".into(), 0));
    let reply = own.find("server", "ConnectReply");
    assert_eq!((&reply["qp"][0]["state"], &reply["qp"][0]["implied"]), (&"RTR or RTS".into(), &true.into()));
    let write = own.find("client", "RDMA Write Only");
    assert_eq!((&write["memory"][0]["what"], &write["memory"][0]["len"]), (&"region".into(), &60.into()));
    assert_eq!(moved(write, &write["memory"][1]).len(), 60);
}

#[test]
fn a_packet_that_is_lost_writes_nothing() {
    let lose = |packet: &Packet| packet.name().contains("RDMA Write").then_some("lab: dropped by the rule `drop 1st`");
    let own = Bundled(parsed(&run(&packets_of("04_rdma_write", lose), "my", None).unwrap()));
    let write = own.find("client", "RDMA Write Only");
    assert!(write["notes"][0].as_str().unwrap().starts_with("lab: dropped"));
    assert!(write["memory"].as_array().unwrap().iter().all(|change| change["what"] == "region"), "{}", write["memory"]);
}

#[test]
fn what_is_left_out_is_said() {
    let file = capture("04_rdma_write");
    assert!(parsed(&run(&file, "x", None).unwrap())["left_out"].as_str().unwrap().contains("2 ARP"));
    let cut = parsed(&run(&file[..file.len() - 5], "x", None).unwrap());
    assert!(cut["left_out"].as_str().unwrap().contains("the file ends inside"), "{}", cut["left_out"]);
    let empty = written(|_| {});
    assert!(parsed(&run(&empty, "x", None).unwrap())["events"].as_array().unwrap().is_empty());
    assert!(run(b"no capture", "x", None).is_err());
    let many = written(|writer| {
        let interface = writer.interface(LinkType::ETHERNET, None).unwrap();
        let mut reader = Reader::new(file.as_slice()).unwrap();
        let mut packets = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            packets.push(record.data.to_vec());
        }
        for i in 0..100_000 {
            let data = &packets[i % packets.len()];
            writer.cut_packet(interface, i as u64 * 1000, data, data.len(), None).unwrap();
        }
    });
    let run = parsed(&run(&many, "x", None).unwrap());
    assert_eq!(run["events"].as_array().unwrap().len(), MOST);
    let left_out = run["left_out"].as_str().unwrap();
    assert!(left_out.contains(&format!("only the first {MOST} events are shown")), "{left_out}");
}
