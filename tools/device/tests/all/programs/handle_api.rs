//! Lesson 08: both parts, every call, status and packet; and queue pairs moved by hand with `ibv_rc_pingpong` as their peer.

use super::support::{each, example, free_port, programs, Check, Run, CLIENT, SERVER};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

/// Runs both sides.
fn lesson(server: &str, client: &str) -> Check {
    Run::lesson("08", server, client).check()
}

#[test]
fn a_queue_pair_moved_by_hand_needs_no_connection_manager() {
    let check = lesson("", "").exits(0, 0);
    for side in [SERVER, CLIENT] {
        check.logs_in_order(side, &["state=RESET", "state=INIT", "state=RTR mtu=1024 B", "state=RTS"]);
        for attribute in ["Init { port: 1, ", "dgid: ::ffff:127.0.0.", "retry_cnt: 6, "] {
            check.logs(side, attribute);
        }
    }
    check.logs_in_order(CLIENT, &["status=IBV_WC_SUCCESS", "the WRITE is done", "ibv_destroy_qp"]);
    check.logs(SERVER, "the memory holds 4096 bytes: \"Test message\"");
}

#[test]
fn the_complete_program_does_with_handles_what_the_first_part_does() {
    let check = lesson("", "--part handles").exits(0, 0);
    let says = [
        "post_write returned 1: Wc { wr_id: 1, status: Success, opcode: Write, byte_len: 12 }",
        "RDMA write completed successfully!",
        "ibv_destroy_qp",
    ];
    check.logs_in_order(CLIENT, &says);
    check.logs(SERVER, "the memory holds 4096 bytes: \"Test message\"");
    check.packets_are(&[&["C RC RDMA Write Only", "S RC Acknowledge"]]);
}

#[test]
fn every_call_and_every_error_of_the_list() {
    let check = lesson("", "--part calls").exits(0, 0);
    let says = [
        "dereg_mr again: handle 1 is no memory region, or none any more",
        "post_send in RESET: the queue pair takes no request: it leads nowhere",
        "post_write returned 1: Wc { wr_id: 1, status: Success, opcode: Write, byte_len: 11 }",
        "bytes 4090..4101 are outside the region",
        "post_read: Wc { wr_id: 2, status: Success, opcode: Read, byte_len: 11 }: \"Hello RDMA!\"",
        "received: \"Hello RDMA!\"",
        "post_write, the third: the queue is full: 2 requests are posted and not polled. Next: Poll",
        "one is polled, and one more is posted",
        "operation 6 completed successfully",
        "operation 7 completed successfully",
        "IBV_WC_REM_ACCESS_ERR",
        "post_write with a wrong key: Wc { wr_id: 8, status: RemAccessErr, opcode: Write, byte_len: 0 }",
        "after a new start: Wc { wr_id: 9, status: Success",
        "destroy_qp again: handle 3 is no queue pair, or none any more",
    ];
    check.logs_in_order(CLIENT, &says);
    // What the peer refuses has a NAK, and a way back.
    let way = ["state=ERR", "state=RESET", "state=INIT", "state=RTR", "state=RTS", "after a new start"];
    check.logs_in_order(CLIENT, &way);
    check.logs(SERVER, "the memory holds 4096 bytes: \"Hello RDMA!\"");
    check.logs(CLIENT, "Wc { wr_id: 4, status: Success, opcode: Send, byte_len: 11 }");
    check.logs(CLIENT, "Wc { wr_id: 3, status: Success, opcode: Receive, byte_len: 11 }");
}

#[test]
fn surroundings_that_are_wrong_are_named() {
    let check = lesson("--device mlx5_0", "").exits(1, 1);
    check.logs(SERVER, "there is no RDMA device \"mlx5_0\"");
    // It is told by an end of the stream, or by a reset: whichever comes first.
    check.logs(CLIENT, "Look at the other side's log");
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
    each(&["ffffffffffffffff+1000", "1000+0", "0+0"], |memory| {
        let client = format!("lesson-08 client -a 127.0.0.1 -p {}", server_with(memory));
        let check = programs("true", &client).exits(0, 1);
        assert!(check.line(CLIENT, "] ERR  ").contains("the peer says"), "{memory}: {}", check.all());
    });
}

#[test]
fn it_plays_with_ibv_rc_pingpong_on_either_side() {
    let port = free_port();
    let theirs = format!("ibv_rc_pingpong -g 0 -p {port}");
    let ours = |side: &str| format!("{} {side} -p {port}", example("rc_pingpong"));
    let rounds = "1000 rounds of 4096 bytes each way";
    let check = programs(&ours("server"), &format!("{theirs} 127.0.0.1")).exits(0, 0);
    check.logs(SERVER, rounds);
    check.logs(CLIENT, "1000 iters in ");
    let check = programs(&theirs, &format!("{} -a 127.0.0.1", ours("client"))).exits(0, 0);
    check.logs(CLIENT, rounds);
    check.logs(SERVER, "1000 iters in ");
}
