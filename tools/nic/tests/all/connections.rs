//! The connection manager over a wire that keeps no promises: two of them connect and part, in memory, whatever is lost, doubled or
//! late; and nothing stays behind.

use crate::pair::{hold, Fault, Wire, CLIENT, SERVER};
use nic::cm::{Cm, CmEffect, Event, EventKind, Mad, Param, Phase};
use nic::errno::Errno;
use nic::psn::Psn;
use proptest::prelude::*;
use roce::cm::Kind;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

const ADDRESSES: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3))];

struct World {
    cms: [Cm; 2],
    now: Instant,
    wire: Wire<Vec<u8>>,
    told: [Vec<EventKind>; 2],
    connections: [Option<u32>; 2],
    /// Who says goodbye first, once both are ready.
    goes_first: [bool; 2],
    random: u64,
    /// Somebody has waited for the last answer in vain.
    in_vain: bool,
}

impl World {
    fn act(&mut self, side: usize, act: impl FnOnce(&mut Cm, Instant, &mut Vec<CmEffect>)) {
        let mut effects = Vec::new();
        act(&mut self.cms[side], self.now, &mut effects);
        for effect in effects {
            match effect {
                CmEffect::Send(_, mad) => self.wire.send(1 - side, bytes(&mad)),
                CmEffect::Event(event) => {
                    self.in_vain |= event.status == -i32::from(Errno::ETIMEDOUT);
                    self.event(side, event.kind, event.connection);
                }
                CmEffect::Say(_) => {}
            }
        }
    }

    /// What a program does about an event.
    fn event(&mut self, side: usize, kind: EventKind, connection: u32) {
        self.told[side].push(kind);
        let goes_first = self.goes_first[side];
        match kind {
            EventKind::ConnectRequest => {
                self.connections[side] = Some(connection);
                self.cms[side].get(connection).unwrap().owner = Some(7);
                self.act(side, |cm, now, out| cm.accept(connection, b"yes", now, out).unwrap());
            }
            EventKind::ConnectResponse => {
                self.act(side, |cm, now, out| cm.ready_to_use(connection, now, out).unwrap());
                if goes_first {
                    self.act(side, |cm, now, out| cm.disconnect(connection, now, out));
                }
            }
            EventKind::Established if goes_first => {
                self.act(side, |cm, now, out| cm.disconnect(connection, now, out));
            }
            // The answer; it is nothing new for who went first.
            EventKind::Disconnected => self.act(side, |cm, now, out| cm.disconnect(connection, now, out)),
            _ => {}
        }
    }

    /// Lets all happen, to the end of the last timer.
    fn run(&mut self) {
        for _ in 0..10_000 {
            if let Some((side, bytes)) = self.wire.take() {
                self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let random = self.random;
                self.act(side, |cm, now, out| cm.receive(ADDRESSES[1 - side], &bytes, random, now, out));
                continue;
            }
            let next = self.cms.iter().filter_map(Cm::deadline).min();
            let Some(next) = next else { return };
            self.now = next.max(self.now + Duration::from_millis(1));
            [SERVER, CLIENT].into_iter().for_each(|side| self.act(side, |cm, now, out| cm.tick(now, out)));
        }
        panic!("it never ends: {:?}", self.told);
    }
}

/// The bytes of a message, as they cross the wire.
fn bytes(mad: &Mad) -> Vec<u8> {
    mad.packet(Psn::new(0)).payload
}

