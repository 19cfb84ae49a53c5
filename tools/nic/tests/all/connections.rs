//! The connection manager over a wire that keeps no promises: two of them connect and part, in memory, whatever is lost, doubled or
//! late; and nothing stays behind.

use crate::pair::managers::{World, ADDRESSES, FEW, PORT};
use crate::pair::{all, faults, hold, Fault, Faults, CLIENT, SERVER};
use nic::cm::{Cm, Event, EventKind, Mad, Param, Phase, Space};
use nic::errno::Errno;
use proptest::prelude::*;
use roce::cm::Kind;

/// Of both sides: the connection, and who says goodbye first, once both are ready.
type Programs = ([Option<u32>; 2], [bool; 2]);

/// What a program does about an event.
fn react(world: &mut World<Programs>, side: usize, event: &Event) {
    let (connection, goes_first) = (event.connection, world.programs.1[side]);
    match event.kind {
        EventKind::ConnectRequest => {
            world.programs.0[side] = Some(connection);
            world.cms[side].get(connection).unwrap().owner = Some(7);
            world.act(side, |cm, now, out| cm.accept(connection, b"yes", now, out).unwrap());
        }
        EventKind::ConnectResponse => {
            world.act(side, |cm, now, out| cm.ready_to_use(connection, now, out).unwrap());
            if goes_first {
                world.act(side, |cm, now, out| cm.disconnect(connection, now, out));
            }
        }
        EventKind::Established if goes_first => world.act(side, |cm, now, out| cm.disconnect(connection, now, out)),
        // The answer; it is nothing new for who went first.
        EventKind::Disconnected => world.act(side, |cm, now, out| cm.disconnect(connection, now, out)),
        _ => {}
    }
}

/// Connects and parts. Gives what each program was told.
fn meet(faults: Faults, goes_first: [bool; 2]) -> [Vec<EventKind>; 2] {
    let mut world = World::new(faults, ([None; 2], goes_first), react);
    world.cms[SERVER].listen(Space::Tcp, PORT, 7, 0).unwrap();
    let local = world.cms[CLIENT].open(Some(8), ADDRESSES[SERVER], 0x0bad_cafe_0000_0007);
    world.programs.0[CLIENT] = Some(local);
    world.cms[CLIENT].get(local).unwrap().param = Param { retries: 7, ..Param::default() };
    world.act(CLIENT, |cm, now, out| cm.connect(local, PORT, 40_000, b"hello", now, out));
    world.run();
    for (side, owner) in [(SERVER, 7), (CLIENT, 8)] {
        let connection = world.programs.0[side].unwrap_or_default();
        world.act(side, |cm, now, out| cm.close(owner, connection, now, out));
    }
    world.run();
    assert_eq!(world.count(), 0, "something stays behind: {:?}", world.told);
    let timed_out = |event: &Event| event.status == -i32::from(Errno::ETIMEDOUT);
    let in_vain = world.told.iter().flatten().any(timed_out);
    let told = world.told.map(|events| events.into_iter().map(|event| event.kind).collect::<Vec<_>>());
    // Nobody has waited for the last answer in vain.
    assert_eq!(in_vain, told[CLIENT] == [EventKind::Unreachable], "{told:?}");
    told
}

#[test]
fn a_wire_that_loses_everything_is_told() {
    let [server, client] = meet(all(1000, Fault::Lose), [false, true]);
    assert_eq!((server, client), (vec![], vec![EventKind::Unreachable]));
}

/// A server, as whose program the test acts, and the client's.
fn listening(backlog: usize) -> World<()> {
    let mut world = World::new(Faults::new(), (), |_, _, _| ());
    world.cms[SERVER].listen(Space::Tcp, PORT, 7, backlog).unwrap();
    world
}

/// The client asks for a connection with queue pair 77; its number.
fn ask(world: &mut World<()>, random: u64) -> u32 {
    let local = world.cms[CLIENT].open(Some(8), ADDRESSES[SERVER], random);
    world.cms[CLIENT].get(local).unwrap().qpn = 77;
    world.act(CLIENT, |cm, now, out| cm.connect(local, PORT, 40_000, b"", now, out));
    local
}

/// The client has asked: the server's number for it, the client's.
fn asked() -> (World<()>, u32, u32) {
    let mut world = listening(0);
    let theirs = ask(&mut world, 1 << 32);
    let ours = world.delivered()[SERVER][0].connection;
    world.cms[SERVER].get(ours).unwrap().owner = Some(9);
    (world, ours, theirs)
}

/// And the server has accepted, and the client is ready.
fn connected() -> (World<()>, u32, u32) {
    let (mut world, ours, theirs) = asked();
    world.act(SERVER, |cm, now, out| cm.accept(ours, b"", now, out).unwrap());
    assert_eq!(world.delivered()[CLIENT][0].kind, EventKind::ConnectResponse);
    world.act(CLIENT, |cm, now, out| cm.ready_to_use(theirs, now, out).unwrap());
    (world, ours, theirs)
}

