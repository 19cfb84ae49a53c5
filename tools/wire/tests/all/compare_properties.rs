//! What a comparison must not notice, and what it must: on conversations made up at random.

use crate::script::{encode, Request, Script, Weather, Work, World, CLIENT, SERVER};
use proptest::prelude::*;
use proptest::sample::{select, Index};
use roce::LinkType;
use run::capture::Reader;
use run::pcapng::{Section, Writer};
use wire::compare::{compare, Capture, Report, Verdict};

fn capture(frames: &[Vec<u8>]) -> Capture {
    let mut writer = Writer::new(Vec::new(), LinkType::ETHERNET, &Section::default()).unwrap();
    for (i, frame) in frames.iter().enumerate() {
        writer.packet(i as u64, frame, None).unwrap();
    }
    let bytes = writer.into_inner().unwrap();
    Capture::read(&mut Reader::new(bytes.as_slice()).unwrap()).unwrap()
}

fn compared(mine: (&Script, &World), reference: (&Script, &World)) -> Report {
    compare(&capture(&encode(mine.0, mine.1)), &capture(&encode(reference.0, reference.1)))
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
        change in change(),
        at in any::<Index>(),
        mine in world(),
        reference in world(),
    ) {
        let mut changed = script.clone();
        let at = at.index(script.requests.len());
        if change.apply(&mut changed, at) {
            let report = compared((&changed, &mine), (&script, &reference));
            let named = report.cause.as_ref().map(|difference| difference.field);
            prop_assert_eq!(report.verdict(), Verdict::Different, "{:?}: {}", change, report);
            prop_assert_eq!(named, Some(change.field()), "{:?}: {}", change, report);
            // The other way round it is a difference, too.
            let report = compared((&script, &reference), (&changed, &mine));
            prop_assert_eq!(report.verdict(), Verdict::Different, "{:?}: {}", change, report);
        }
    }
}

/// Something that a program does otherwise.
#[derive(Clone, Copy, Debug)]
enum Change {
    NoRequest,
    OneMore,
    Length,
    Immediate,
    NoImmediate,
    OtherKind,
    WrongKey,
    WrongBuffer,
    Offset,
    Bytes,
    Solicited,
    Operand,
    Refused,
    BufferLength,
    PrivateData,
    NoDepth,
    PortSpace,
    Rejected,
    NoReadyToUse,
    OtherHangsUp,
    NobodyHangsUp,
    NoGoodbye,
}

fn change() -> impl Strategy<Value = Change> {
    use Change::*;
    select(vec![
        NoRequest,
        OneMore,
        Length,
        Immediate,
        NoImmediate,
        OtherKind,
        WrongKey,
        WrongBuffer,
        Offset,
        Bytes,
        Solicited,
        Operand,
        Refused,
        BufferLength,
        PrivateData,
        NoDepth,
        PortSpace,
        Rejected,
        NoReadyToUse,
        OtherHangsUp,
        NobodyHangsUp,
        NoGoodbye,
    ])
}

impl Change {
    /// What a comparison has to call it.
    fn field(self) -> &'static str {
        match self {
            Change::NoRequest => "missing",
            Change::OneMore => "extra",
            Change::Length | Change::BufferLength => "length",
            Change::Immediate => "immediate",
            Change::NoImmediate | Change::OtherKind => "operation",
            Change::WrongKey | Change::WrongBuffer => "key",
            Change::Offset => "address",
            Change::Bytes => "payload",
            Change::Solicited => "solicited",
            Change::Operand => "operands",
            Change::Refused => "outcome",
            Change::PrivateData => "private-data",
            Change::NoDepth => "read-depth",
            Change::PortSpace => "service",
            Change::Rejected => "answer",
            Change::NoReadyToUse => "ready-to-use",
            Change::OtherHangsUp | Change::NobodyHangsUp | Change::NoGoodbye => "disconnect",
        }
    }

    /// Changes the script; false where it does not fit the request.
    fn apply(self, script: &mut Script, at: usize) -> bool {
        let alone = lonely(script, at);
        let request = &mut script.requests[at];
        let one_sided = !matches!(request.work, Work::Send { .. });
        match (self, &mut request.work) {
            (Change::NoRequest, _) => drop(script.requests.remove(at)),
            (Change::OneMore, _) => script.requests.insert(at, script.requests[at].clone()),
            (Change::Length, Work::Write { length, .. } | Work::Read { length, .. }) => *length += 1,
            (Change::Length, Work::Send { bytes, .. }) => bytes.push(9),
            (
                Change::Immediate,
                Work::Send { immediate: Some(data), .. } | Work::Write { immediate: Some(data), .. },
            ) => {
                *data ^= 1;
            }
            (Change::NoImmediate, Work::Send { immediate, .. } | Work::Write { immediate, .. })
                if immediate.is_some() =>
            {
                *immediate = None;
            }
            (Change::OtherKind, Work::Write { length, immediate: None, buffer, offset }) if alone => {
                request.work = Work::Read { length: *length, buffer: *buffer, offset: *offset };
            }
            (Change::WrongKey, _) if one_sided => request.wrong_key = true,
            (
                Change::WrongBuffer,
                Work::Write { buffer, .. } | Work::Read { buffer, .. } | Work::FetchAdd { buffer, .. },
            ) if request.from == CLIENT => *buffer = 1 - *buffer,
            (
                Change::Offset,
                Work::Write { offset, .. } | Work::Read { offset, .. } | Work::FetchAdd { offset, .. },
            ) => *offset += 8,
            (Change::Bytes, Work::Send { bytes, .. }) => bytes[0] ^= 0x80,
            (Change::Solicited, _) => request.solicited = !request.solicited,
            (Change::Operand, Work::FetchAdd { add, .. }) => *add ^= 1 << 40,
            (Change::Refused, _) => request.refused = 0x62,
            (Change::BufferLength, _) => script.buffers[SERVER][0] += 1,
            (Change::PrivateData, _) => script.private_data[0] ^= 3,
            (Change::NoDepth, _) => script.initiator_depth = 0,
            (Change::PortSpace, _) => script.port_space = 0x11,
            (Change::Rejected, _) => script.rejected = Some(28),
            (Change::NoReadyToUse, _) => script.ready_to_use = false,
            (Change::OtherHangsUp, _) => script.hangs_up = Some(SERVER),
            (Change::NobodyHangsUp, _) => script.hangs_up = None,
            (Change::NoGoodbye, _) => script.goodbye_answered = false,
            _ => return false,
        }
        true
    }
}

/// True if the side has no other requests between which this one could be taken for missing.
fn lonely(script: &Script, at: usize) -> bool {
    let from = script.requests[at].from;
    script.requests.iter().filter(|request| request.from == from).count() == 1
}