/// Connects and parts. Gives what each program was told.
fn meet(faults: Vec<Fault>, goes_first: [bool; 2]) -> [Vec<EventKind>; 2] {
    let cms = ADDRESSES.map(Cm::new);
    let (told, connections) = Default::default();
    let (now, wire, random) = (Instant::now(), Wire::new(faults), 0x1234_5678_9abc_def0);
    let mut world = World { cms, now, wire, told, connections, goes_first, random, in_vain: false };
    world.cms[SERVER].listen(7471, 7, 0).unwrap();
    let local = world.cms[CLIENT].open(Some(8), ADDRESSES[SERVER], 0x0bad_cafe_0000_0007);
    world.connections[CLIENT] = Some(local);
    world.cms[CLIENT].get(local).unwrap().param = Param { retries: 7, ..Param::default() };
    world.act(CLIENT, |cm, now, out| cm.connect(local, 7471, 40_000, b"hello", now, out));
    world.run();
    for (side, owner) in [(SERVER, 7), (CLIENT, 8)] {
        let connection = world.connections[side].unwrap_or_default();
        world.act(side, |cm, now, out| cm.close(owner, connection, now, out));
    }
    world.run();
    assert_eq!(world.cms.iter().map(Cm::count).sum::<usize>(), 0, "something stays behind: {:?}", world.told);
    assert_eq!(world.in_vain, world.told[CLIENT] == [EventKind::Unreachable], "{:?}", world.told);
    world.told
}

#[test]
fn a_wire_that_loses_everything_is_told() {
    let [server, client] = meet(vec![Fault::Drop; 1000], [false, true]);
    assert_eq!((server, client), (vec![], vec![EventKind::Unreachable]));
}

/// Lets messages arrive. Gives what comes of them: what is sent, and what programs are told.
fn pass(sent: Vec<CmEffect>, to: &mut Cm, from: IpAddr) -> (Vec<CmEffect>, Vec<Event>) {
    let (mut out, mut told) = (Vec::new(), Vec::new());
    for effect in sent {
        let CmEffect::Send(_, mad) = effect else { continue };
        to.receive(from, &bytes(&mad), 9 << 40, Instant::now(), &mut out);
    }
    out.retain(|effect| match effect {
        CmEffect::Event(event) => {
            told.push(event.clone());
            false
        }
        effect => matches!(effect, CmEffect::Send(..)),
    });
    (out, told)
}

/// A server and a client of queue pair 77 that has asked: the two, the server's number, the client's.
fn asked() -> ([Cm; 2], u32, u32) {
    let [mut server, mut client] = ADDRESSES.map(Cm::new);
    server.listen(7471, 7, 0).unwrap();
    let (theirs, sent) = ask(&mut client, 1 << 32);
    let (_, told) = pass(sent, &mut server, ADDRESSES[CLIENT]);
    let ours = told[0].connection;
    server.get(ours).unwrap().owner = Some(9);
    ([server, client], ours, theirs)
}

fn ask(client: &mut Cm, random: u64) -> (u32, Vec<CmEffect>) {
    let (local, mut sent) = (client.open(Some(8), ADDRESSES[SERVER], random), Vec::new());
    client.get(local).unwrap().qpn = 77;
    client.connect(local, 7471, 40_000, b"", Instant::now(), &mut sent);
    (local, sent)
}

/// One waits, the next is not answered, as if it had been lost: it asks again when the program has fetched the first.
#[test]
fn a_full_backlog_takes_no_request_until_the_program_has_fetched_one() {
    let [mut server, mut client] = ADDRESSES.map(Cm::new);
    server.listen(7471, 7, 1).unwrap();
    let mut sent = [ask(&mut client, 1 << 32).1, ask(&mut client, 2 << 32).1].concat();
    for (fetched, expected) in [(false, 1), (false, 0), (true, 1)] {
        if fetched {
            server.fetched(7);
        }
        let (answers, told) = pass(std::mem::take(&mut sent), &mut server, ADDRESSES[CLIENT]);
        assert_eq!(told.iter().filter(|event| event.kind == EventKind::ConnectRequest).count(), expected);
        assert!(!answers.iter().any(|effect| is_of(effect, Kind::ConnectReject)), "{answers:?}");
        client.tick(client.deadline().unwrap(), &mut sent);
    }
}

fn is_of(effect: &CmEffect, kind: Kind) -> bool {
    matches!(effect, CmEffect::Send(_, mad) if mad.kind() == kind)
}

