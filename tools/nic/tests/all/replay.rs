//! The kernel's half, replayed: the requests that rdma_rxe sent in the bundled captures get from our responder the answers that
//! rdma_rxe gave, and its answers complete the requests of our requester, which sends the packets that rdma_rxe sent.

use crate::pair::{attributes, request, Attributes, Side};
use nic::cm::{Mad, QP1};
use nic::completion::Status;
use nic::datagram;
use nic::packet::Packet;
use nic::psn::Psn;
use nic::qp::Qp;
use nic::work::{Remote, SendRequest, Work};
use roce::cm::{rep, req, Kind};
use roce::link;
use roce::opcode::{Operation, Part};
use roce::Frame;
use run::capture::Reader;
use run::story;
use std::collections::BTreeMap;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The MTU of the captures, in bytes.
const MTU: usize = 1024;

/// One side's requests and the answers to them, of one capture.
#[derive(Default)]
struct Direction {
    requests: Vec<Packet>,
    answers: Vec<Packet>,
    first: Option<Psn>,
}

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures")
}

fn each_packet(file: &Path, mut look: impl FnMut(&roce::Packet)) {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    while let Some(record) = reader.next().unwrap() {
        if let Frame::Roce(frame) = Frame::decode(record.link, record.data) {
            look(&frame);
        }
    }
}

/// Both directions, by the address that the requests go to.
fn directions(file: &Path) -> BTreeMap<IpAddr, Direction> {
    let mut directions: BTreeMap<IpAddr, Direction> = BTreeMap::new();
    each_packet(file, |frame| {
        let packet = Packet::decode(frame).unwrap();
        if let Some(mad) = Mad::read(&packet.payload).filter(|_| packet.dest_qp == QP1) {
            // The PSN that a side tells is the one with which its peer begins.
            let field = match mad.kind() {
                Kind::ConnectRequest => &req::STARTING_PSN,
                Kind::ConnectReply => &rep::STARTING_PSN,
                _ => return,
            };
            directions.entry(frame.datagram.src).or_default().first = Some(Psn::new(mad.get(field) as u32));
        } else if packet.row().is_response() {
            directions.entry(frame.datagram.src).or_default().answers.push(packet);
        } else {
            directions.entry(frame.datagram.dst).or_default().requests.push(packet);
        }
    });
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
    // With one client the addresses tell the directions apart; and only the connection manager tells the first PSN.
    let stories = story::bundled().unwrap().into_iter().filter(|story| story.clients == 1 && story.number() != "08");
    let names = stories.map(|story| story.file_name());
    let mut bundled: Vec<_> =
        names.map(|name| (name.clone(), directions(&captures().join(format!("{name}.pcapng"))))).collect();
    // How long somebody waits for a receive is not in a capture: here time stands still.
    let waits = |direction: &Direction| direction.answers.iter().any(|answer| answer.aeth.syndrome >> 5 == 1);
    // Nor is what memory held before an atomic.
    let is_atomic = |packet: &Packet| ["Compare Swap", "Fetch Add"].iter().any(|name| packet.row().name.contains(name));
    let adds = |direction: &Direction| direction.requests.iter().any(is_atomic);
    bundled.retain(|(_, directions)| !directions.values().any(|direction| waits(direction) || adds(direction)));
    bundled
}

#[test]
fn our_responder_answers_as_the_kernels() {
    let mut compared = 0;
    for (name, directions) in bundled() {
        for Direction { requests, answers, first } in directions.into_values() {
            let attributes = Attributes { mtu: MTU as u32, ..attributes(0, first.unwrap().get(), 7, 7) };
            let mut side = Side::new(17, answers[0].dest_qp, 128 << 10, attributes);
            for wr_id in 0..requests.len() {
                side.post_receive(wr_id as u64, wr_id * MTU, MTU).unwrap();
            }
            for request in requests {
                let request = if has(&request, "RETH") { moved(&request, &side) } else { request };
                if request.row().operation == Operation::ReadRequest {
                    // What stood there the answers tell.
                    for answer in answers.iter().filter(|answer| answer.row().operation == Operation::ReadResponse) {
                        let index = answer.psn.since(request.psn);
                        if (0..=(request.reth.length as usize / MTU) as i32).contains(&index) {
                            let offset = (request.reth.va - side.address(0)) as usize + index as usize * MTU;
                            side.fill(offset, &answer.payload);
                        }
                    }
                }
                side.receive(request);
                side.act(Qp::tick);
            }
            let ours = side.take_out();
            same(&ours, &answers, &name);
            compared += ours.len();
        }
    }
    assert!(compared >= 39, "{compared}");
}

