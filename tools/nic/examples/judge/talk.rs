//! What two queue pairs said to each other in a capture, from the REQ to the end.

use crate::knock::message;
use crate::recorded::Recorded;
use nic::packet::Packet;
use nic::psn::Psn;
use roce::cm::{rep, req, Kind, LOCAL_ID, REMOTE_ID};
use roce::opcode::{Operation, Part, Service};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Captures whose packets do not tell why they came: rdma_rxe answers a loss in another way than we do, a program was late or
/// killed, a right was missing.
const LEFT_OUT: [&str; 9] = [
    "03-far-too-late",
    "03-late-queue-pair",
    "05-lost-response-middle",
    "05-no-remote-read",
    "05-reads-not-taken",
    "10_going_fast-no-credits",
    "13-killed",
    "13-no-credits",
    "13-patience",
];

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub address: IpAddr,
    pub qpn: u32,
    /// The PSN of its first request.
    pub first: Psn,
}

/// A packet between them.
pub struct Frame<'a> {
    pub recorded: &'a Recorded,
    pub from: IpAddr,
    pub packet: Packet,
}

impl Frame<'_> {
    /// As `04_rdma_write, frame 17`.
    pub fn name(&self) -> &str {
        &self.recorded.name
    }

    /// It is the first packet of a message, or its only one.
    pub fn begins(&self) -> bool {
        matches!(self.packet.row().part, Part::First | Part::Only)
    }

    pub fn ends(&self) -> bool {
        matches!(self.packet.row().part, Part::Last | Part::Only)
    }
}

/// A conversation.
pub struct Talk<'a> {
    pub client: End,
    pub server: End,
    pub mtu: u32,
    /// The code of the time to wait for an ACK.
    pub timeout: u8,
    pub retries: u8,
    pub rnr_retries: u8,
    pub frames: Vec<Frame<'a>>,
}

/// All conversations of reliable connections, those without a fault first. What memory held before an atomic operation no packet
/// tells: with those we cannot play. Nor with packets that came late, twice or damaged.
pub fn talks(frames: &[Recorded]) -> Vec<Talk<'_>> {
    let mut captures: BTreeMap<(bool, &str), Vec<&Recorded>> = BTreeMap::new();
    for frame in frames.iter().filter(|frame| !LEFT_OUT.contains(&&*frame.capture)) {
        captures.entry((frame.is_faulty, &frame.capture)).or_default().push(frame);
    }
    let mut talks: Vec<Talk> = captures.values().flat_map(|frames| connections(frames)).collect();
    talks.retain(|talk| !talk.frames.is_empty() && talk.frames.iter().all(can_be_played));
    talks
}

fn can_be_played(frame: &Frame) -> bool {
    use Operation::{Acknowledge, ReadRequest, ReadResponse, Send, Write};
    let row = frame.packet.row();
    let is_known = matches!(row.operation, Send | Write | ReadRequest | ReadResponse | Acknowledge);
    is_known && row.service == Service::Rc && !frame.recorded.is_mangled
}

/// The connections of one capture: each REP belongs to a REQ.
fn connections<'a>(frames: &[&'a Recorded]) -> Vec<Talk<'a>> {
    let mut asked = BTreeMap::new();
    let mut talks: Vec<Talk> = Vec::new();
    for message in frames.iter().filter_map(|frame| message(frame)) {
        let mad = &message.mad;
        let end = |qpn: u64| End { address: message.from, qpn: qpn as u32, first: Psn::new(0) };
        match mad.kind() {
            Kind::ConnectRequest => {
                let begin = Psn::new(mad.get(&req::STARTING_PSN) as u32);
                asked.entry(mad.get(&LOCAL_ID)).or_insert((end(mad.get(&req::LOCAL_QPN)), begin, message));
            }
            Kind::ConnectReply => {
                let Some((client, server_begins, request)) = asked.get(&mad.get(&REMOTE_ID)) else { continue };
                // The PSN that a side tells is the one with which its peer begins.
                let client = End { first: Psn::new(mad.get(&rep::STARTING_PSN) as u32), ..*client };
                let server = End { first: *server_begins, ..end(mad.get(&rep::LOCAL_QPN)) };
                let request = &request.mad;
                if !talks.iter().any(|talk| (talk.client, talk.server) == (client, server)) {
                    talks.push(Talk {
                        client,
                        server,
                        mtu: 128 << request.get(&req::PATH_MTU),
                        timeout: request.get(&req::LOCAL_ACK_TIMEOUT) as u8,
                        retries: request.get(&req::RETRY_COUNT) as u8,
                        rnr_retries: request.get(&req::RNR_RETRY) as u8,
                        frames: between(frames, client, server),
                    });
                }
            }
            _ => {}
        }
    }
    talks
}

fn between<'a>(frames: &[&'a Recorded], client: End, server: End) -> Vec<Frame<'a>> {
    let all = frames.iter().filter_map(|recorded| {
        let theirs = recorded.packet()?;
        let packet = Packet::decode(&theirs)?;
        let (from, to) = (theirs.datagram.src, (theirs.datagram.dst, packet.dest_qp));
        let is_ours = [(client, server), (server, client)]
            .iter()
            .any(|(one, other)| from == one.address && to == (other.address, other.qpn));
        is_ours.then_some(Frame { recorded, from, packet })
    });
    all.collect()
}
