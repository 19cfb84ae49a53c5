//! The judge of a learner's NIC: what rdma_rxe sent, recorded, is what this crate has to send.
//!
//! `judge CAPTURES HOLE` looks at what a hole is for, and says in words what it saw. It links the crate `nic` that it is built with: the
//! project's, or the learner's. Because the learner's code runs in this process, it could also end it, and a process that has ended says
//! nothing about what it didn't get to see. So its exit status counts for nothing: see [`report`].
//!
//! There's more of it than of the NIC, because the NIC has each rule once, while its judge needs four things for each: what came before,
//! what comes now, what's wanted then, and a sentence for whoever got it wrong. Two NICs, their memory, the wire between them and the
//! contract that must hold are the crate `pair`'s, which the tests of `nic` use as well. The rest is here:
//!
//! | | what it's for |
//! |---|---|
//! | [`recorded`], [`talk`], [`side`], [`knock`], [`dump`] | what rdma_rxe sent is the best judge there is: recorded conversations are played with this NIC at one end, and it has to send the same bytes (lessons 14 to 17) |
//! | [`packets`], [`unseen`], [`states`], [`doorbell`] | bytes, states and bells of lessons 14 and 16, with what no recording has |
//! | [`table`] in a [`room`] | the connection manager's table, row by row (lesson 15) |
//! | [`posts`], [`arrivals`], [`gates`], [`writes`], [`reads`], [`reliable`], [`strangers`], [`atomics`] | one queue pair at an [`end`], in a [`situation`] that no recording has (lessons 16 to 19) |
//! | [`contract`], [`ladder`] | two of them and a bad wire: the smallest case that breaks the contract, drawn (lessons 18 and 19) |
//! | [`came`], [`report`] | code of others that panics, doesn't end, or ends the process |

mod arrivals;
mod atomics;
mod came;
mod contract;
mod doorbell;
mod dump;
mod end;
mod gates;
mod knock;
mod ladder;
mod packets;
mod posts;
mod reads;
mod recorded;
mod reliable;
mod report;
mod room;
mod side;
mod situation;
mod states;
mod strangers;
mod table;
mod talk;
mod unseen;
mod writes;

use std::path::Path;
use std::process::ExitCode;
use Check::{Made, Recorded};

/// What a check has seen, in words: all is right, or the first thing that is not.
type Verdict = Result<String, String>;

/// Looks at a hole: at what comes of the recorded packets, or only at what the judge makes up.
enum Check {
    Recorded(fn(&[recorded::Recorded]) -> Verdict),
    Made(fn() -> Verdict),
}

/// Each hole by its name.
const CHECKS: [(&str, Check); 36] = [
    ("14-1-since", Made(packets::since)),
    ("14-2-put", Made(packets::put)),
    ("14-3-encode", Recorded(packets::encode)),
    ("14-4-headers", Recorded(packets::headers)),
    ("14-5-icrc", Recorded(packets::icrc)),
    ("15-1-asked", Recorded(|frames| knock::knock(frames, knock::ASKED, table::asked))),
    ("15-2-accept", Recorded(|frames| knock::knock(frames, knock::ACCEPT, table::accepted))),
    ("15-3-table", Recorded(|frames| knock::knock(frames, knock::TABLE, table::rows))),
    ("15-4-ready", Recorded(|frames| knock::knock(frames, knock::READY, table::ready))),
    ("15-5-goodbye", Recorded(|frames| knock::knock(frames, knock::GOODBYE, table::goodbye))),
    ("15-6-again", Recorded(|frames| knock::knock(frames, knock::AGAIN, table::again))),
    ("16-1-moves", Made(states::moves)),
    ("16-2-send", Recorded(|frames| doorbell::played(frames, doorbell::SEND, posts::send))),
    ("16-3-packet", Recorded(|frames| doorbell::played(frames, doorbell::PACKET, posts::packet))),
    ("16-4-receive", Recorded(|frames| doorbell::played(frames, doorbell::RECEIVE, arrivals::receive))),
    ("16-5-place", Recorded(|frames| doorbell::played(frames, doorbell::PLACE, arrivals::place))),
    ("16-6-ack", Recorded(|frames| doorbell::played(frames, doorbell::ACK, posts::ack))),
    ("16-7-bell", Made(doorbell::bell)),
    ("17-1-gates", Made(gates::gates)),
    ("17-2-length", Made(writes::length)),
    ("17-3-write", Recorded(writes::place_write)),
    ("17-4-read", Recorded(reads::read_response)),
    ("17-5-bytes", Recorded(reads::bytes_received)),
    ("18-1-back", Made(reliable::go_back)),
    ("18-2-attempts", Made(reliable::try_again)),
    ("18-3-silence", Made(reliable::timers)),
    ("18-4-progress", Made(reliable::progress)),
    ("18-5-not-ready", Made(reliable::not_ready)),
    ("18-6-gap", Made(reliable::gap)),
    ("18-7-twice", Made(reliable::duplicate)),
    ("18-8-reads", Made(reliable::read_again)),
    ("19-1-verdict", Made(strangers::verdict)),
    ("19-2-refused", Made(strangers::refused)),
    ("19-3-flush", Made(strangers::flush)),
    ("19-4-atomic", Made(atomics::atomic)),
    ("19-5-once", Made(atomics::once)),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [captures, hole] = &arguments[..] else { return give_up("usage: judge CAPTURES HOLE") };
    let Some((_, check)) = CHECKS.iter().find(|(name, _)| name == hole) else {
        return give_up(&format!("there is no hole {hole}"));
    };
    let frames = match check {
        Made(_) => Vec::new(),
        Recorded(_) => match recorded::all(Path::new(captures)) {
            Ok(frames) if frames.is_empty() => return give_up(&format!("there are no packets in {captures}")),
            Ok(frames) => frames,
            Err(error) => return give_up(&format!("{error:#}")),
        },
    };
    report::begin();
    came::watch();
    let verdict = match check {
        Made(check) => check(),
        Recorded(check) => check(&frames),
    };
    report::end(&verdict);
    ExitCode::from(u8::from(verdict.is_err()))
}

fn give_up(why: &str) -> ExitCode {
    eprintln!("judge: {why}");
    ExitCode::from(2)
}
