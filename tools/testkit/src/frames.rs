//! Frames built byte by byte from the layouts of the specification, for the tests.

use roce::icrc;
use std::net::IpAddr;

pub const CLIENT: &str = "10.0.0.2";
pub const SERVER: &str = "10.0.0.1";

/// BTH, extended headers, payload and padding.
pub fn transport(opcode: u8, dest_qp: u32, psn: u32, headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let pad = payload.len().wrapping_neg() % 4;
    let mut bytes = vec![opcode, (pad as u8) << 4, 0xff, 0xff];
    bytes.extend(dest_qp.to_be_bytes());
    bytes.extend((psn | 1 << 31).to_be_bytes()); // AckReq
    bytes.extend(headers);
    bytes.extend(payload);
    bytes.extend(&[0; 3][..pad]);
    bytes
}

/// An IP packet with a UDP datagram to port 4791 that ends with the right ICRC.
pub fn ip(src: &str, dst: &str, transport: &[u8]) -> Vec<u8> {
    let udp_length = 8 + transport.len() + 4;
    let (mut packet, udp) = match (src.parse().unwrap(), dst.parse().unwrap()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => (ipv4_header(src.octets(), dst.octets(), &[], udp_length), 20),
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut header = vec![0x60, 0, 0, 0];
            header.extend((udp_length as u16).to_be_bytes());
            header.extend([17, 64]);
            header.extend(src.octets());
            header.extend(dst.octets());
            (header, 40)
        }
        _ => panic!("two addresses of one IP version"),
    };
    packet.extend(udp_header(udp_length));
    packet.extend(transport);
    packet.extend(icrc::compute(&packet, udp).unwrap().to_le_bytes());
    packet
}

pub fn ipv4_header(src: [u8; 4], dst: [u8; 4], options: &[u8], payload: usize) -> Vec<u8> {
    let length = 20 + options.len();
    let mut header = vec![0x40 | (length / 4) as u8, 0];
    header.extend(((length + payload) as u16).to_be_bytes());
    header.extend([0x12, 0x34, 0x40, 0, 64, 17, 0, 0]);
    header.extend(src);
    header.extend(dst);
    header.extend(options);
    header
}

pub fn udp_header(length: usize) -> Vec<u8> {
    let mut header = vec![0xc0, 0x00];
    header.extend(4791u16.to_be_bytes());
    header.extend((length as u16).to_be_bytes());
    header.extend([0, 0]);
    header
}

/// Puts an IP packet into an Ethernet frame of at least 60 bytes.
pub fn ethernet(ip: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x52, 0x54, 0, 0, 0, 1, 0x52, 0x54, 0, 0, 0, 2];
    frame.extend(if ip[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] });
    frame.extend(ip);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The Ethernet frame of an RC, UC or UD packet over IPv4.
pub fn frame(src: &str, dst: &str, opcode: u8, dest_qp: u32, psn: u32, headers: &[u8], payload: &[u8]) -> Vec<u8> {
    ethernet(&ip(src, dst, &transport(opcode, dest_qp, psn, headers, payload)))
}

pub fn reth(va: u64, r_key: u32, length: u32) -> Vec<u8> {
    [&va.to_be_bytes()[..], &r_key.to_be_bytes(), &length.to_be_bytes()].concat()
}

pub fn aeth(syndrome: u8, msn: u32) -> Vec<u8> {
    (u32::from(syndrome) << 24 | msn).to_be_bytes().to_vec()
}

pub fn atomic_eth(va: u64, r_key: u32, swap_add: u64, compare: u64) -> Vec<u8> {
    let parts = [&va.to_be_bytes()[..], &r_key.to_be_bytes(), &swap_add.to_be_bytes(), &compare.to_be_bytes()];
    parts.concat()
}

/// Of a datagram: the connection manager's Q_Key, and who sends it.
pub fn deth(src_qp: u32) -> Vec<u8> {
    [[0x80, 0x01, 0, 0], src_qp.to_be_bytes()].concat()
}

/// A CM message of 256 bytes: MAD header, then `body` from the first byte after it, then zeroes.
pub fn cm(attribute: u16, transaction: u64, body: &[(usize, &[u8])]) -> Vec<u8> {
    let mut mad = vec![1, 7, 2, 3, 0, 0, 0, 0];
    mad.extend(transaction.to_be_bytes());
    mad.extend(attribute.to_be_bytes());
    mad.resize(256, 0);
    for (at, bytes) in body {
        mad[24 + at..24 + at + bytes.len()].copy_from_slice(bytes);
    }
    mad
}

/// The Ethernet frame of a CM message.
pub fn cm_frame(src: &str, dst: &str, attribute: u16, body: &[(usize, &[u8])]) -> Vec<u8> {
    frame(src, dst, 0x64, 1, 77, &deth(1), &cm(attribute, 0x1111, body))
}

