//! The kernel's half, replayed: the requests that rdma_rxe sent in the bundled captures get from our responder the answers that
//! rdma_rxe gave, and its answers complete the requests of our requester, which sends the packets that rdma_rxe sent.

use crate::pair;
use crate::pair::{attributes, Side};
use nic::cm::{Mad, QP1};
use nic::completion::Status;
use nic::packet::Packet;
use nic::psn::Psn;
use nic::qp::Qp;
use nic::work::{Local, Remote, SendRequest, Work};
use roce::cm::{rep, req, Kind};
use roce::opcode::Operation;
use roce::Frame;
use run::capture::Reader;
use run::story;
use std::collections::BTreeMap;
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;
use std::time::Instant;

/// One side's requests and the answers to them, of one capture.
#[derive(Default)]
struct Direction {
    requests: Vec<Packet>,
    answers: Vec<Packet>,
    first: Option<Psn>,
}

/// Both directions, by the address that the requests go to.
fn directions(file: &Path) -> BTreeMap<IpAddr, Direction> {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    let mut directions: BTreeMap<IpAddr, Direction> = BTreeMap::new();
    while let Some(record) = reader.next().unwrap() {
        let Frame::Roce(frame) = Frame::decode(record.link, record.data) else { continue };
        let packet = Packet::decode(&frame).unwrap();
        if let Some(mad) = Mad::read(&packet.payload).filter(|_| packet.dest_qp == QP1) {
            // The PSN that a side tells is the one with which its peer begins.
            let field = match mad.kind() {
                Kind::ConnectRequest => &req::STARTING_PSN,
                Kind::ConnectReply => &rep::STARTING_PSN,
                _ => continue,
            };
            directions.entry(frame.datagram.src).or_default().first = Some(Psn::new(mad.get(field) as u32));
        } else if packet.row().is_response() {
            directions.entry(frame.datagram.src).or_default().answers.push(packet);
        } else {
            directions.entry(frame.datagram.dst).or_default().requests.push(packet);
        }
    }
    directions.retain(|_, direction| !direction.requests.is_empty());
    directions
}

/// Moves a place in the peer's memory to the buffer of `side`.
fn moved(packet: &Packet, side: &Side) -> Packet {
    let mut packet = packet.clone();
    let offset = 64 * 1024 + (packet.reth.va & 0xfff) as usize;
    packet.reth.va = side.address(offset);
    packet.reth.rkey = side.key;
    packet
}

/// Compares the bytes on the wire.
fn same(ours: &[Packet], theirs: &[Packet], name: &str) {
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!(ours.encode() == theirs.encode(), "{name}: {} with PSN {}", theirs.row().name, theirs.psn);
    }
}

fn bundled() -> Vec<(String, BTreeMap<IpAddr, Direction>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    // With one client the addresses tell the directions apart; and only the connection manager tells the first PSN.
    let stories = story::bundled().unwrap().into_iter().filter(|story| story.clients == 1 && story.number() != "08");
    let names = stories.map(|story| story.file_name());
    let mut bundled: Vec<_> =
        names.map(|name| (name.clone(), directions(&folder.join(format!("{name}.pcapng"))))).collect();
    // How long somebody waits for a receive is not in a capture: here time stands still.
    let waits = |direction: &Direction| direction.answers.iter().any(|answer| answer.aeth.syndrome >> 5 == 1);
    bundled.retain(|(_, directions)| !directions.values().any(waits));
    bundled
}

