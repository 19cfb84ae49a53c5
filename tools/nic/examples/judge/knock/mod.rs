//! Lesson 15: the recorded conversations of two connection managers, once with this one as the server and once as the client. It
//! gets what the peer sent; it has to send what rdma_rxe sent, and to tell its program what that was told.

mod side;

use crate::recorded::Recorded;
use crate::Verdict;
use nic::cm::{Mad, QP1};
use nic::packet::Packet;
use roce::cm::{Kind, LOCAL_ID};
use side::Side;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The holes in their order: what a difference is a fault of.
type Hole = usize;
pub const ASKED: Hole = 1;
pub const ACCEPT: Hole = 2;
pub const TABLE: Hole = 3;
pub const READY: Hole = 4;
pub const GOODBYE: Hole = 5;
pub const AGAIN: Hole = 6;

/// A message as it was recorded.
pub struct CmFrame<'a> {
    pub frame: &'a Recorded,
    pub from: IpAddr,
    pub mad: Mad,
}

/// All messages of one connection.
struct Talk<'a> {
    client: IpAddr,
    server: IpAddr,
    messages: Vec<CmFrame<'a>>,
}

/// Replays all conversations, and says the first difference that a hole up to this one has to answer for. With later holes open
/// a conversation ends early. Then come the situations that hardly a capture has.
pub fn knock(frames: &[Recorded], hole: Hole, situations: fn() -> Result<(), String>) -> Verdict {
    let (mut seen, mut whole) = (Seen::default(), 0);
    let talks = talks(frames);
    for talk in &talks {
        for address in [talk.server, talk.client] {
            let mut side = Side::new(talk, address);
            match side.replay() {
                Ok(()) => whole += 1,
                Err((cause, said)) if cause <= hole => return Err(said),
                Err(_) => {}
            }
            seen.add(&side);
        }
    }
    situations()?;
    Ok(format!("{}; {whole} of {} conversations come to their end.", seen.of(hole), talks.len() * 2))
}

/// How often a message of each kind has come, was sent, and was sent again.
#[derive(Default)]
struct Seen {
    heard: BTreeMap<&'static str, usize>,
    sent: BTreeMap<&'static str, usize>,
    again: usize,
}

impl Seen {
    fn add(&mut self, side: &Side) {
        for (counts, kinds) in [(&mut self.heard, &side.heard), (&mut self.sent, &side.sent)] {
            kinds.iter().for_each(|kind| *counts.entry(kind.short()).or_default() += 1);
        }
        let kinds: BTreeSet<&str> = side.sent.iter().map(|kind| kind.short()).collect();
        self.again += side.sent.len() - kinds.len();
    }

    /// What a hole is about: what was recorded of it, and what was not.
    fn of(&self, hole: Hole) -> String {
        let count = |counts: &BTreeMap<&str, usize>, kinds: &[&str]| -> usize {
            kinds.iter().filter_map(|kind| counts.get(kind)).sum()
        };
        match hole {
            ASKED => format!(
                "{} REQs get what rdma_rxe gave them, and so do one that comes again, a stale one, a stranger's and one too many",
                count(&self.heard, &["REQ"])
            ),
            ACCEPT => format!(
                "{} REPs are as rdma_rxe sent them, each field is the connection's own, and each is sent again if no answer comes",
                count(&self.sent, &["REP"])
            ),
            TABLE => format!(
                "{} messages mean what they meant to rdma_rxe, and each row of the table does what it should",
                self.heard.values().sum::<usize>()
            ),
            READY => format!(
                "{} RTUs are as rdma_rxe sent them, and there is none in any other phase",
                count(&self.sent, &["RTU"])
            ),
            GOODBYE => format!(
                "{} DREQs and DREPs are as rdma_rxe sent them, and each phase says goodbye in its own way",
                count(&self.sent, &["DREQ", "DREP"])
            ),
            _ => format!(
                "{} messages are sent again as rdma_rxe did, a question that nobody answers is given up, and TimeWait ends",
                self.again
            ),
        }
    }
}

/// The captures of two who make one connection.
fn talks(frames: &[Recorded]) -> Vec<Talk<'_>> {
    // First those in which nothing is lost.
    let mut captures: BTreeMap<(bool, &str), Vec<CmFrame>> = BTreeMap::new();
    for message in frames.iter().filter_map(message) {
        captures.entry((message.frame.is_faulty, &message.frame.capture)).or_default().push(message);
    }
    captures.into_values().filter_map(talk).collect()
}

fn talk(messages: Vec<CmFrame<'_>>) -> Option<Talk<'_>> {
    let asks = messages.iter().filter(|message| message.mad.kind() == Kind::ConnectRequest);
    let connections: BTreeSet<u64> = asks.map(|message| message.mad.get(&LOCAL_ID)).collect();
    let first = messages.first().filter(|first| connections.len() == 1 && first.mad.kind() == Kind::ConnectRequest)?;
    let (client, server) = (first.from, first.frame.packet()?.datagram.dst);
    Some(Talk { client, server, messages })
}

/// A frame, if it is such a message.
pub fn message(frame: &Recorded) -> Option<CmFrame<'_>> {
    let theirs = frame.packet()?;
    let packet = Packet::decode(&theirs).filter(|packet| packet.dest_qp == QP1)?;
    Some(CmFrame { frame, from: theirs.datagram.src, mad: Mad::read(&packet.payload)? })
}
