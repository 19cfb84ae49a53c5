//! The connection manager over a wire that keeps no promises: two of them connect and part, in memory, whatever is lost, doubled or
//! late; and nothing stays behind.

use crate::pair;
use crate::pair::Fault;
use nic::cm::{Cm, CmEffect, Event, EventKind, Param, Phase};
use nic::errno::Errno;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

const ADDRESSES: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3))];
const SERVER: usize = 0;
const CLIENT: usize = 1;

struct World {
    cms: [Cm; 2],
    now: Instant,
    faults: VecDeque<Fault>,
    /// Who gets it, how many others pass before it, the payload.
    wire: Vec<(usize, u8, Vec<u8>)>,
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
                CmEffect::Send(_, mad) => {
                    let bytes = mad.packet(nic::psn::Psn::new(0)).payload;
                    let copies = match self.faults.pop_front().unwrap_or(Fault::Pass) {
                        Fault::Pass => vec![0],
                        Fault::Drop => vec![],
                        Fault::Duplicate => vec![0, 0],
                        Fault::Late(later) => vec![later],
                    };
                    copies.into_iter().for_each(|later| self.wire.push((1 - side, later, bytes.clone())));
                }
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
            if !self.wire.is_empty() {
                let at = self.wire.iter().position(|(_, later, _)| *later == 0).unwrap_or(0);
                self.wire[..at].iter_mut().for_each(|(_, later, _)| *later = later.saturating_sub(1));
                let (side, _, bytes) = self.wire.remove(at);
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

/// Connects and parts. Gives what each program was told.
fn meet(faults: Vec<Fault>, goes_first: [bool; 2]) -> [Vec<EventKind>; 2] {
    let cms = ADDRESSES.map(Cm::new);
    let (told, connections) = Default::default();
    let (now, wire, random) = (Instant::now(), Vec::new(), 0x1234_5678_9abc_def0);
    let mut world =
        World { cms, now, faults: faults.into(), wire, told, connections, goes_first, random, in_vain: false };
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
fn three_messages_connect_and_two_part() {
    use EventKind::*;
    for goes_first in [[false, true], [true, false], [true, true]] {
        let [server, client] = meet(vec![], goes_first);
        assert_eq!(server, [ConnectRequest, Established, Disconnected, TimewaitExit], "{goes_first:?}");
        assert_eq!(client, [ConnectResponse, Disconnected, TimewaitExit], "{goes_first:?}");
    }
}

#[test]
fn a_wire_that_loses_everything_is_told() {
    let [server, client] = meet(vec![Fault::Drop; 1000], [false, true]);
    assert_eq!((server, client), (vec![], vec![EventKind::Unreachable]));
}

/// One waits, the next is not answered, as if it had been lost: it asks again when the program has fetched the first.
#[test]
fn a_full_backlog_takes_no_request_until_the_program_has_fetched_one() {
    let (mut server, mut now) = (Cm::new(ADDRESSES[SERVER]), Instant::now());
    server.listen(7471, 7, 1).unwrap();
    let mut client = Cm::new(ADDRESSES[CLIENT]);
    let mut sent = Vec::new();
    for random in [1 << 32, 2 << 32] {
        let local = client.open(Some(8), ADDRESSES[SERVER], random);
        client.get(local).unwrap().qpn = local;
        client.connect(local, 7471, 40_000, b"", now, &mut sent);
    }
    let requests = |server: &mut Cm, sent: &mut Vec<CmEffect>, now| {
        let mut out = Vec::new();
        for effect in sent.drain(..) {
            let CmEffect::Send(_, mad) = effect else { continue };
            let bytes = mad.packet(nic::psn::Psn::new(0)).payload;
            server.receive(ADDRESSES[CLIENT], &bytes, 1 << 40, now, &mut out);
        }
        let is_request =
            |effect: &&CmEffect| matches!(effect, CmEffect::Event(event) if event.kind == EventKind::ConnectRequest);
        assert!(!out
            .iter()
            .any(|effect| matches!(effect, CmEffect::Send(_, mad) if mad.kind() == roce::cm::Kind::ConnectReject)));
        out.iter().filter(is_request).count()
    };
    assert_eq!(requests(&mut server, &mut sent, now), 1);
    for (fetched, expected) in [(false, 0), (true, 1)] {
        if fetched {
            server.fetched(7);
        }
        now = client.deadline().unwrap();
        client.tick(now, &mut sent);
        assert_eq!(requests(&mut server, &mut sent, now), expected, "fetched: {fetched}");
    }
}

/// Lets messages arrive. Gives what comes of them: what is sent, and what programs are told.
fn pass(sent: Vec<CmEffect>, to: &mut Cm, from: IpAddr) -> (Vec<CmEffect>, Vec<Event>) {
    let (mut out, mut told) = (Vec::new(), Vec::new());
    for effect in sent {
        let CmEffect::Send(_, mad) = effect else { continue };
        to.receive(from, &mad.packet(nic::psn::Psn::new(0)).payload, 9 << 40, Instant::now(), &mut out);
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(pair::cases(2_000)) })]

    /// Fewer than sixteen in a row are lost: what is asked sixteen times arrives.
    #[test]
    fn whatever_happens_to_messages_both_connect_and_part(
        faults in proptest::collection::vec(prop_oneof![
            3 => Just(Fault::Pass), 2 => Just(Fault::Drop), 1 => Just(Fault::Duplicate), 1 => (1..4u8).prop_map(Fault::Late),
        ], 0..14),
        first in 0..3usize,
    ) {
        use EventKind::*;
        let goes_first = [[false, true], [true, false], [true, true]][first];
        let [server, client] = meet(faults, goes_first);
        prop_assert_eq!(&client, &[ConnectResponse, Disconnected, TimewaitExit]);
        let server: Vec<EventKind> = server.into_iter().filter(|kind| *kind != Established).collect();
        prop_assert_eq!(server, [ConnectRequest, Disconnected, TimewaitExit]);
    }
}
