//! What each event is for, in one sentence: what a call is to do, what has come back, what a packet that no step has says, and
//! which call has caused a step's packet.

use run::file::Line;
use run::story::Step;

/// How lines begin, and why they are there; of two that fit, the first is meant.
const LINES: [(&str, &str); 78] = [
    ("getaddrinfo", "Turns a host's name or number into an address."),
    ("rdma_create_event_channel", "Makes the channel through which the connection manager's events will come."),
    ("rdma_create_id", "Makes an id: what a socket is to TCP."),
    ("rdma_bind_addr", "Gives the id an address and a port of this machine."),
    ("rdma_listen", "From now on clients can knock at this port."),
    ("rdma_resolve_addr", "Looks for the device that leads to this address; the answer is an event."),
    ("rdma_resolve_route", "Looks for the way to the other side; the answer is an event."),
    ("rdma_set_option", "Says how long the device waits for an ACK before it sends again."),
    ("rdma_get_cm_event", "Sleeps until the connection manager has news."),
    ("rdma_ack_cm_event", "Gives the event back: until then the id could not be destroyed."),
    ("rdma_migrate_id", "Lets this connection's events come through a channel of its own."),
    ("rdma_create_qp", "Makes the queue pair, and brings it to INIT: one queue for what is sent, one for receives."),
    (
        "rdma_connect returned",
        "The call has only sent the question. An event will tell us whether there is a connection.",
    ),
    ("rdma_connect", "Asks the other side for a connection, and brings the number of our queue pair."),
    ("rdma_accept", "Takes the client: the queue pair goes to RTR and RTS, and the answer brings its number."),
    ("rdma_reject", "Says no, and can bring a reason."),
    ("rdma_disconnect", "Moves the queue pair to ERR, and tells the other side that this is the end."),
    ("rdma_join_multicast", "Makes the queue pair a member of a group: what is sent to the group also comes here."),
    ("rdma_leave_multicast", "Leaves the group."),
    ("rdma_destroy_qp", "Ends the queue pair: the device forgets it."),
    ("rdma_destroy_id", "Gives the id back."),
    ("rdma_destroy_event_channel", "Closes the channel: no more events."),
    ("ibv_open_device", "Opens the device: everything that we make from now on belongs to it."),
    ("ibv_close_device", "Gives the device back."),
    ("ibv_query_port", "Asks whether the port is up, and how long a packet may be."),
    ("ibv_query_gid", "Asks for the port's own address, which the other side needs."),
    ("ibv_alloc_pd", "Makes a protection domain: only queue pairs and memory of the same one work together."),
    ("ibv_dealloc_pd", "Gives the protection domain back: nothing may be left in it."),
    ("ibv_create_comp_channel", "Makes a channel that can wake a program when a request is done."),
    ("ibv_destroy_comp_channel", "Closes the channel that woke the program."),
    ("ibv_create_cq", "Makes the completion queue, where the device reports what is done."),
    ("ibv_destroy_cq", "Gives the completion queue back: no queue pair may use it any more."),
    ("ibv_create_srq", "Makes a queue of receives that many queue pairs share."),
    ("ibv_destroy_srq", "Gives the shared queue of receives back."),
    (
        "ibv_init_ah_from_wc",
        "Reads from the front of a datagram which machine has sent it, so that we know the way back.",
    ),
    ("ibv_create_ah", "Makes an address handle: the way to a machine, which each datagram names."),
    ("ibv_destroy_ah", "Gives the address handle back."),
    ("ibv_create_qp", "Makes the queue pair, in RESET: one queue for what is sent, one for receives."),
    ("ibv_destroy_qp", "Ends the queue pair: the device forgets it."),
    ("ibv_modify_qp Init", "To INIT: the queue pair has a port and rights, and takes receives."),
    ("ibv_modify_qp Rtr", "To RTR: the queue pair knows its peer, and takes packets from it."),
    ("ibv_modify_qp Rts", "To RTS: the queue pair may send."),
    ("ibv_modify_qp Reset", "Back to RESET: the queue pair forgets its peer and all that it held."),
    ("ibv_reg_mr", "Pins memory, and tells the device who may do what with it."),
    ("ibv_dereg_mr", "Takes the memory back from the device: its keys open nothing any more."),
    ("ibv_post_recv", "Lends the device memory for a message that will come."),
    ("ibv_post_srq_recv", "Lends the device memory for the next message of any connection."),
    ("ibv_post_send SEND", "Hands the device a message. It will land in the receive that the other side has posted."),
    (
        "ibv_post_send RDMA_WRITE",
        "Asks the device to put bytes into the other side's memory; no program there takes part.",
    ),
    (
        "ibv_post_send RDMA_READ",
        "Asks the device to fetch bytes from the other side's memory; no program there takes part.",
    ),
    (
        "ibv_post_send ATOMIC",
        "Asks the device to change eight bytes of the other side's memory in one piece, and to bring the old ones.",
    ),
    ("ibv_poll_cq", "Asks the completion queue again and again whether the request is done."),
    ("ibv_req_notify_cq", "Arms the completion queue: the next completion wakes the program."),
    ("ibv_get_cq_event", "Sleeps until something is done."),
    ("CM event: ADDR_RESOLVED", "The device that leads to the other side is found."),
    ("CM event: ROUTE_RESOLVED", "The way to the other side is found: now it can be asked for a connection."),
    ("CM event: CONNECT_REQUEST", "A client has knocked: the event brings a new id for it."),
    ("CM event: ESTABLISHED", "There is a connection, as this side sees it."),
    ("CM event: DISCONNECTED", "The connection has come to its end."),
    ("CM event: REJECTED", "The other side has said no."),
    ("CM event", "The connection manager has news."),
    ("MR: ", "The memory is registered: its address, and its keys."),
    ("QP: ", "This is the queue pair's state now."),
    ("SGE: ", "The memory of the request that is being posted."),
    ("WR: ", "The request as the device gets it."),
    ("WC: wr_id", "The device reports that a request has come to its end, and how."),
    ("our metadata", "This is what the other side needs to know about our memory."),
    ("the peer's metadata", "This is where the other side's memory is, and the key to it."),
    ("state: ", "The program goes from one state to the next."),
    ("the stages so far", "This is how the program came to where it failed."),
    ("TCP", "There is no connection manager here: TCP carries what both sides need to know about each other."),
    ("listen", "Waits at a TCP port for the other side, to tell it about our queue pair."),
    ("connect", "Goes to the other side by TCP, to tell it about our queue pair."),
    ("accept", "Takes the other side's TCP connection."),
    ("timerfd_create", "Makes a clock that can wake the program."),
    ("ours: ", "This is what the other side needs to know about our queue pair."),
    ("theirs: ", "This is what the other side has told us about its queue pair."),
    ("", "What the program says about itself."),
];

