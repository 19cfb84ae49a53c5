//! What the capture as a whole knows. Each accusation is checked against it: was one direction recorded, or each packet twice; does a
//! sender compute the ICRC as others do; which answers belong to requests that the capture lacks?

use super::cause::Cause;
use super::congestion::Pauses;
use super::connection::refusal::Refusal;
use super::connection::Connection;
use super::finding::{Finding, Findings};
use super::flow::Moment;
use super::names::Names;
use roce::aeth::{Nak, Syndrome};
use roce::cm::Kind;
use roce::icrc::Icrc;
use roce::opcode::{Operation, Service};
use roce::packet::Packet;
use roce::track::{Connection as Ends, Membership, Side};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// A sender of whose packets at least so many, and all, are damaged, does not compute the ICRC as others do.
const ALL_DAMAGED: u64 = 8;
/// A way of this many packets, nearly each of which is there twice, was recorded twice.
const MANY_TWINS: u64 = 2;
/// The same packet recorded at two places: nobody sends again within this time, unless he's asked to.
const TWIN_NS: u64 = 2_000_000;
/// So many packets are remembered, to know them when they come again.
const RECENT: usize = 32;

/// From whom to whom.
pub(super) type Way = (IpAddr, IpAddr);

/// What is known when the capture is over.
pub(super) struct Known {
    /// Its last packet.
    pub end: Moment,
    /// Only these ways of two machines were recorded.
    pub one_way: BTreeSet<Way>,
    pub pauses: Pauses,
    /// Senders whose ICRC fits none of their packets, without harm.
    pub odd: BTreeSet<IpAddr>,
}

/// A packet that was just seen.
#[derive(Debug)]
struct Recent {
    print: u64,
    way: Way,
    ttl: u8,
    /// It asks the other side to send again.
    is_refusal: bool,
    place: Moment,
    /// How often it came again.
    again: u64,
    /// Its connection and who sent it, and its name.
    of: Option<(usize, Side)>,
    name: &'static str,
}

/// What came on one way.
#[derive(Debug, Default)]
struct Count {
    packets: u64,
    twins: u64,
    /// Packets whose ICRC doesn't fit, and of these the ones that have none, but zeroes.
    bad: u64,
    zero: u64,
    /// The first two frames that are the same, and whether a router was between them.
    first: Option<([u64; 2], bool)>,
}

impl Count {
    /// Whoever records at two places does so from the start: after this many packets there's nothing to look for any more.
    fn is_single(&self) -> bool {
        self.packets >= 256 && self.twins * 10 < self.packets
    }

    /// How often each of its packets was recorded. Few packets, one of which came twice, are no more than twice recorded.
    fn places(&self) -> u64 {
        let packets = (self.packets - self.twins).max(1);
        let each = (self.packets as f64 / packets as f64 + 0.3) as u64;
        match self.is_doubled() {
            true if packets < 4 => 2,
            true => each.max(2),
            false => 1,
        }
    }

    fn is_doubled(&self) -> bool {
        self.twins >= MANY_TWINS && self.twins * 20 >= self.packets * 9
    }
}

/// A packet that was taken for another one's double, while it wasn't clear yet that all of its way are there twice.
#[derive(Debug)]
pub(super) struct Twin {
    way: Way,
    pub of: Option<(usize, Side)>,
    pub name: &'static str,
    pub frames: [u64; 2],
}

/// What comes on each way. And which packets are in the capture twice, because it was made at two places: `tcpdump -i any`, two mirror
/// ports.
#[derive(Debug, Default)]
pub(super) struct Ways {
    recent: VecDeque<Recent>,
    /// Half of the numbers of the recent ones, looked through for each packet, and the number of the packet at hand.
    prints: [u32; RECENT],
    print: u64,
    /// The packet at hand is of a way that was recorded once.
    is_single: bool,
    seen: usize,
    ways: FxHashMap<Way, Count>,
    early: Vec<Twin>,
    /// Packets that are there four times.
    four: Vec<Twin>,
}

impl Ways {
    /// No packet at all has an ICRC that fits.
    pub(super) fn all_bad(&self) -> bool {
        !self.ways.is_empty() && self.ways.values().all(|count| count.packets == count.bad)
    }