#[test]
fn our_responder_answers_as_the_kernels() {
    let mut compared = 0;
    for (name, directions) in bundled() {
        for direction in directions.values() {
            let first = direction.first.unwrap();
            let mut side = Side::new(
                17,
                direction.answers[0].dest_qp,
                128 << 10,
                pair::Attributes { mtu: 1024, ..attributes(0, first.get(), 7, 7) },
            );
            let now = Instant::now();
            let (requests, answers) = (&direction.requests, &direction.answers);
            for (wr_id, _) in requests.iter().enumerate() {
                let piece = side.piece(wr_id * 1024, 1024);
                side.post_receive(now, wr_id as u64, piece).unwrap();
            }
            for request in requests {
                let mut request = request.clone();
                if request.row().headers.iter().any(|header| header.name == "RETH") {
                    request = moved(&request, &side);
                }
                if request.row().operation == Operation::ReadRequest {
                    // What stood there the answers tell.
                    let mtu = 1024;
                    for answer in answers.iter().filter(|answer| answer.row().operation == Operation::ReadResponse) {
                        let index = answer.psn.since(request.psn);
                        if (0..=(request.reth.length / mtu) as i32).contains(&index) {
                            let offset = (request.reth.va - side.address(0)) as usize + index as usize * mtu as usize;
                            side.fill(offset, &answer.payload);
                        }
                    }
                }
                side.act(now, |qp, out| qp.receive(request, out));
                side.act(now, Qp::tick);
            }
            let ours = side.take_out();
            same(&ours, answers, &name);
            compared += ours.len();
        }
    }
    assert!(compared >= 39, "{compared}");
}

#[test]
fn the_kernels_answers_complete_what_our_requester_sends_as_the_kernels() {
    let mut compared = 0;
    for (name, directions) in bundled() {
        for direction in directions.values() {
            let first = direction.first.unwrap();
            let attributes = pair::Attributes { mtu: 1024, ..attributes(first.get(), 0, 7, 7) };
            let room = direction.requests.len() * 8192;
            let mut side = Side::new(17, direction.requests[0].dest_qp, room, attributes);
            let now = Instant::now();
            let mut posted = 0;
            for request in requests(&direction.requests) {
                let local = side.piece(posted * 8192, request.length as usize);
                side.fill(posted * 8192, &request.bytes);
                let (wr_id, length, work) = (posted as u64, request.length, request.work);
                let (local, immediate) = (Local::SgList(vec![local]), request.immediate);
                let request = SendRequest {
                    wr_id,
                    work,
                    local,
                    length,
                    immediate,
                    signaled: true,
                    solicited: false,
                    fence: false,
                };
                side.act(now, |qp, out| qp.post_send(request, out)).unwrap();
                posted += 1;
            }
            side.act(now, Qp::tick);
            let mut ours = side.take_out();
            for answer in &direction.answers {
                let mut answer = answer.clone();
                answer.dest_qp = 17;
                side.act(now, |qp, out| qp.receive(answer, out));
                ours.extend(side.take_out());
            }
            same(&ours, &direction.requests, &name);
            assert_eq!(side.sent.len(), posted, "{name}");
            assert!(side.sent.iter().all(|wc| wc.status == Status::Success), "{name}: {:?}", side.sent);
            compared += ours.len();
        }
    }
    assert!(compared >= 39, "{compared}");
}

/// What a program posted, as its packets tell.
struct Posted {
    work: Work,
    length: u32,
    bytes: Vec<u8>,
    immediate: Option<u32>,
}

fn requests(packets: &[Packet]) -> Vec<Posted> {
    let mut posted: Vec<Posted> = Vec::new();
    for packet in packets {
        let remote = Remote { address: packet.reth.va, rkey: packet.reth.rkey };
        let begins = matches!(packet.row().part, roce::opcode::Part::First | roce::opcode::Part::Only);
        let (work, length) = match packet.row().operation {
            Operation::ReadRequest => (Work::Read(remote), packet.reth.length),
            Operation::Write => (Work::Write(remote), packet.reth.length),
            _ => (Work::Send, packet.payload.len() as u32),
        };
        if begins {
            posted.push(Posted { work, length, bytes: Vec::new(), immediate: None });
        }
        let last = posted.last_mut().unwrap();
        last.bytes.extend_from_slice(&packet.payload);
        let has_immediate = packet.row().headers.iter().any(|header| header.name == "ImmDt");
        last.immediate = has_immediate.then_some(packet.immediate);
    }
    posted
}