/// The same for packets that no step has.
const PACKETS: [(&str, &str); 13] = [
    ("REQ", "Somebody asks for a connection, and brings the number of a queue pair."),
    ("REP", "The question for a connection is answered with the other queue pair's number."),
    ("RTU", "Whoever asked for the connection is ready to use it."),
    ("REJ", "There will be no connection."),
    ("DREQ", "One side ends the connection."),
    ("DREP", "The end of the connection is acknowledged."),
    ("NAK", "The device refuses, and says why."),
    ("RNR NAK", "No receive is posted there: the sender is to try again after a while."),
    ("Acknowledge", "The device has all up to this number."),
    ("RDMA Read Response", "The device brings what was asked for."),
    ("RDMA Read Request", "The device asks for bytes of the other side's memory."),
    ("RDMA Write", "Bytes go into memory of the other side that the sender names."),
    ("Send", "Bytes go into memory that the other side has lent for a message."),
];

fn found(table: &[(&str, &'static str)], words: &str) -> &'static str {
    table.iter().find(|(begin, _)| words.starts_with(begin)).map_or("", |(_, why)| why)
}

/// Why a line is in the log.
pub(super) fn line(line: &Line) -> &'static str {
    match line.program.as_str() {
        Line::LAB => "What the lab does to the run.",
        Line::KERNEL => "What the machine's kernel says.",
        Line::DEVICE => "What the device has decided.",
        _ if line.tag() == Some("ERR") => "What has failed, and what to do next.",
        _ if line.tag().is_none() => "What the program prints for whoever runs it.",
        _ => found(&LINES, line.words()),
    }
}

/// Why a packet is there: its step's cause.
pub(super) fn packet(label: &str, step: Option<&Step>) -> String {
    let Some(Step { side, device, act, .. }) = step else { return found(&PACKETS, label).to_owned() };
    let calls = act.calls.join(", ");
    match device {
        true => format!(
            "The {}'s device answers the {}'s {calls}; no program has a part in it.",
            side.name(),
            act.side.name()
        ),
        false => format!("The {} calls {calls}, in {} ({}).", side.name(), act.stage, act.file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sentence_is_behind_another_that_takes_its_lines() {
        for table in [&LINES[..], &PACKETS] {
            for (begin, why) in table {
                assert_eq!(found(table, begin), *why, "{begin}");
                assert!(why.ends_with('.'), "{begin}");
            }
        }
    }
}