    /// Those who compute it in another way than all others, or not at all; with a sentence about each.
    pub(super) fn odd(&self, connections: &[Connection], ends: &[Ends]) -> BTreeMap<IpAddr, String> {
        let mut senders: BTreeMap<IpAddr, [u64; 3]> = BTreeMap::new();
        for ((from, _), count) in &self.ways {
            let all = senders.entry(*from).or_default();
            all.iter_mut().zip([count.packets, count.bad, count.zero]).for_each(|(all, count)| *all += count);
        }
        let mut taken: BTreeMap<IpAddr, u64> = BTreeMap::new();
        for (connection, ends) in connections.iter().zip(ends) {
            Side::BOTH
                .iter()
                .for_each(|side| *taken.entry(ends.ips[*side as usize]).or_default() += connection.odd(*side).1);
        }
        let is_odd = |(sender, [packets, bad, zero]): (&IpAddr, &[u64; 3])| {
            let taken = taken.get(sender).copied().unwrap_or_default();
            let (all, none) = (packets == bad, zero == bad);
            let why = match *bad {
                0 => return None,
                _ if none => format!("{sender} writes zeroes where the ICRC belongs, in {bad} of its packets, so it computes none"),
                _ if all && taken > 0 => format!(
                    "no ICRC of {sender}'s packets fits, and they are taken all the same: its device computes another one, or the \
                     capture was rewritten"
                ),
                ALL_DAMAGED.. if all => format!(
                    "no ICRC of {sender}'s packets fits: its device computes another one, or the capture was rewritten"
                ),
                _ => return None,
            };
            Some((*sender, why))
        };
        senders.iter().filter_map(is_odd).collect()
    }

    /// Counts a packet. Whether it's to be left out, because it's the second record of one before it.
    pub(super) fn is_twin(&mut self, packet: &Packet, icrc: Icrc, place: Moment) -> bool {
        let way = (packet.datagram.src, packet.datagram.dst);
        let count = self.ways.entry(way).or_default();
        count.packets += 1;
        if icrc == Icrc::Bad {
            count.bad += 1;
            count.zero += u64::from(packet.datagram.ip.ends_with(&[0; 4]));
        }
        self.is_single = count.is_single();
        !self.is_single && self.is_second(packet, icrc, way, place)
    }

    /// Whether the same packet is among the recent ones, and nearly each of its way.
    fn is_second(&mut self, packet: &Packet, icrc: Icrc, way: Way, place: Moment) -> bool {
        const MOST_EARLY: usize = 64;
        self.print = print(packet);
        let Some(at) = self.find(way, place) else { return false };
        let Some(count) = self.ways.get_mut(&way) else { return false };
        // Datagrams that are cut before their payload look alike.
        if packet.opcode.service == Service::Ud && packet.payload().is_empty() && icrc == Icrc::Cut {
            return false;
        }
        // CNPs have no numbers: one is like the other.
        if packet.opcode.operation == Operation::Congestion {
            count.twins += u64::from(count.is_doubled());
            return count.is_doubled();
        }
        let known = &mut self.recent[at];
        known.again += 1;
        let frames = [known.place.frame, place.frame];
        // Of all others there are two.
        if known.again == 3 && self.four.len() < MOST_EARLY {
            self.four.push(Twin { way, of: known.of, name: known.name, frames });
        }
        count.twins += 1;
        count.first.get_or_insert((frames, known.ttl != ttl(packet)));
        // A single one, of many packets, is one that was sent twice.
        let is_one_of_all = count.twins * 5 >= count.packets * 2;
        if is_one_of_all && self.early.len() < MOST_EARLY {
            self.early.push(Twin { way, of: known.of, name: known.name, frames });
        }
        is_one_of_all
    }

    /// A recent packet that's the same, unless somebody has asked for it again since.
    fn find(&self, way: Way, place: Moment) -> Option<usize> {
        // Without an early end it's one comparison for several numbers.
        let (print, short) = (self.print, short(self.print));
        if !self.prints.iter().fold(false, |found, other| found | (*other == short)) {
            return None;
        }
        self.recent.iter().rposition(|recent| recent.print == print && recent.way == way).filter(|at| {
            let since = place.since(self.recent[*at].place).unwrap_or(0);
            let mut after = self.recent.range(at + 1..);
            since < TWIN_NS && !after.any(|after| after.is_refusal && after.way == (way.1, way.0))
        })
    }

