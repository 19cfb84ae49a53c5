//! A switch in the lab's wire: rate, queue and marks, and what rdma_rxe does with a mark.

use crate::support::{lab, Check, Run, SERVER};
use roce::Frame;
use run::file::Event;

/// The kernel's own counter of IP packets that came marked.
const MARKED: &str = "awk '/^IpExt/ { if (!n) n = split($0, names); else for (i in names) if (names[i] == \"InCEPkts\") print $i }' /proc/net/netstat";
/// ECT(0): its sender says that it heeds marks.
const CAPABLE: &str = "--tos 2";

fn incast(wire: &str, options: &str) -> Check {
    let sender = format!("lesson-20 client -a server {options}");
    let run = Run::programs().server("lesson-20 server -n 2 --len 16384 --messages 32").client(&sender);
    run.with("node", &format!("client-2={sender}")).with("wire", wire).with("inspect", MARKED).check()
}

/// Frames that were marked, that were dropped, and CNPs.
fn seen(check: &Check) -> [usize; 3] {
    let mut seen = [0; 3];
    check.each_event(|event| {
        let Event::Packet(record) = event else { return };
        let told = record.comment.unwrap_or_default();
        let is_cnp = matches!(Frame::decode(record.link, record.data), Frame::Roce(packet) if packet.name() == "CNP");
        let is = [told.starts_with("lab: marked"), told.starts_with("lab: dropped"), is_cnp];
        seen.iter_mut().zip(is).for_each(|(count, is)| *count += usize::from(is));
    });
    seen
}

/// Two machines send to a third one, whose cable has room for one of them.
#[test]
fn rdma_rxe_takes_marked_packets_as_any_other_and_tells_nobody() {
    let check = incast("link 20 Mbit/s 50 us; ecn 2..8 KB", CAPABLE);
    let [marked, dropped, cnps] = seen(&check);
    assert!(marked > 0 && [dropped, cnps] == [0; 2], "{marked} marked, {dropped} dropped, {cnps} CNPs");
    let [before, after] = &check.outcome.inspected[SERVER];
    let counted = [before, after].map(|lines| lines[0].trim().parse::<usize>().unwrap());
    assert_eq!(counted[1] - counted[0], marked, "the kernel counts them where it takes IP packets");
    // By itself it asks for no marks; a queue that is full drops, and what was dropped is sent again.
    let [marked, dropped, _] = seen(&incast("link 20 Mbit/s 50 us; queue 16 KB; ecn 2..8 KB", ""));
    assert!(marked == 0 && dropped > 0, "{marked} marked, {dropped} dropped");
}

#[test]
fn a_switch_that_rdma_rxe_has_no_part_in_is_refused() {
    for more in ["pfc 48 KB", "dcqcn"] {
        let output = lab().args(["run", "02", "--wire", &format!("link 1 Gbit/s 5 us; {more}")]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("on=device"), "{errors}");
    }
}