#[test]
fn the_kernels_answers_complete_what_our_requester_sends_as_the_kernels() {
    let mut compared = 0;
    for (name, directions) in bundled() {
        for Direction { requests, answers, first } in directions.into_values() {
            let attributes = Attributes { mtu: MTU as u32, ..attributes(first.unwrap().get(), 0, 7, 7) };
            let mut side = Side::new(17, requests[0].dest_qp, requests.len() * 8 * MTU, attributes);
            let all = posted(&requests);
            for (number, (work, bytes, immediate)) in all.iter().enumerate() {
                side.fill(number * 8 * MTU, bytes);
                let request = request(number as u64, *work, side.piece(number * 8 * MTU, bytes.len()));
                side.post_send(SendRequest { immediate: *immediate, ..request });
            }
            let mut ours = side.sends();
            for answer in answers {
                side.receive(Packet { dest_qp: 17, ..answer });
                ours.extend(side.take_out());
            }
            same(&ours, &requests, &name);
            assert_eq!(side.sent.len(), all.len(), "{name}");
            assert!(side.sent.iter().all(|wc| wc.status == Status::Success), "{name}: {:?}", side.sent);
            compared += ours.len();
        }
    }
    assert!(compared >= 39, "{compared}");
}

/// What a program posted, as its packets tell: the work, its bytes, or as many zeroes, and the immediate.
fn posted(packets: &[Packet]) -> Vec<(Work, Vec<u8>, Option<u32>)> {
    let mut posted = Vec::new();
    for packet in packets {
        let remote = Remote { address: packet.reth.va, rkey: packet.reth.rkey };
        if matches!(packet.row().part, Part::First | Part::Only) {
            posted.push(match packet.row().operation {
                Operation::ReadRequest => (Work::Read(remote), vec![0; packet.reth.length as usize], None),
                Operation::Write => (Work::Write(remote), Vec::new(), None),
                _ => (Work::Send, Vec::new(), None),
            });
        }
        let (_, bytes, immediate) = posted.last_mut().unwrap();
        bytes.extend_from_slice(&packet.payload);
        *immediate = has(packet, "ImmDt").then_some(packet.immediate);
    }
    posted
}

fn has(packet: &Packet, header: &str) -> bool {
    packet.row().headers.iter().any(|other| other.name == header)
}

/// What a socket gives of a kernel's packet is taken, whatever the identification in its IP header was. Cut, or with a flipped
/// bit outside the byte that routers change, it is dropped.
#[test]
fn every_packet_of_the_kernels_is_taken_as_it_was_sent_or_not_at_all() {
    let mut taken = 0;
    each_packet(&captures().join("04_rdma_write.pcapng"), |frame| {
        let link::Datagram { ip, udp_offset, src, dst, .. } = frame.datagram;
        let payload = &ip[udp_offset + 8..];
        let open = |payload: &[u8]| {
            datagram::open(src, dst, u16::from_be_bytes([ip[udp_offset], ip[udp_offset + 1]]), payload)
        };
        let packet = open(payload).unwrap();
        assert_eq!(
            (Some(&packet), &packet.encode()[..]),
            (Packet::decode(frame).as_ref(), &payload[..payload.len() - 4])
        );
        assert!((0..payload.len()).all(|end| open(&payload[..end]).is_none()));
        for bit in 0..payload.len() * 8 {
            let mut flipped = payload.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&flipped).is_some(), bit / 8 == 4, "bit {bit}");
        }
        taken += 1;
    });
    assert!(taken > 10, "{taken}");
}
