//! What a comparison must not notice, and what it must: on conversations made up at random.

use crate::edit::Frames;
use crate::script::{encode, Request, Weather, Work, World, BUFFERS, CLIENT, SERVER};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, Index};
use testkit::frames::Ends;
use wire::compare::{Report, Verdict};

fn compared(mine: (&[Request], &World), reference: (&[Request], &World)) -> Report {
    Frames::of(encode(mine.0, mine.1)).against(&Frames::of(encode(reference.0, reference.1)))
}

fn request() -> impl Strategy<Value = Request> {
    let who = (select(vec![CLIENT, SERVER]), any::<bool>(), any::<usize>(), (0..64u64).prop_map(|units| units * 8));
    let work = select(vec![Work::Send, Work::Write, Work::Read, Work::FetchAdd]);
    let length = prop_oneof![1..200usize, 1000..6000usize];
    (who, work, vec(any::<u8>(), 1..40), length, proptest::option::of(any::<u32>()), any::<u64>()).prop_map(
        |((from, solicited, buffer, offset), work, bytes, length, immediate, add)| {
            let buffer = buffer % BUFFERS[1 - from].len();
            let immediate = immediate.filter(|_| matches!(work, Work::Send | Work::Write));
            let (refused, wrong_key) = (0, false);
            Request { from, work, bytes, length, buffer, offset, immediate, add, solicited, refused, wrong_key }
        },
    )
}

fn world() -> impl Strategy<Value = World> {
    let addresses = select(vec![["10.0.0.2", "10.0.0.1"], ["192.168.7.1", "192.168.7.200"], ["fe80::7", "fe80::2"]]);
    let number = || 2..0x100_0000u32;
    // Half of the PSNs wrap soon. The two IDs of a connection may be equal; one of zero is reserved.
    let psn = || prop_oneof![0..0x100_0000u32, 0xff_fff0..0x100_0000u32];
    let names = (addresses, [number(), number()], [1..u32::MAX, 1..u32::MAX], [psn(), psn()]);
    let memory = (0..0x1000_0000u32, (0..0x1000_0000u64).prop_map(|page| page << 12));
    let weather = prop_oneof![
        select(vec![Weather::Fine, Weather::AckLost, Weather::PacketLost, Weather::ResponseLost]),
        (1..4usize).prop_map(Weather::NotReady),
    ];
    let network = (1..6u8, 1..5usize, vec(weather, 1..6), vec(any::<bool>(), 0..60));
    (names, memory, network).prop_map(
        |((addresses, qps, ids, psns), (key, address), (mtu_code, ack_every, weather, turns))| {
            let ends = Ends { addresses, qps, ids, psns, mtu_code };
            World { ends, key, address, ack_every, weather, turns }
        },
    )
}

proptest! {
    // 256 cases of each; PROPTEST_CASES=10000 tries more.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_numbers_and_the_network_do_not_matter(requests in vec(request(), 1..8), mine in world(), reference in world()) {
        let report = compared((&requests, &mine), (&requests, &reference));
        prop_assert_eq!(report.verdict(), Verdict::Same, "{}", report);
    }

    #[test]
    fn one_change_is_one_difference_of_that_name(
        requests in vec(request(), 1..8),
        (field, change) in select(&CHANGES[..]),
        at in any::<Index>(),
        mine in world(),
        reference in world(),
    ) {
        let mut changed = requests.clone();
        change(&mut changed, at.index(requests.len()));
        if changed != requests {
            let report = compared((&changed, &mine), (&requests, &reference));
            let named = report.cause.as_ref().map(|difference| difference.field);
            prop_assert_eq!(named, Some(field), "{}", report);
            // The other way round it is a difference, too.
            let report = compared((&requests, &reference), (&changed, &mine));
            prop_assert_eq!(report.verdict(), Verdict::Different, "{}: {}", field, report);
        }
    }
}

/// Something that a program does otherwise, at a request; nothing where that does not fit.
type Change = fn(&mut Vec<Request>, usize);

/// Each with what a comparison must call it. What is said to get connected and to hang up is in compare.rs.
const CHANGES: [(&str, Change); 13] = [
    ("missing", |requests, at| drop(requests.remove(at))),
    ("extra", |requests, at| requests.insert(at, requests[at].clone())),
    ("length", |requests, at| match requests[at].work {
        Work::Write | Work::Read => requests[at].length += 1,
        Work::Send => requests[at].bytes.push(9),
        Work::FetchAdd => {}
    }),
    ("immediate", |requests, at| requests[at].immediate = requests[at].immediate.map(|data| data ^ 1)),
    ("operation", |requests, at| requests[at].immediate = None),
    ("operation", |requests, at| {
        // The side has no other requests between which this one could be taken for missing.
        let is_alone = requests.iter().filter(|request| request.from == requests[at].from).count() == 1;
        if is_alone && requests[at].work == Work::Write && requests[at].immediate.is_none() {
            requests[at].work = Work::Read;
        }
    }),
    ("key", |requests, at| requests[at].wrong_key = requests[at].work != Work::Send),
    ("key", |requests, at| {
        if requests[at].from == CLIENT && requests[at].work != Work::Send {
            requests[at].buffer ^= 1;
        }
    }),
    ("address", |requests, at| requests[at].offset += 8 * u64::from(requests[at].work != Work::Send)),
    ("payload", |requests, at| requests[at].bytes[0] ^= if requests[at].work == Work::Send { 0x80 } else { 0 }),
    ("solicited", |requests, at| requests[at].solicited ^= true),
    ("operands", |requests, at| requests[at].add ^= u64::from(requests[at].work == Work::FetchAdd) << 40),
    ("outcome", |requests, at| requests[at].refused = 0x62),
];
