//! What can go wrong, and for each: whose fault it looks like, what to look at, and the page about it.

use serde::Serialize;

/// Whose fault it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// A program, on the client's machine or the server's.
    Program,
    /// The program or machine that was asked for something.
    Peer,
    /// What lies between the machines.
    Network,
    /// A device.
    Device,
    /// The capture does not tell.
    Unknown,
}

/// What went wrong. The names are those of `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Nobody answers a ConnectRequest, or the search for a datagram service.
    NoAnswer,
    /// A ConnectReject of the connection manager's, or a service that is not there.
    Rejected,
    /// A ConnectReject of the program's.
    Declined,
    /// The peer has a connection, and was never told that it is ready to use.
    NeverReady,
    /// A NAK: key, range or permission.
    RemoteAccess,
    /// A NAK: the request breaks a rule.
    InvalidRequest,
    /// A NAK: the responder could not.
    RemoteOperational,
    /// The peer expects other PSNs than it gets, from the first one on.
    WrongPsn,
    /// A request was sent again and again, though it was answered each time.
    AnswersNotTaken,
    /// A request was sent again and again, and had no answer.
    SilentPeer,
    /// No receive was posted, until somebody gave up.
    NotReadyToTheEnd,
    /// Somebody hung up while requests were under way.
    HungUp,
    /// Nobody answers the goodbye.
    GoodbyeUnanswered,
    /// No receive was posted for a while.
    NotReady,
    /// A packet was damaged on its way.
    Damaged,
    /// Packets came in another order than they were sent.
    Overtaken,
    /// The same packet came twice.
    Doubled,
    /// A request was lost, or came late, and was sent again.
    Lost,
    /// The answer to a request was lost, or came late.
    AnswerLost,
    /// A message of the connection manager was lost, or came late.
    MessageLost,
    /// A queue on the way was long: marks, notifications, pauses.
    Congestion,
    /// Something is unfinished at the end of the capture.
    Unfinished,
}

use Blame::*;
use Cause::*;

/// For each: whose fault, what to do, the page.
const TABLE: [(Cause, Blame, &str, &str); 22] = [
    (NoAnswer, Unknown, "is the server's machine up, its device too, and does a firewall drop UDP port 4791?", "docs/troubleshooting.md"),
    (Rejected, Peer, "is the server's program started, with this port and port space? rdma resource show cm_id lists who listens", "docs/01_cm_listen.md"),
    (Declined, Peer, "the program of the side that rejects called rdma_reject, failed, or ended without an answer: look at its log", "docs/01_cm_listen.md"),
    (NeverReady, Program, "the client did not go on after the ConnectReply, or was not heard: look at its log", "docs/cm_events.md"),
    (RemoteAccess, Program, "compare address, rkey and length with what the other side registered, and its access flags; is it still registered, and in its queue pair's protection domain?", "docs/04_rdma_write.md"),
    (InvalidRequest, Program, "the same path_mtu on both sides, the operation in qp_access_flags, no more READs and atomics at a time than max_dest_rd_atomic? For a SEND: a receive that is long enough?", "docs/completions.md"),
    (RemoteOperational, Peer, "its receive: long enough, the right lkey and protection domain, registered with IBV_ACCESS_LOCAL_WRITE?", "docs/completions.md"),
    (WrongPsn, Program, "rq_psn of one side is sq_psn of the other: see what ibv_modify_qp got for RTR and RTS", "docs/08_handle_api.md"),
    (AnswersNotTaken, Program, "dest_qp_num and address of the side that answers: are they those of the side that asks?", "docs/08_handle_api.md"),
    (SilentPeer, Unknown, "did its program or machine end, is a cable pulled, is its queue pair in ERR? If it never answered: number, address and state of its queue pair; if only long messages had no answer: the MTU on the way", "docs/when_packets_are_lost.md"),
    (NotReadyToTheEnd, Peer, "post receives before the peer sends; with rnr_retry_count 7 it waits without end", "docs/03_metadata_exchange.md"),
    (HungUp, Program, "who hangs up has to wait for the other side's last message; what is flushed may have been carried out", "docs/07_disconnect_flush.md"),
    (GoodbyeUnanswered, Peer, "its machine is gone, or cannot be reached any more", "docs/02_resources.md"),
    (NotReady, Peer, "post receives earlier, and more of them; how long each try waits, min_rnr_timer says", "docs/03_metadata_exchange.md"),
    (Damaged, Network, "a cable, a transceiver or a switch; if all packets of one device are so, how it computes the ICRC", "docs/when_packets_are_lost.md"),
    (Overtaken, Network, "are there several paths between the machines? To RC a packet that comes too early means that one is lost", "docs/when_packets_are_lost.md"),
    (Doubled, Unknown, "RC ignores the second one, a program with datagrams has to; rdma_rxe of Linux 6.1 sends twice now and then", "docs/when_packets_are_lost.md"),
    (Lost, Network, "drops on the way to the receiver: ethtool -S, the switch's counters; without flow control some loss is normal", "docs/when_packets_are_lost.md"),
    (AnswerLost, Network, "drops on the way back to the side that asked: ethtool -S, the switch's counters", "docs/when_packets_are_lost.md"),
    (MessageLost, Network, "drops between the machines, or a program that takes its time; the connection manager's timers are long", "docs/when_packets_are_lost.md"),
    (Congestion, Network, "who else sends through the same port? On switches the counters of marks and pauses, on NICs those of CNPs and of pauses tell since when", "docs/real_world.md"),
    (Unfinished, Unknown, "record longer, or look at both programs' logs", "docs/troubleshooting.md"),
];

impl Cause {
    /// It's concluded from a packet that isn't there, or from the order of those that are, and not said by a packet itself.
    pub(super) fn rests_on_a_missing_packet(self) -> bool {
        matches!(
            self,
            NoAnswer
                | NeverReady
                | AnswersNotTaken
                | SilentPeer
                | HungUp
                | GoodbyeUnanswered
                | Overtaken
                | Lost
                | AnswerLost
                | MessageLost
                | Unfinished
        )
    }

    fn row(self) -> &'static (Cause, Blame, &'static str, &'static str) {
        &TABLE[self as usize]
    }

    /// Whose fault it looks like.
    pub fn blame(self) -> Blame {
        self.row().1
    }

    /// Whether the protocol mends it by itself.
    pub fn is_mended(self) -> bool {
        (NotReady..=Congestion).contains(&self)
    }

    /// What to look at, or to change.
    pub fn look(self) -> &'static str {
        self.row().2
    }

    /// The page that teaches it.
    pub fn page(self) -> &'static str {
        self.row().3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_there() {
        let root = run::files::root().unwrap();
        let missing: Vec<_> = TABLE.iter().filter(|row| !root.join(row.3).is_file()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn each_row_stands_where_its_cause_says() {
        assert!(TABLE.iter().enumerate().all(|(at, row)| row.0 as usize == at));
    }
}
