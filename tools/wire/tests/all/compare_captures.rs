//! What a comparison says about captures as a whole: other machines, broken recordings, several attempts.

use crate::edit::{Frames, EXTENDED};
use crate::frames;
use wire::compare::Verdict;

const WRITE: &str = "04_rdma_write";
const READ: &str = "05_rdma_read";

/// A broken recording is not judged, whatever the program did.
#[test]
fn problems_of_the_recording_come_first() {
    let problem = |frames: Frames, part: &str| {
        let report = frames.against(&Frames::bundled(READ));
        assert_eq!(report.verdict(), Verdict::Unreadable, "{report}");
        assert!(report.problems[0].contains(part), "{report}");
        assert!(report.cause.is_none() && report.also.is_empty(), "{report}");
    };
    let good = || Frames::bundled(READ);
    problem(Frames::of(vec![]), "The capture is empty");
    let arp = good().0[0].data.clone();
    problem(Frames::of(vec![arp.clone(), arp.clone()]), "None of the 2 frames is RoCEv2 (2 ARP)");
    let mut v1 = arp;
    v1[12..14].copy_from_slice(&[0x89, 0x15]);
    problem(Frames::of(vec![v1]), "RoCE of version 1");
    let mut damaged = good();
    damaged.0[9].data[EXTENDED + 20] ^= 1;
    problem(damaged, "A wrong ICRC in 1 packet, first in frame 10");
    let one_way = |keep: u8| Frames(good().0.into_iter().filter(|frame| frame.data[29] == keep).collect());
    problem(one_way(2), "All packets come from 10.47.91.2");
    problem(one_way(1), "All packets come from 10.47.91.1");
    let late = |name: &str| Frames(good().0.split_off(good().find(name, 0)));
    problem(late("ConnectReply"), "no connection request (REQ)");
    problem(late("RC Send Only"), "no connection request (REQ)");
    problem(late("DisconnectRequest"), "The capture begins in the middle: frame 1");
    problem(good().without("ConnectReply", 0), "The recording has lost packets");
    problem(good().without("RC RDMA Write Only", 0), "The recording has lost packets: frame");
    let mut cut = good();
    cut.0.iter_mut().for_each(|frame| frame.data.truncate(68));
    problem(cut, "A snap length cut the end off");
    let report = good().against(&Frames::of(vec![]));
    assert!(report.problems[0].contains("the reference is no good: The capture is empty"), "{report}");
}

#[test]
fn the_best_of_several_attempts_counts() {
    let reference = Frames::bundled(WRITE);
    // The server was not there yet, and the client was started again.
    let mut attempt = frames::conversation();
    attempt.truncate(1);
    attempt.push(frames::cm_frame(frames::SERVER, frames::CLIENT, 0x12, &[(4, &frames::CLIENT_ID), (10, &[0, 8])]));
    let mine = reference.clone().insert(0, attempt);
    let report = mine.against(&reference);
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
    assert!(report.to_string().contains("of your 2 connections, number 2 is compared"), "{report}");
    // What is left from the run before does not matter.
    let mine = Frames([reference.0[reference.0.len() - 2..].to_vec(), reference.0.clone()].concat());
    let report = mine.against(&reference);
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
    assert!(report.to_string().contains("left out: 2 packets of connections that began before"), "{report}");
}