/// One waits, the next is not answered, as if it had been lost: it asks again when the program has fetched the first.
#[test]
fn a_full_backlog_takes_no_request_until_the_program_has_fetched_one() {
    let mut world = listening(1);
    for random in [1 << 32, 2 << 32] {
        ask(&mut world, random);
    }
    for (fetched, expected) in [(false, 1), (false, 0), (true, 1)] {
        if fetched {
            world.cms[SERVER].fetched(7);
        }
        let [server, client] = world.delivered();
        assert_eq!(server.iter().filter(|event| event.kind == EventKind::ConnectRequest).count(), expected);
        assert!(client.is_empty(), "{client:?}");
        world.wait(CLIENT);
    }
}

#[test]
fn who_leaves_before_the_connection_is_made_says_so() {
    // The client, before the server's program has answered: that hears of it when it does.
    let (mut world, ours, theirs) = asked();
    world.act(CLIENT, |cm, now, out| cm.close(8, theirs, now, out));
    assert_eq!(world.delivered(), [vec![], vec![]]);
    assert_eq!(world.cms[SERVER].get(ours).unwrap().phase, Phase::Idle);
    world.act(SERVER, |cm, now, out| assert_eq!(cm.reject(ours, b"", now, out), Err(Errno::EINVAL)));
    // Behind the REP either side, the server also when its peer is ready already, whose RTU is lost.
    for (leaver, is_ready) in [(CLIENT, false), (SERVER, false), (SERVER, true)] {
        let (mut world, ours, theirs) = asked();
        world.act(SERVER, |cm, now, out| cm.accept(ours, b"", now, out).unwrap());
        world.delivered();
        if is_ready {
            world.act(CLIENT, |cm, now, out| cm.ready_to_use(theirs, now, out).unwrap());
            world.wire.take().unwrap();
        }
        let (owner, local) = [(9, ours), (8, theirs)][leaver];
        world.act(leaver, |cm, now, out| cm.close(owner, local, now, out));
        let told = world.delivered();
        let ([event], []) = (&told[1 - leaver][..], &told[leaver][..]) else { panic!("{told:?}") };
        assert_eq!((event.kind, event.status), (EventKind::Rejected, 28));
        assert_eq!(world.cms[leaver].count(), 0);
    }
}

/// Somebody's program is killed: whoever destroys its ids has said goodbye for it, and again if that is lost.
#[test]
fn the_peer_of_a_destroyed_id_is_told_that_the_connection_has_ended() {
    let (mut world, ours, theirs) = connected();
    world.delivered();
    world.act(SERVER, |cm, now, out| cm.close(9, ours, now, out));
    let (_, _, lost) = world.wire.take().unwrap();
    assert_eq!(Mad::read(&lost).unwrap().kind(), Kind::DisconnectRequest);
    world.wait(SERVER);
    let [_, client] = world.delivered();
    assert_eq!(client.iter().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::Disconnected]);
    world.act(CLIENT, |cm, now, out| cm.disconnect(theirs, now, out));
    world.delivered();
    world.wait(SERVER);
    assert_eq!(world.cms[SERVER].count(), 0);
}

#[test]
fn a_queue_pair_that_comes_back_too_soon_is_stale_and_its_old_connection_ends() {
    let (mut world, ..) = connected();
    assert_eq!(world.delivered()[SERVER][0].kind, EventKind::Established);
    // The client's machine was started anew.
    world.cms[CLIENT] = Cm::new(ADDRESSES[CLIENT]);
    ask(&mut world, 2 << 32);
    let [server, client] = world.delivered();
    assert_eq!((client[0].kind, client[0].status), (EventKind::Rejected, 10));
    assert_eq!(server[0].kind, EventKind::Disconnected);
}

/// Three messages connect and two part.
#[test]
fn whatever_happens_to_messages_both_connect_and_part() {
    use EventKind::*;
    let first = prop_oneof![Just([false, true]), Just([true, false]), Just([true, true])];
    hold(2_000, (faults(1, FEW), first), |(faults, goes_first)| {
        let is_good = faults.is_empty();
        let [mut server, client] = meet(faults, goes_first);
        prop_assert_eq!(&client, &[ConnectResponse, Disconnected, TimewaitExit]);
        // If the RTU is lost, the goodbye says as much.
        prop_assert!(!is_good || server[1] == Established, "{:?}", server);
        server.retain(|kind| *kind != Established);
        prop_assert_eq!(server, [ConnectRequest, Disconnected, TimewaitExit]);
        Ok(())
    });
}
