//! What a comparison must not notice, and what it must: on conversations made up at random.

use crate::files;
use crate::script::{encode, Request, Script, Weather, Work, World, CLIENT, SERVER};
use proptest::prelude::*;
use proptest::sample::{select, Index};
use run::capture::Reader;
use wire::compare::{compare, Capture, Report, Verdict};

fn capture(script: &Script, world: &World) -> Capture {
    Capture::read(&mut Reader::new(files::capture(encode(script, world)).as_slice()).unwrap()).unwrap()
}

fn compared(mine: (&Script, &World), reference: (&Script, &World)) -> Report {
    compare(&capture(mine.0, mine.1), &capture(reference.0, reference.1))
}

/// Buffer 0 of either side has 4096 bytes, buffer 1 of the server 65536.
fn work(from: usize) -> impl Strategy<Value = Work> {
    let buffer = 0..if from == CLIENT { 2usize } else { 1 };
    let immediate = proptest::option::of(any::<u32>());
    let offset = (0..64u64).prop_map(|units| units * 8);
    let length = prop_oneof![1..200usize, 1000..6000usize];
    prop_oneof![
        (proptest::collection::vec(any::<u8>(), 1..40), immediate.clone())
            .prop_map(|(bytes, immediate)| Work::Send { bytes, immediate }),
        (length.clone(), immediate, buffer.clone(), offset.clone())
            .prop_map(|(length, immediate, buffer, offset)| Work::Write { length, immediate, buffer, offset }),
        (length, buffer.clone(), offset.clone()).prop_map(|(length, buffer, offset)| Work::Read {
            length,
            buffer,
            offset
        }),
        (any::<u64>(), buffer, offset).prop_map(|(add, buffer, offset)| Work::FetchAdd { add, buffer, offset }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    (select(vec![CLIENT, SERVER]), any::<bool>()).prop_flat_map(|(from, solicited)| {
        work(from).prop_map(move |work| Request { from, work, solicited, refused: 0, wrong_key: false })
    })
}

fn script() -> impl Strategy<Value = Script> {
    proptest::collection::vec(request(), 1..8).prop_map(Script::of)
}

fn weather() -> impl Strategy<Value = Weather> {
    prop_oneof![
        Just(Weather::Fine),
        Just(Weather::AckLost),
        Just(Weather::PacketLost),
        (1..4u8).prop_map(Weather::NotReady),
        Just(Weather::ResponseLost),
    ]
}

fn world() -> impl Strategy<Value = World> {
    let addresses = select(vec![["10.0.0.2", "10.0.0.1"], ["192.168.7.1", "192.168.7.200"], ["fe80::7", "fe80::2"]]);
    // Half of the PSNs wrap soon.
    let psn = || prop_oneof![0..0x100_0000u32, 0xff_fff0..0x100_0000u32];
    let names = (addresses, 2..0x100_0000u32, 2..0x100_0000u32, any::<[u32; 2]>(), psn(), psn());
    let memory = (0..0x1000_0000u32, (0..0x1000_0000u64).prop_map(|page| page << 12), any::<u8>());
    let network = (1..6u8, 1..5usize, proptest::collection::vec(weather(), 1..6), 0..3usize);
    (names, memory, network, proptest::collection::vec(any::<bool>(), 0..60)).prop_map(
        |(
            (addresses, q0, q1, mut ids, p0, p1),
            (key, address, text),
            (mtu_code, ack_every, weather, req_again),
            turns,
        )| {
            // The two IDs of a connection may be equal; one of zero is reserved.
            ids = ids.map(|id| id.max(1));
            World {
                addresses,
                qps: [q0, q1],
                ids,
                psns: [p0, p1],
                key,
                address,
                mtu_code,
                ack_every,
                weather,
                turns,
                req_again,
                text,
            }
        },
    )
}

proptest! {
    // 256 cases of each; PROPTEST_CASES=10000 tries more.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_capture_tells_its_own_story(script in script(), world in world()) {
        let report = compared((&script, &world), (&script, &world));
        prop_assert_eq!(report.verdict(), Verdict::Same, "{}", report);
    }

    #[test]
    fn names_numbers_and_the_network_do_not_matter(script in script(), mine in world(), reference in world()) {
        let report = compared((&script, &mine), (&script, &reference));
        prop_assert_eq!(report.verdict(), Verdict::Same, "{}", report);
    }

    #[test]
    fn one_change_is_one_difference_of_that_name(
        script in script(),
        (field, change) in select(&CHANGES[..]),
        at in any::<Index>(),
        mine in world(),
        reference in world(),
    ) {
        let mut changed = script.clone();
        change(&mut changed, at.index(script.requests.len()));
        if changed != script {
            let report = compared((&changed, &mine), (&script, &reference));
            let named = report.cause.as_ref().map(|difference| difference.field);
            prop_assert_eq!(named, Some(field), "{}", report);
            // The other way round it is a difference, too.
            let report = compared((&script, &reference), (&changed, &mine));
            prop_assert_eq!(report.verdict(), Verdict::Different, "{}: {}", field, report);
        }
    }
}

/// Something that a program does otherwise, at a request; nothing where that does not fit.
type Change = fn(&mut Script, usize);

/// Each with what a comparison has to call it.
const CHANGES: [(&str, Change); 22] = [
    ("missing", |script, at| drop(script.requests.remove(at))),
    ("extra", |script, at| script.requests.insert(at, script.requests[at].clone())),
    ("length", |script, at| match &mut script.requests[at].work {
        Work::Write { length, .. } | Work::Read { length, .. } => *length += 1,
        Work::Send { bytes, .. } => bytes.push(9),
        Work::FetchAdd { .. } => {}
    }),
    ("length", |script, _| script.buffers[SERVER][0] += 1),
    ("immediate", |script, at| immediate(script, at).for_each(|data| *data = data.map(|data| data ^ 1))),
    ("operation", |script, at| immediate(script, at).for_each(|data| *data = None)),
    ("operation", |script, at| {
        let from = script.requests[at].from;
        // The side has no other requests between which this one could be taken for missing.
        let is_alone = script.requests.iter().filter(|request| request.from == from).count() == 1;
        match script.requests[at].work {
            Work::Write { length, immediate: None, buffer, offset } if is_alone => {
                script.requests[at].work = Work::Read { length, buffer, offset };
            }
            _ => {}
        }
    }),
    ("key", |script, at| script.requests[at].wrong_key = !matches!(script.requests[at].work, Work::Send { .. })),
    ("key", |script, at| {
        let from = script.requests[at].from;
        place(script, at).filter(|_| from == CLIENT).for_each(|(buffer, _)| *buffer = 1 - *buffer);
    }),
    ("address", |script, at| place(script, at).for_each(|(_, offset)| *offset += 8)),
    ("payload", |script, at| {
        if let Work::Send { bytes, .. } = &mut script.requests[at].work {
            bytes[0] ^= 0x80;
        }
    }),
    ("solicited", |script, at| script.requests[at].solicited ^= true),
    ("operands", |script, at| {
        if let Work::FetchAdd { add, .. } = &mut script.requests[at].work {
            *add ^= 1 << 40;
        }
    }),
    ("outcome", |script, at| script.requests[at].refused = 0x62),
    ("private-data", |script, _| script.private_data[0] ^= 3),
    ("read-depth", |script, _| script.initiator_depth = 0),
    ("service", |script, _| script.port_space = 0x11),
    ("answer", |script, _| script.rejected = Some(28)),
    ("ready-to-use", |script, _| script.ready_to_use = false),
    ("disconnect", |script, _| script.hangs_up = Some(SERVER)),
    ("disconnect", |script, _| script.hangs_up = None),
    ("disconnect", |script, _| script.goodbye_answered = false),
];

/// The immediate data, if the request has some.
fn immediate(script: &mut Script, at: usize) -> impl Iterator<Item = &mut Option<u32>> {
    let immediate = match &mut script.requests[at].work {
        Work::Send { immediate, .. } | Work::Write { immediate, .. } => Some(immediate),
        _ => None,
    };
    immediate.into_iter().filter(|data| data.is_some())
}

/// The buffer and the place in it, if the request goes to memory.
fn place(script: &mut Script, at: usize) -> impl Iterator<Item = (&mut usize, &mut u64)> {
    let place = match &mut script.requests[at].work {
        Work::Write { buffer, offset, .. } | Work::Read { buffer, offset, .. } => Some((buffer, offset)),
        Work::FetchAdd { buffer, offset, .. } => Some((buffer, offset)),
        Work::Send { .. } => None,
    };
    place.into_iter()
}