pub const CLIENT_ID: [u8; 4] = [0xc1, 1, 2, 3];
pub const SERVER_ID: [u8; 4] = [0x51, 4, 5, 6];
pub const CLIENT_QP: u32 = 0x11;
pub const SERVER_QP: u32 = 0x22;
/// The first PSN of the client's requests; REP announces it.
pub const CLIENT_PSN: u32 = 0xff_ffff;
/// The first PSN of the server's requests; REQ announces it.
pub const SERVER_PSN: u32 = 500;

/// Both ends of a connection: first the client's, then the server's.
#[derive(Clone, Debug)]
pub struct Ends {
    pub addresses: [&'static str; 2],
    pub ids: [u32; 2],
    pub qps: [u32; 2],
    /// The first PSN of each side's requests.
    pub psns: [u32; 2],
    pub mtu_code: u8,
}

impl Ends {
    /// REQ, REP and RTU, then these frames, then DREQ and DREP.
    pub fn around(&self, between: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let [client, server] = self.ids.map(u32::to_be_bytes);
        let three = |value: u32| value.to_be_bytes()[1..].to_vec();
        let ([client_qp, server_qp], [client_psn, server_psn]) = (self.qps.map(three), self.psns.map(three));
        let gid = |last: u8| [&[0; 12][..], &[10, 0, 0, last]].concat();
        let ip_cm = [vec![0, 0x40, 0xd4, 0x31], gid(2), gid(1)].concat();
        let ids: &[(usize, &[u8])] = &[(0, &client), (4, &server)];
        let request: &[(usize, &[u8])] = &[
            (0, &client),
            (8, &0x0106_1d2fu64.to_be_bytes()),
            (32, &client_qp),
            (35, &[3]),
            (39, &[3]),
            (43, &[0xa0]),
            (44, &server_psn),
            (47, &[0xa7, 0xff, 0xff, self.mtu_code << 4 | 7, 0xf0]),
            (95, &[19 << 3]),
            (140, &ip_cm),
            (176, b"knock"),
        ];
        let begin: &[(usize, &[u8])] = &[(0, &server), (4, &client), (12, &server_qp), (20, &client_psn)];
        let reply = [begin, &[(24, &[3, 3, 0x7b, 0xe0]), (36, &[7; 16])]].concat();
        let connect = vec![self.cm(0, 0x10, request), self.cm(1, 0x13, &reply), self.cm(0, 0x14, ids)];
        let goodbye = vec![self.cm(0, 0x15, ids), self.cm(1, 0x16, &begin[..2])];
        [connect, between, goodbye].concat()
    }

    fn cm(&self, from: usize, attribute: u16, body: &[(usize, &[u8])]) -> Vec<u8> {
        // A DREQ and its DREP have a transaction of their own.
        let transaction = u64::from(self.ids[0]) << 8 | u64::from(attribute >= 0x15);
        let message = cm(attribute, transaction, body);
        frame(self.addresses[from], self.addresses[1 - from], 0x64, 1, 77, &deth(1), &message)
    }
}

/// REQ, REP, RTU, a WRITE that wraps the PSN, a READ, a NAK, DREQ, DREP: as lesson 05 would look.
pub fn conversation() -> Vec<Vec<u8>> {
    let (c, s) = (CLIENT, SERVER);
    let write = reth(0x7f00_0000_1000, 0x1234, 1064);
    let read = reth(0x7f00_0000_1000, 0x1234, 1061);
    let ids = [CLIENT_ID, SERVER_ID].map(u32::from_be_bytes);
    let (qps, psns) = ([CLIENT_QP, SERVER_QP], [CLIENT_PSN, SERVER_PSN]);
    Ends { addresses: [c, s], ids, qps, psns, mtu_code: 3 }.around(vec![
        frame(c, s, 0x06, SERVER_QP, CLIENT_PSN, &write, &[5; 1024]),
        frame(c, s, 0x08, SERVER_QP, 0, &[], &[6; 40]),
        frame(s, c, 0x11, CLIENT_QP, 0, &aeth(0x1f, 1), &[]),
        frame(c, s, 0x0c, SERVER_QP, 1, &read, &[]),
        frame(s, c, 0x0d, CLIENT_QP, 1, &aeth(0x1f, 2), &[5; 1024]),
        frame(s, c, 0x0f, CLIENT_QP, 2, &aeth(0x1f, 2), &[6; 37]),
        frame(s, c, 0x04, CLIENT_QP, SERVER_PSN, &[], b"hello"),
        frame(c, s, 0x11, SERVER_QP, SERVER_PSN, &aeth(0x2c, 0), &[]),
        frame(c, s, 0x0a, SERVER_QP, 3, &reth(0x10, 0x99, 3), b"abc"),
        frame(s, c, 0x11, CLIENT_QP, 3, &aeth(0x62, 2), &[]),
    ])
}
