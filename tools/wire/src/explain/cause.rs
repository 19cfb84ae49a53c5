//! What can go wrong, and for each: whose fault it looks like, what to look at, and the page about it.

use roce::aeth::Nak;
use serde::Serialize;

/// Whose fault it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// A program, on the client's machine or the server's.
    Program,
    /// The program or machine that was asked for something.
    Peer,
    /// What is between the machines.
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
    /// An answer of the connection manager's was sent, and never got through.
    NeverThrough,
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
    /// A request was sent again and again, though it was answered, and to the right queue pair.
    AnswersLost,
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
    /// A request was sent again, and the capture has nothing that says why.
    SentAgain,
    /// A message of the connection manager was lost, or came late.
    MessageLost,
    /// A queue on the way was long: marks, notifications, pauses.
    Congestion,
    /// Something is unfinished at the end of the capture.
    Unfinished,
}

use Blame::*;
use Cause::*;

/// For each cause: whose fault it is, what to do, and the page.
const TABLE: [(Cause, Blame, &str, &str); 25] = [
    (NoAnswer, Unknown, "are the server's machine and its device up, and does a firewall drop UDP port 4791? Does its program take longer to accept than the other side waits?", "docs/troubleshooting.md"),
    (NeverThrough, Unknown, "what drops packets between the recorder and the side that asks again: a firewall for UDP port 4791 in one direction, a route, a VLAN? Record on that machine as well", "docs/troubleshooting.md"),
    (Rejected, Peer, "the reason in the ConnectReject", "docs/cm_events.md"),
    (Declined, Peer, "the program of the side that rejects called rdma_reject, failed, or ended without an answer: look at its log", "docs/01_cm_listen.md"),
    (NeverReady, Unknown, "either the program that asked didn't go on after the ConnectReply (look at its log), or its ReadyToUse was lost before the recorder", "docs/cm_events.md"),
    (RemoteAccess, Program, "compare address, rkey and length with what the other side registered, and its access flags; is it still registered, in the protection domain of that queue pair? If it's a window: is it bound to this queue pair, and hasn't it been bound again since?", "docs/04_rdma_write.md"),
    (InvalidRequest, Program, "the same path_mtu on both sides, the operation in qp_access_flags, no more READs at a time than agreed (max_rd_atomic, max_dest_rd_atomic)? For a SEND: a receive that is long enough?", "docs/completions.md"),
    (RemoteOperational, Peer, "its receive: long enough, the right lkey and protection domain, registered with IBV_ACCESS_LOCAL_WRITE?", "docs/completions.md"),
    (WrongPsn, Program, "rq_psn of one side is sq_psn of the other: see what ibv_modify_qp got for RTR and RTS", "docs/08_handle_api.md"),
    (AnswersNotTaken, Unknown, "dest_qp_num and address of the side that answers: are they those of the side that asks? If they are, look for drops on the way back", "docs/08_handle_api.md"),
    (AnswersLost, Unknown, "drops between the recorder and the side that asks: ethtool -S, a firewall; record on that machine as well. Is its queue pair still in RTS?", "docs/when_packets_are_lost.md"),
    (SilentPeer, Unknown, "did its program or machine end, is a cable pulled, or its queue pair in ERR after an error of its own? If it never answered: number, address and state of its queue pair. If only long packets have no answer: the path's MTU", "docs/when_packets_are_lost.md"),
    (NotReadyToTheEnd, Peer, "post receives before the peer sends; with rnr_retry_count 7 the peer waits without end", "docs/03_metadata_exchange.md"),
    (HungUp, Program, "before you hang up, wait for the other side's last message; a flushed request may have been carried out", "docs/07_disconnect_flush.md"),
    (GoodbyeUnanswered, Unknown, "is its machine gone? If it still sends, the goodbyes or their answers are lost on the way", "docs/02_resources.md"),
    (NotReady, Peer, "post receives earlier, and more of them; min_rnr_timer sets how long each try waits", "docs/03_metadata_exchange.md"),
    (Damaged, Network, "a cable, a transceiver or a switch; if all packets of one device are damaged, check how it computes the ICRC", "docs/when_packets_are_lost.md"),
    (Overtaken, Unknown, "are there several paths between the machines? If a packet comes too early, RC concludes that another one is lost; if nobody asks for it again, perhaps only the recorder mixed them up", "docs/when_packets_are_lost.md"),
    (Doubled, Unknown, "RC ignores the second one, but with datagrams your program must do that; rdma_rxe of Linux 6.1 sends a packet twice now and then", "docs/when_packets_are_lost.md"),
    (Lost, Network, "drops on the way to the receiver: ethtool -S, the switch's counters; without flow control some loss is normal. If nothing is dropped: a timer (timeout) that is shorter than the answer takes", "docs/when_packets_are_lost.md"),
    (AnswerLost, Network, "drops on the way back to the side that asked: ethtool -S, the switch's counters; or a timer (timeout) that is shorter than the answer takes", "docs/when_packets_are_lost.md"),
    (SentAgain, Unknown, "record both directions; the answers then show whether the request or its answer was lost, or the timer was too short", "docs/when_packets_are_lost.md"),
    (MessageLost, Network, "drops between the machines, or a program that takes its time; the connection manager's timers are long", "docs/when_packets_are_lost.md"),
    (Congestion, Network, "who else sends through the same port? The switches' counters of marks and pauses, and the NICs' counters of CNPs and pauses, show since when", "docs/real_world.md"),
    (Unfinished, Unknown, "record longer, or look at both programs' logs", "docs/troubleshooting.md"),
];

impl Cause {
    /// It's concluded from a packet that isn't there, or from the order of those that are, and not said by a packet itself.
    pub(super) fn rests_on_a_missing_packet(self) -> bool {
        matches!(
            self,
            NoAnswer
                | NeverThrough
                | NeverReady
                | AnswersNotTaken
                | AnswersLost
                | SentAgain
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

    /// What a NAK means; None for the one that only asks for a packet again.
    pub(super) fn of(nak: Nak) -> Option<Cause> {
        match nak {
            Nak::PsnSequence => None,
            Nak::RemoteAccess => Some(RemoteAccess),
            Nak::InvalidRequest | Nak::InvalidRdRequest => Some(InvalidRequest),
            Nak::RemoteOperational | Nak::Unknown(_) => Some(RemoteOperational),
        }
    }

    /// Whose fault it looks like.
    pub fn blame(self) -> Blame {
        self.row().1
    }

    /// Whether the protocol mends it by itself.
    pub fn is_mended(self) -> bool {
        (NotReady..=Congestion).contains(&self)
    }

    /// It says what the capture doesn't tell, and nothing that went wrong.
    pub fn is_doubt(self) -> bool {
        self == Unfinished
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