    /// A packet that was taken.
    pub(super) fn remember(&mut self, packet: &Packet, place: Moment, seen: Option<Membership>) {
        if self.is_single {
            return;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        // A request that's there again brings its answers again.
        let asks_again = seen.is_some_and(|seen| seen.again) && !packet.opcode.is_response();
        let is_refusal = asks_again
            || packet.opcode.operation == Operation::Acknowledge
                && packet.aeth().is_some_and(|aeth| !matches!(aeth.verdict(), Syndrome::Ack { .. }));
        let print = self.print;
        self.prints[self.seen % RECENT] = short(print);
        self.seen += 1;
        self.recent.push_back(Recent {
            print,
            way: (packet.datagram.src, packet.datagram.dst),
            ttl: ttl(packet),
            is_refusal,
            place,
            again: 0,
            of: seen.map(|seen| (seen.connection, seen.from)),
            name: packet.told(),
        });
    }

    /// What came twice: it was left out although its way was recorded once, or is there four times where it was recorded twice.
    pub(super) fn came_twice(&mut self) -> Vec<Twin> {
        let (early, four) = (std::mem::take(&mut self.early), std::mem::take(&mut self.four));
        let places = |twin: &Twin| self.ways.get(&twin.way).map_or(1, Count::places);
        let early = early.into_iter().filter(|twin| places(twin) == 1);
        early.chain(four.into_iter().filter(|twin| places(twin) == 2)).collect()
    }

    /// What was recorded twice, in sentences.
    pub(super) fn doubled(&self) -> Vec<String> {
        let mut told: BTreeMap<Way, String> = BTreeMap::new();
        let mut doubled: Vec<_> = self.ways.iter().filter(|(_, count)| count.is_doubled()).collect();
        doubled.sort_by_key(|(way, _)| **way);
        for ((from, to), count) in doubled {
            let times = match count.places() {
                2 => "twice".to_owned(),
                times => format!("{times} times"),
            };
            let ([first, second], is_routed) = count.first.unwrap_or_default();
            let how = match is_routed {
                true => "before and after a router, because their times to live differ",
                false => "as with tcpdump -i any, or at two mirror ports",
            };
            let both = self.ways.get(&(*to, *from)).is_some_and(Count::is_doubled);
            let which = if both { format!("between {from} and {to}") } else { format!("from {from} to {to}") };
            let pair = if both { (*from.min(to), *from.max(to)) } else { (*from, *to) };
            told.entry(pair).or_insert_with(|| {
                format!(
                    "the packets {which} are recorded {times} ({how}: frames {first} and {second} are the same packet), and count \
                     once here"
                )
            });
        }
        told.into_values().collect()
    }
}

fn ttl(packet: &Packet) -> u8 {
    match packet.datagram.ip {
        [version, ..] if version >> 4 == 6 => packet.datagram.ip.get(7).copied().unwrap_or_default(),
        ip => ip.get(8).copied().unwrap_or_default(),
    }
}

fn short(print: u64) -> u32 {
    (print ^ print >> 32) as u32
}

/// A number that two records of one packet share: routers and switches change nothing that goes into it. The ICRC, if it's there, stands
/// for all before it; a cut packet has its last bytes instead.
fn print(packet: &Packet) -> u64 {
    let ip = packet.datagram.ip;
    let word = |at: usize| ip.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    let id = if ip[0] >> 4 == 4 { u64::from(ip[4]) << 8 | u64::from(ip[5]) } else { 0 };
    let numbers = word(packet.bth_offset() + 4).rotate_left(17) ^ u64::from(packet.bth.opcode).rotate_left(40);
    word(ip.len().saturating_sub(8)) ^ numbers ^ (id << 32 | packet.datagram.wire_length as u64)
}

/// Answers, and messages of the connection manager, whose other half the capture lacks.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// For each responder and the queue pair to which it answers.
    answers: BTreeMap<(Way, u32), Answers>,
    refusals: Vec<(Way, Refusal)>,
    pub messages: u64,
    pub notifications: u64,
    pub others: u64,
}

/// Answers to one queue pair.
#[derive(Debug, Default)]
struct Answers {
    count: u64,
    unread: u64,
    findings: Findings,
}

/// What is said of answers without their requests.
pub(super) struct OrphanAnswers {
    pub way: Way,
    pub qp: Option<u32>,
    pub findings: Vec<Finding>,
}

