//! Datagrams need no connection: one question tells to which queue pair they go, and with which key; whatever is lost.

use crate::pair::managers::{bytes, World, ADDRESSES, FEW, PORT};
use crate::pair::{all, faults, hold, Fault, Faults, CLIENT, OURS, SERVER};
use nic::cm::{Cm, CmEffect, Event, EventKind, Space, SIDR_REP_PRIVATE, SIDR_REQ_PRIVATE, UDP_QKEY};
use nic::errno::Errno;
use nic::time::Time;
use proptest::prelude::*;
use std::net::IpAddr;

/// What the server's program says.
const ANSWER: &[u8] = &[7; SIDR_REP_PRIVATE];

/// What the server's program does about a question.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Program {
    Accepts,
    Rejects,
    Ends,
}

fn react(world: &mut World<Program>, side: usize, event: &Event) {
    let (program, local) = (world.programs, event.connection);
    if event.kind == EventKind::ConnectRequest {
        let connection = world.cms[side].get(local).unwrap();
        (connection.owner, connection.qpn) = (Some(9), 55);
        world.act(side, |cm, now, out| match program {
            Program::Accepts => cm.accept(local, ANSWER, now, out).unwrap(),
            Program::Rejects => cm.reject(local, ANSWER, now, out).unwrap(),
            Program::Ends => cm.close(9, local, now, out),
        });
    }
}

/// A client asks for a port of a server, and all happens to the end of the last timer. Gives the client's number for it.
fn ask(faults: Faults, program: Program, port: u16) -> (World<Program>, u32) {
    let mut world = World::new(faults, program, react);
    world.cms[SERVER].listen(Space::Udp, PORT, 7, 0).unwrap();
    let local = world.cms[CLIENT].open(Some(8), ADDRESSES[SERVER], 5 << 32);
    let private = [3; SIDR_REQ_PRIVATE];
    world.act(CLIENT, |cm, now, out| cm.resolve(local, port, 40_000, &private, now, out));
    world.run();
    (world, local)
}

/// What is asked sixteen times is answered; and a repeated question is no new one for the program.
#[test]
fn whatever_happens_to_messages_the_client_learns_the_queue_pair() {
    hold(500, faults(1, FEW), |faults| {
        let (mut world, local) = ask(faults, Program::Accepts, PORT);
        let [asked] = &world.told[SERVER][..] else { panic!("{:?}", world.told) };
        prop_assert_eq!(
            (asked.owner, asked.kind, &asked.private[..]),
            (7, EventKind::ConnectRequest, &[3; SIDR_REQ_PRIVATE][..])
        );
        let peer = world.cms[SERVER].get(asked.connection).unwrap();
        prop_assert_eq!((peer.peer, peer.peer_port), (ADDRESSES[CLIENT], 40_000));
        let [answered] = &world.told[CLIENT][..] else { panic!("{:?}", world.told) };
        prop_assert_eq!((answered.owner, answered.kind, answered.status), (8, EventKind::Established, 0));
        prop_assert_eq!((answered.peer_qpn, answered.qkey, &answered.private[..]), (55, UDP_QKEY, ANSWER));
        let theirs = asked.connection;
        world.act(CLIENT, |cm, now, out| cm.close(8, local, now, out));
        world.act(SERVER, |cm, now, out| cm.close(9, theirs, now, out));
        prop_assert!(world.wire.take().is_none(), "there is no connection to end");
        prop_assert_eq!(world.count(), 0);
        Ok(())
    });
}

/// As Linux tells it: the status of the SIDR_REP (table 120), or that nothing has come.
#[test]
fn who_is_not_told_a_queue_pair_is_told_why() {
    let timed_out = -i32::from(Errno::ETIMEDOUT);
    for (program, port, faults, status, private) in [
        (Program::Rejects, PORT, Faults::new(), 2, ANSWER),
        (Program::Ends, PORT, Faults::new(), 2, &[0; SIDR_REP_PRIVATE]),
        (Program::Accepts, PORT + 1, Faults::new(), 1, &[0; SIDR_REP_PRIVATE]),
        (Program::Accepts, PORT, all(100, Fault::Lose), timed_out, &[]),
    ] {
        let (mut world, local) = ask(faults, program, port);
        let [event] = &world.told[CLIENT][..] else { panic!("{:?}", world.told) };
        let expected = (EventKind::Unreachable, status, private);
        assert_eq!((event.kind, event.status, &event.private[..]), expected, "{program:?} {port}");
        world.act(CLIENT, |cm, now, out| cm.close(8, local, now, out));
        assert_eq!(world.count(), 0, "{program:?} {port}");
    }
}

#[test]
fn a_port_of_datagrams_is_no_port_of_connections() {
    let mut cm = Cm::new(OURS);
    assert_eq!(cm.listen(Space::Tcp, PORT, 1, 0), Ok(()));
    assert!(cm.is_taken(Space::Tcp, PORT) && !cm.is_taken(Space::Udp, PORT));
    assert_eq!(cm.listen(Space::Udp, PORT, 2, 0), Ok(()));
    assert_eq!(cm.listen(Space::Udp, PORT, 3, 0), Err(Errno::EADDRINUSE));
}

/// What `udaddy` had the kernel say (Linux 6.1): the MAD header, request id, partition, service ID, the RDMA-CM header with port and
/// addresses; and the answer, with QPN, service ID, Q_Key. All that follows is zeroes.
const QUESTION: &str = "01070203 00000000 0000000245e45bf6 0017 0000 00000000 f65be445 ffff 0000 0000000001111c06 \
    0040 8e04 000000000000000000000000 0a2f5b02 000000000000000000000000 0a2f5b01";
const KERNELS_ANSWER: &str = "01070203 00000000 0000000245e45bf6 0018 0000 00000000 f65be445 00 00 0000 000011 00 \
    0000000001111c06 01234567";

fn message(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    let mut bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    bytes.resize(256, 0);
    bytes
}

fn only_message(out: &[CmEffect]) -> Vec<u8> {
    let [CmEffect::Send(_, mad)] = out else { panic!("{out:?}") };
    bytes(mad)
}

#[test]
fn our_question_and_answer_are_the_kernels() {
    let [server, client] = [1, 2].map(|last| IpAddr::from([10, 47, 91, last]));
    let (port, now, mut out) = (0x1c06, Time::START, Vec::new());
    let mut asker = Cm::new(client);
    let local = asker.open(Some(8), server, 0xf65b_e445 << 32);
    asker.resolve(local, port, 0x8e04, b"", now, &mut out);
    let mut ours = only_message(&out.split_off(0));
    let kernels = message(QUESTION);
    // Each side numbers its transactions as it likes.
    ours[8..16].copy_from_slice(&kernels[8..16]);
    assert_eq!(ours, kernels);
    let mut listener = Cm::new(server);
    listener.listen(Space::Udp, port, 7, 0).unwrap();
    listener.receive(client, &kernels, 6 << 32, now, &mut out);
    let CmEffect::Event(Event { connection, .. }) = out.remove(0) else { panic!("{out:?}") };
    listener.get(connection).unwrap().qpn = 17;
    listener.accept(connection, b"", now, &mut out).unwrap();
    assert_eq!(only_message(&out.split_off(0)), message(KERNELS_ANSWER));
    // The kernel's answer, to our client.
    asker.receive(server, &message(KERNELS_ANSWER), 0, now, &mut out);
    let [CmEffect::Event(event)] = &out[..] else { panic!("{out:?}") };
    assert_eq!((event.kind, event.peer_qpn, event.qkey), (EventKind::Established, 17, UDP_QKEY));
}
