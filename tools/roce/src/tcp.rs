//! TCP beside RDMA: programs that don't use the connection manager agree over it, so it often tells who of the two is the client.
//! And TCP below RDMA, which is [`iwarp`](crate::iwarp).

use crate::link::{self, LinkType};
use std::net::{IpAddr, Ipv4Addr};

/// What a TCP header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub src_port: u16,
    pub dst_port: u16,
    /// SYN: it opens a connection, or answers the packet that did.
    pub is_syn: bool,
    pub is_ack: bool,
    pub is_fin: bool,
    pub is_rst: bool,
    pub sequence: u32,
    pub acknowledgement: u32,
    /// Where in the frame the IP header begins, the TCP header, and the payload.
    pub ip_offset: usize,
    pub header_offset: usize,
    pub payload_offset: usize,
    /// Bytes of payload on the wire.
    pub length: usize,
}

impl Segment {
    /// Reads a frame; None if it isn't TCP, is a piece of a packet, or is cut before the flags.
    pub fn read(link: LinkType, frame: &[u8]) -> Option<Segment> {
        const TCP: u8 = 6;
        let (_, at) = link::network_layer(link, frame).ok()?;
        let packet = frame.get(at..)?;
        let length_at =
            |at: usize| packet.get(at..at + 2).map(|pair| usize::from(u16::from_be_bytes([pair[0], pair[1]])));
        let (tcp, end, [src, dst]) = match packet.first()? >> 4 {
            4 if *packet.get(9)? == TCP && packet[6] & 0x3f == 0 && packet[7] == 0 => {
                let address = |at| packet.get(at..at + 4).map(|a| Ipv4Addr::new(a[0], a[1], a[2], a[3]).into());
                (usize::from(packet[0] & 0x0f) * 4, length_at(2)?, [address(12)?, address(16)?])
            }
            6 if *packet.get(6)? == TCP => {
                let address = |at| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
                (40, 40 + length_at(4)?, [address(8)?, address(24)?])
            }
            _ => return None,
        };
        let header = packet.get(tcp..tcp + 14)?;
        let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (flags, payload) = (header[13], tcp + usize::from(header[12] >> 4) * 4);
        Some(Segment {
            src,
            dst,
            src_port: port(0),
            dst_port: port(2),
            is_syn: flags & 0x02 != 0,
            is_ack: flags & 0x10 != 0,
            is_fin: flags & 0x01 != 0,
            is_rst: flags & 0x04 != 0,
            sequence: number(4),
            acknowledgement: number(8),
            ip_offset: at,
            header_offset: at + tcp,
            payload_offset: at + payload,
            length: end.saturating_sub(payload),
        })
    }

    /// The payload in the frame that this was read from, as far as it was recorded.
    pub fn payload<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let rest = frame.get(self.payload_offset..).unwrap_or_default();
        &rest[..rest.len().min(self.length)]
    }
}