impl Strays {
    pub(super) fn see(&mut self, packet: &Packet, frame: u64) {
        const MOST: usize = 256;
        let way = (packet.datagram.src, packet.datagram.dst);
        if let Some(message) = packet.cm() {
            self.messages += 1;
            let is_refusal = matches!(message.kind, Kind::ConnectReject | Kind::ServiceReply);
            if is_refusal && self.refusals.len() < MOST {
                self.refusals.extend(Refusal::of(&message, Side::Server, frame).map(|refusal| (way, refusal)));
            }
            return;
        }
        if !packet.opcode.is_response() {
            self.others += 1;
            return;
        }
        let key = (way, packet.bth.dest_qp);
        if self.answers.len() >= MOST && !self.answers.contains_key(&key) {
            self.others += 1;
            return;
        }
        self.answers.entry(key).or_default().see(packet, way, frame);
    }

    /// Answers and refusals.
    pub(super) fn answers(&self) -> u64 {
        self.answers.values().map(|answers| answers.count).sum::<u64>() + self.refusals.len() as u64
    }

    pub(super) fn unread(&self) -> u64 {
        self.answers.values().map(|answers| answers.unread).sum()
    }

    /// Refusals among them, and sentences about all others.
    pub(super) fn ended(self) -> (Vec<OrphanAnswers>, Vec<String>) {
        let (mut told, mut notes) = (Vec::new(), Vec::new());
        let mut by_way: BTreeMap<Way, [u64; 2]> = BTreeMap::new();
        for ((way, qp), answers) in self.answers {
            let [count, unread] = by_way.entry(way).or_default();
            *count += answers.count;
            *unread += answers.unread;
            let findings = answers.findings.sorted(&names(way));
            if !findings.is_empty() {
                told.push(OrphanAnswers { way, qp: Some(qp), findings });
            }
        }
        for (way, refusal) in self.refusals {
            let mut findings = Findings::default();
            let what = if refusal.is_timeout { "gave up a connection" } else { "rejected a connection" };
            let text = format!("{} {what}, whose other messages aren't in the capture: {}", way.0, refusal.why);
            refusal.tell(text, &[refusal.frame], &mut findings);
            told.push(OrphanAnswers { way, qp: None, findings: findings.sorted(&names(way)) });
        }
        for ((from, to), [count, unread]) in by_way {
            let which = if count == 1 { "1 answer is".to_owned() } else { format!("{count} answers are") };
            let cut = match unread {
                0 => String::new(),
                unread => format!("; of {unread} the AETH is cut off, so they may accept or refuse"),
            };
            notes.push(format!(
                "{which} in the capture whose requests aren't, from {from} to {to}: record both directions{cut}"
            ));
        }
        let mut count = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{what}: {count}"));
            }
        };
        count(
            self.messages,
            "messages of the connection manager that are cut, or about connections whose beginning the capture lacks",
        );
        count(self.notifications, "CNPs about connections that the capture lacks");
        count(self.others, "packets that we can't assign to a connection");
        (told, notes)
    }
}

impl Answers {
    fn see(&mut self, packet: &Packet, way: Way, frame: u64) {
        self.count += 1;
        self.unread += u64::from(packet.is_answer_cut());
        let Some(aeth) = packet.aeth() else { return };
        let ((from, to), psn) = (way, packet.bth.psn);
        let (cause, what) = match aeth.verdict() {
            Syndrome::RnrNak { timer_us } => {
                let wait = roce::aeth::milliseconds(timer_us);
                (Cause::NotReady, format!("{from} had no receive for a request: its RNR NAK asks to wait {wait} ms"))
            }
            Syndrome::Nak(Nak::PsnSequence) => {
                (Cause::Lost, format!("{from} asked for a packet of {to} that didn't arrive in its order"))
            }
            Syndrome::Nak(nak) => {
                let cause = Cause::of(nak).unwrap_or(Cause::RemoteOperational);
                (cause, format!("{from} refused a request: {nak}"))
            }
            Syndrome::Ack { .. } | Syndrome::Reserved(_) => return,
        };
        let text = format!("{what} (PSN {psn}; the request isn't in the capture)");
        self.findings.add(cause, Side::Client, text, &[frame]).is_not_mended();
    }
}

/// Who answers stands for the server.
fn names((server, client): Way) -> Names {
    Names::addresses([client, server])
}
