//! Lesson 08: every call, status and packet; attributes that are wrong; and `ibv_rc_pingpong` as its peer.

use crate::support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use support::{each, programs, Check, Run, CLIENT, SERVER};
use wire::aeth::{Nak, Syndrome};

const WRITE: [&str; 2] = ["C RC RDMA Write Only", "S RC Acknowledge"];

/// Runs both sides, which meet on a TCP port that nobody else has: runs at a time share this machine's.
fn lesson(server: &str, client: &str) -> Check {
    let port = free_port();
    Run::lesson("08", &format!("-p {port} {server}"), &format!("-p {port} {client}")).check()
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Why each NAK of a run refuses.
fn naks(check: &Check) -> Vec<Nak> {
    let mut naks = Vec::new();
    let look = |_: &str, packet: &wire::Packet| {
        if let Some(Syndrome::Nak(nak)) = packet.aeth().map(|aeth| aeth.verdict()) {
            naks.push(nak);
        }
    };
    check.each_packet(look);
    naks
}

#[test]
fn the_complete_program_needs_no_connection_manager() {
    let check = lesson("", "").exits(0, 0);
    for side in [SERVER, CLIENT] {
        check.logs_in_order(side, &["state=RESET", "state=INIT", "state=RTR mtu=1024 B", "state=RTS"]);
        for attribute in ["port_num=1: ", "path_mtu=3: ", "dest_qp_num=", "dgid=::ffff:127.0.0.", "retry_cnt=6: "] {
            check.logs(side, attribute);
        }
    }
    check.logs_in_order(CLIENT, &["status=IBV_WC_SUCCESS", "RDMA write completed successfully!", "ibv_destroy_qp"]);
    check.logs(CLIENT, "Wc { wr_id: 1, status: RDMA_WC_SUCCESS, opcode: Write, byte_len: 12 }");
    check.logs(SERVER, "the memory holds 4096 bytes: \"Test message\"");
    check.packets_are(&[&WRITE]);
}

#[test]
fn every_call_and_every_error_of_the_list() {
    let check = lesson("", "--calls").exits(0, 0);
    let says = [
        "dereg_mr again: Handle { slot: 0, generation: 0 } was given back",
        "reg_mr: insufficient permissions: REMOTE_WRITE without LOCAL_WRITE",
        "dereg_mr of a queue pair: Handle { slot: 1, generation: 0 } is no memory region",
        "post_send in RESET: the queue pair takes no such request in its state",
        "post_write returned 1: Wc { wr_id: 1, status: RDMA_WC_SUCCESS, opcode: Write, byte_len: 11 }",
        "bytes 4090..4101 are outside the region",
        "post_read: Wc { wr_id: 2, status: RDMA_WC_SUCCESS, opcode: Read, byte_len: 11 }: \"Hello RDMA!\"",
        "received: \"Hello RDMA!\"",
        "opcode: Write, byte_len: 11 }; and 0 more",
        "poll_cq after destroy_qp: Handle { slot: 1, generation: 0 } was given back",
        "has the slot of Handle { slot: 1, generation: 0 }, and is Handle { slot: 1, generation: 1 }",
    ];
    check.logs_in_order(CLIENT, &says);
    check.logs(CLIENT, "Wc { wr_id: 4, status: RDMA_WC_SUCCESS, opcode: Send, byte_len: 11 }");
    check.logs(CLIENT, "Wc { wr_id: 3, status: RDMA_WC_SUCCESS, opcode: Receive, byte_len: 11 }");
    let read = ["C RC RDMA Read Request", "S RC RDMA Read Response Only"];
    let there_and_back = ["C RC Send Only", "S RC Acknowledge", "S RC Send Only", "C RC Acknowledge"];
    check.packets_are(&[&WRITE, &read, &there_and_back, &WRITE, &WRITE]);
}

#[test]
fn what_the_peer_refuses_has_a_nak_and_a_way_back() {
    for option in ["--wrong-rkey", "--beyond-end", "--no-permission"] {
        let check = lesson("", option).exits(0, 0);
        let way = ["IBV_WC_REM_ACCESS_ERR", "RDMA_WC_REM_ACCESS_ERR, opcode: Write, byte_len: 0", "state=ERR"];
        check.logs_in_order(CLIENT, &way);
        check.logs_in_order(
            CLIENT,
            &["IBV_WC_WR_FLUSH_ERR", "without a fault: Wc { wr_id: 2, status: RDMA_WC_GENERAL_ERR"],
        );
        check.logs_in_order(
            CLIENT,
            &["state=ERR", "state=RESET", "state=INIT", "state=RTR", "state=RTS", "after a new start"],
        );
        check.logs_in_order(SERVER, &["state=RTS", "state=ERR", "state=RESET", "state=INIT", "state=RTR", "state=RTS"]);
        check.logs(SERVER, "the memory holds 4096 bytes: \"Test message\"");
        check.packets_are(&[&WRITE, &WRITE]);
        assert_eq!(naks(&check), [Nak::RemoteAccess], "{option}");
    }
}

#[test]
fn what_our_own_device_refuses_is_no_fault_of_the_peer() {
    let check = lesson("", "--no-local-write").exits(0, 0);
    check.logs_in_order(
        CLIENT,
        &["IBV_WC_LOC_PROT_ERR", "RDMA_WC_LOC_PROT_ERR, opcode: Read", "state=ERR", "after a new start"],
    );
    check.does_not_log(SERVER, "state=ERR");
    assert_eq!(naks(&check), []);
}

#[test]
fn a_full_queue_says_so_and_takes_more_when_polled() {
    let check = lesson("", "--queue-full").exits(0, 0);
    check.logs(
        CLIENT,
        "4 are posted; the next one: the queue is full: 4 requests are posted and not polled. Next: Poll",
    );
    check.logs_in_order(
        CLIENT,
        &["wr_id=4", "the queue is full", "WC: wr_id=1 ", "wr_id=5 len=12", "one more is posted"],
    );
    assert_eq!(check.count(CLIENT, "opcode=IBV_WC_RDMA_WRITE"), 5);
}

/// The server's options, the client's, how they end, and what each says.
type Wrong<'a> = (&'a str, &'a str, [i32; 2], &'a [&'a str], &'a [&'a str]);

#[test]
fn each_wrong_attribute_ends_in_words() {
    let nobody_answers = "IBV_WC_RETRY_EXC_ERR";
    let failed = "work request 1 ended with RDMA_WC_GENERAL_ERR";
    let empty = "the memory holds 4096 bytes: \"\"";
    let rts = "the queue pair takes no such request in its state";
    let runs: [Wrong; 9] = [
        ("", "--wrong dest_qp_num", [0, 1], &[empty], &[nobody_answers, failed]),
        // The WRITE arrives, and its ACK goes elsewhere.
        ("--wrong dest_qp_num", "", [0, 1], &["\"Test message\""], &[nobody_answers, failed]),
        // The server sends no requests, so what the client expects of them does not matter.
        ("", "--wrong rq_psn+1", [0, 0], &["\"Test message\""], &["successfully"]),
        ("--wrong rq_psn-1", "", [0, 1], &[empty], &[nobody_answers, failed]),
        // The server takes it for a packet that it has had already, and acknowledges what it does not write.
        ("--wrong rq_psn+1", "", [0, 0], &[empty], &["successfully"]),
        ("--wrong path_mtu", "--len 500", [0, 1], &[empty], &["IBV_WC_REM_INV_REQ_ERR", failed]),
        ("", "--len 500 --wrong path_mtu", [0, 1], &[empty], &["IBV_WC_REM_INV_REQ_ERR", failed]),
        ("", "--wrong rts", [1, 1], &["the peer has hung up"], &[rts, "sending needs RTS"]),
        // To be written and to acknowledge, RTR is enough.
        ("--wrong rts", "", [0, 0], &["state=RTR", "\"Test message\""], &["successfully"]),
    ];
    each(&runs, |(server, client, exits, servers, clients)| {
        let check = lesson(server, client).exits(exits[0], exits[1]);
        servers.iter().for_each(|text| check.logs(SERVER, text));
        clients.iter().for_each(|text| check.logs(CLIENT, text));
        match (*server, *client) {
            ("--wrong rq_psn-1", _) => assert_eq!(naks(&check)[0], Nak::PsnSequence),
            (_, options) if options.contains("--len 500") => assert_eq!(naks(&check), [Nak::InvalidRequest]),
            _ => assert_eq!(naks(&check), []),
        }
    });
}

#[test]
fn surroundings_that_are_wrong_are_named() {
    for (server, client, says) in
        [("--device mlx5_0", "", "there is no RDMA device \"mlx5_0\""), ("--pingpong", "", "the peer says")]
    {
        let check = lesson(server, client).exits(1, 1);
        check.logs(SERVER, says);
        // It is told by an end of the stream, or by a reset: whichever comes first.
        check.logs(CLIENT, "Look at the other side's log");
    }
}

/// A server that gives its memory as this address and length; all else is as the client has it.
fn server_with(memory: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut card = Vec::new();
        BufReader::new(stream.try_clone().unwrap()).read_until(0, &mut card).unwrap();
        let card = String::from_utf8(card).unwrap();
        let fields: Vec<&str> = card.split(':').collect();
        let (addr, len) = memory.split_once('+').unwrap();
        stream.write_all(format!("{}:{addr}:38e:{len}\0", fields[..5].join(":")).as_bytes()).unwrap();
    });
    port
}

#[test]
fn no_address_that_a_peer_gives_makes_it_panic() {
    let none = "the peer says";
    let gone = "Look at the other side's log";
    let cards =
        [("ffffffffffffffff+1000", none), ("1000+0", none), ("0+0", none), ("1+1", gone), ("fffffffffffffff0+f", gone)];
    each(&cards, |(memory, says)| {
        let client = format!("lesson-08 client -a 127.0.0.1 -p {} --beyond-end", server_with(memory));
        let check = programs("true", &client).exits(0, 1);
        assert!(check.line(CLIENT, "] ERR  ").contains(says), "{memory}: {}", check.all());
    });
}

#[test]
fn it_plays_with_ibv_rc_pingpong_on_either_side() {
    let port = free_port();
    let theirs = format!("ibv_rc_pingpong -g 0 -p {port}");
    let ours = |side: &str| format!("lesson-08 {side} --pingpong -p {port}");
    let rounds = "1000 rounds of 4096 bytes each way";
    let check = programs(&ours("server"), &format!("{theirs} 127.0.0.1")).exits(0, 0);
    check.logs(SERVER, rounds);
    check.logs(CLIENT, "1000 iters in ");
    let check = programs(&theirs, &format!("{} -a 127.0.0.1", ours("client"))).exits(0, 0);
    check.logs(CLIENT, rounds);
    check.logs(SERVER, "1000 iters in ");
}
