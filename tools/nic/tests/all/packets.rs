//! The packets that rdma_rxe sent in a bundled capture, as a socket gives them. Whether we answer them as rdma_rxe did, and complete
//! what it asked for, the judge of part three says (examples/judge, doorbell.rs): the tests of `course` ask it.

use nic::datagram;
use nic::packet::Packet;
use roce::{link, Frame};
use run::capture::Reader;
use std::fs::File;
use std::path::Path;

/// What a socket gives of a kernel's packet is taken, whatever the identification in its IP header was. Cut, or with a flipped
/// bit outside the byte that routers change, it is dropped.
#[test]
fn every_packet_of_the_kernels_is_taken_as_it_was_sent_or_not_at_all() {
    let mut taken = 0;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/04_rdma_write.pcapng");
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    while let Some(record) = reader.next().unwrap() {
        let Frame::Roce(frame) = Frame::decode(record.link, record.data) else { continue };
        let link::Datagram { ip, udp_offset, src, dst, .. } = frame.datagram;
        let payload = &ip[udp_offset + 8..];
        let open = |payload: &[u8]| {
            datagram::open(src, dst, u16::from_be_bytes([ip[udp_offset], ip[udp_offset + 1]]), payload)
        };
        let packet = open(payload).unwrap();
        assert_eq!(
            (Some(&packet), &packet.encode()[..]),
            (Packet::decode(&frame).as_ref(), &payload[..payload.len() - 4])
        );
        assert!((0..payload.len()).all(|end| open(&payload[..end]).is_none()));
        for bit in 0..payload.len() * 8 {
            let mut flipped = payload.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&flipped).is_some(), bit / 8 == 4, "bit {bit}");
        }
        taken += 1;
    }
    assert!(taken > 10, "{taken}");
}