#[test]
fn who_leaves_before_the_connection_is_made_says_so() {
    let (now, mut out) = (Instant::now(), Vec::new());
    // The client, before the server's program has answered: that hears of it when it does.
    let ([mut server, mut client], ours, theirs) = asked();
    client.close(8, theirs, now, &mut out);
    let (sent, told) = pass(out.split_off(0), &mut server, ADDRESSES[CLIENT]);
    assert!(sent.is_empty() && told.is_empty(), "{sent:?} {told:?}");
    assert_eq!(server.get(ours).unwrap().phase, Phase::Idle);
    assert_eq!(server.reject(ours, b"", &mut out), Err(Errno::EINVAL));
    // Behind the REP either side, the server also when its peer is ready already.
    for (leaver, is_ready) in [(CLIENT, false), (SERVER, false), (SERVER, true)] {
        let (mut cms, ours, theirs) = asked();
        cms[SERVER].accept(ours, b"", now, &mut out).unwrap();
        let (_, told) = pass(out.split_off(0), &mut cms[CLIENT], ADDRESSES[SERVER]);
        assert_eq!(told[0].kind, EventKind::ConnectResponse);
        if is_ready {
            cms[CLIENT].ready_to_use(theirs, now, &mut Vec::new()).unwrap();
        }
        let (owner, local) = [(9, ours), (8, theirs)][leaver];
        cms[leaver].close(owner, local, now, &mut out);
        let (sent, told) = pass(out.split_off(0), &mut cms[1 - leaver], ADDRESSES[leaver]);
        assert!(sent.is_empty(), "{sent:?}");
        assert_eq!((told[0].kind, told[0].status, told.len()), (EventKind::Rejected, 28, 1));
        assert_eq!(cms[leaver].count(), 0);
    }
}

#[test]
fn a_queue_pair_that_comes_back_too_soon_is_stale_and_its_old_connection_ends() {
    let ([mut server, mut client], ours, theirs) = asked();
    let (now, mut out) = (Instant::now(), Vec::new());
    server.accept(ours, b"", now, &mut out).unwrap();
    pass(out.split_off(0), &mut client, ADDRESSES[SERVER]);
    client.ready_to_use(theirs, now, &mut out).unwrap();
    let (_, told) = pass(out.split_off(0), &mut server, ADDRESSES[CLIENT]);
    assert_eq!(told[0].kind, EventKind::Established);
    // The client's machine was started anew.
    client = Cm::new(ADDRESSES[CLIENT]);
    let (_, sent) = ask(&mut client, 2 << 32);
    let (answers, _) = pass(sent, &mut server, ADDRESSES[CLIENT]);
    let (answers, told) = pass(answers, &mut client, ADDRESSES[SERVER]);
    assert_eq!((told[0].kind, told[0].status), (EventKind::Rejected, 10));
    let (_, told) = pass(answers, &mut server, ADDRESSES[CLIENT]);
    assert_eq!(told[0].kind, EventKind::Disconnected);
}

/// Three messages connect and two part. Fewer than sixteen in a row are lost: what is asked sixteen times arrives.
#[test]
fn whatever_happens_to_messages_both_connect_and_part() {
    use EventKind::*;
    let late = (1..4u8).prop_map(Fault::Late);
    let fault = prop_oneof![3 => Just(Fault::Pass), 2 => Just(Fault::Drop), 1 => Just(Fault::Duplicate), 1 => late];
    let first = prop_oneof![Just([false, true]), Just([true, false]), Just([true, true])];
    hold(2_000, (proptest::collection::vec(fault, 0..14), first), |(faults, goes_first)| {
        let is_good = faults.iter().all(|fault| *fault == Fault::Pass);
        let [mut server, client] = meet(faults, goes_first);
        prop_assert_eq!(&client, &[ConnectResponse, Disconnected, TimewaitExit]);
        // If the RTU is lost, the goodbye says as much.
        prop_assert!(!is_good || server[1] == Established, "{:?}", server);
        server.retain(|kind| *kind != Established);
        prop_assert_eq!(server, [ConnectRequest, Disconnected, TimewaitExit]);
        Ok(())
    });
}
