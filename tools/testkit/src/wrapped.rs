//! Frames put into what clouds and switches put them into.

use crate::frames::ipv4_header;
use wire::explain::Explanation;

/// A way to wrap an Ethernet frame.
pub struct Wrap {
    /// What `wire` must call it.
    pub name: &'static str,
    pub wrap: fn(&[u8]) -> Vec<u8>,
    /// tshark 4.0 finds the same packet in it, without being told where to look.
    pub tshark_knows: bool,
}

const MACS: [u8; 12] = [0x02, 0xaa, 0, 0, 0, 1, 0x02, 0xaa, 0, 0, 0, 2];

/// An outer Ethernet frame.
fn ethernet(ethertype: u16, content: &[u8]) -> Vec<u8> {
    [&MACS[..], &ethertype.to_be_bytes(), content].concat()
}

/// What an inner frame is without its own Ethernet header and tags: EtherType and IP packet.
fn network(frame: &[u8]) -> (u16, &[u8]) {
    let mut at = 12;
    while matches!(u16::from_be_bytes([frame[at], frame[at + 1]]), 0x8100 | 0x88a8) {
        at += 4;
    }
    (u16::from_be_bytes([frame[at], frame[at + 1]]), &frame[at + 2..])
}

fn v4(protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut header = ipv4_header([198, 51, 100, 1], [198, 51, 100, 2], &[], content.len());
    header[9] = protocol;
    ethernet(0x0800, &[header, content.to_vec()].concat())
}

fn v6(protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((content.len() as u16).to_be_bytes());
    header.extend([protocol, 64]);
    header.extend([[0xfd; 16], [0xfe; 16]].concat());
    ethernet(0x86dd, &[header, content.to_vec()].concat())
}

fn udp(port: u16, content: &[u8]) -> Vec<u8> {
    let length = (8 + content.len()) as u16;
    [&[0xd0, 0x01][..], &port.to_be_bytes(), &length.to_be_bytes(), &[0, 0], content].concat()
}

fn vxlan(flags: u8, next: u8, content: &[u8]) -> Vec<u8> {
    [&[flags, 0, 0, next, 0, 0, 42, 0][..], content].concat()
}

fn geneve(options: &[u8], protocol: u16, content: &[u8]) -> Vec<u8> {
    [&[(options.len() / 4) as u8, 0][..], &protocol.to_be_bytes(), &[0, 0, 42, 0], options, content].concat()
}

fn gre(flags: u16, kind: u16, words: &[u8], content: &[u8]) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &kind.to_be_bytes(), words, content].concat()
}

fn ip_in_ip(outer: fn(u8, &[u8]) -> Vec<u8>, frame: &[u8]) -> Vec<u8> {
    let (ethertype, packet) = network(frame);
    outer(if ethertype == 0x0800 { 4 } else { 41 }, packet)
}

fn ppp(frame: &[u8]) -> Vec<u8> {
    let (ethertype, packet) = network(frame);
    let protocol = if ethertype == 0x0800 { [0x00, 0x21] } else { [0x00, 0x57] };
    let length = (packet.len() as u16 + 2).to_be_bytes();
    [&[0x11, 0, 0, 5][..], &length, &protocol, packet].concat()
}

/// Version 2: twelve bits of VLAN and ten of the session, behind others.
const ERSPAN2: [u8; 8] = [0x10, 0, 0, 5, 0, 0, 0, 0];
const ERSPAN3: [u8; 12] = [0x20, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0];

#[rustfmt::skip] // A table.
pub const WRAPS: &[Wrap] = &[
    Wrap { name: "VXLAN, VNI 42", wrap: |frame| v4(17, &udp(4789, &vxlan(8, 0, frame))), tshark_knows: true },
    Wrap { name: "VXLAN, VNI 42", wrap: |frame| v6(17, &udp(4789, &vxlan(8, 0, frame))), tshark_knows: true },
    Wrap { name: "VXLAN, VNI 42", wrap: |frame| v4(17, &udp(8472, &vxlan(8, 0, frame))), tshark_knows: false },
    Wrap { name: "VXLAN-GPE, VNI 42", wrap: |frame| v4(17, &udp(4790, &vxlan(0x0c, 3, frame))), tshark_knows: true },
    Wrap { name: "Geneve, VNI 42", wrap: |frame| v4(17, &udp(6081, &geneve(&[], 0x6558, frame))), tshark_knows: true },
    Wrap { name: "Geneve, VNI 42", wrap: |frame| v6(17, &udp(6081, &geneve(&[1, 2, 3, 1, 9, 9, 9, 9], 0x6558, frame))), tshark_knows: true },
    Wrap { name: "Geneve, VNI 42", wrap: |frame| { let (kind, packet) = network(frame); v4(17, &udp(6081, &geneve(&[], kind, packet))) }, tshark_knows: true },
    Wrap { name: "GRE", wrap: |frame| { let (kind, packet) = network(frame); v4(47, &gre(0, kind, &[], packet)) }, tshark_knows: true },
    Wrap { name: "GRE", wrap: |frame| { let (kind, packet) = network(frame); v6(47, &gre(0x9000, kind, &[0; 8], packet)) }, tshark_knows: true },
    Wrap { name: "GRE", wrap: |frame| v4(47, &gre(0, 0x6558, &[], frame)), tshark_knows: true },
    Wrap { name: "GRE, key 0x1092a07", wrap: |frame| v4(47, &gre(0x2000, 0x6558, &[1, 9, 0x2a, 7], frame)), tshark_knows: true },
    Wrap { name: "ERSPAN type I", wrap: |frame| v4(47, &gre(0, 0x88be, &[], frame)), tshark_knows: true },
    Wrap { name: "ERSPAN type II, session 5", wrap: |frame| v4(47, &gre(0x1000, 0x88be, &[[0; 4].as_slice(), &ERSPAN2].concat(), frame)), tshark_knows: true },
    Wrap { name: "ERSPAN type II, session 5", wrap: |frame| v6(47, &gre(0x1000, 0x88be, &[[0; 4].as_slice(), &ERSPAN2].concat(), frame)), tshark_knows: true },
    Wrap { name: "ERSPAN type III, session 5", wrap: |frame| v4(47, &gre(0x1000, 0x22eb, &[[0; 4].as_slice(), &ERSPAN3].concat(), frame)), tshark_knows: true },
    Wrap { name: "ERSPAN type III, session 5", wrap: |frame| {
        let mut header = [[0; 4].as_slice(), &ERSPAN3, &[0; 8]].concat();
        header[15] |= 1; // eight bytes more
        v4(47, &gre(0x1000, 0x22eb, &header, frame))
    }, tshark_knows: true },
    Wrap { name: "IPv4", wrap: |frame| ip_in_ip(v4, frame), tshark_knows: true },
    Wrap { name: "IPv6", wrap: |frame| ip_in_ip(v6, frame), tshark_knows: true },
    Wrap { name: "Ethernet over IP", wrap: |frame| v4(97, &[&[0x30, 0][..], frame].concat()), tshark_knows: true },
    Wrap { name: "Ethernet over IP", wrap: |frame| v6(143, frame), tshark_knows: false },
    Wrap { name: "MPLS, label 17", wrap: |frame| ethernet(0x8847, &[&[0, 1, 0, 64, 0, 1, 0x11, 64][..], network(frame).1].concat()), tshark_knows: true },
    Wrap { name: "MPLS, label 17", wrap: |frame| ethernet(0x8847, &[&[0, 1, 0x11, 64, 0, 0, 0, 0][..], frame].concat()), tshark_knows: true },
    Wrap { name: "MPLS, label 17", wrap: |frame| ethernet(0x8847, &[&[0, 1, 0x11, 64][..], frame].concat()), tshark_knows: false },
    Wrap { name: "MPLS, label 17", wrap: |frame| v4(17, &udp(6635, &[&[0, 1, 0x11, 64][..], network(frame).1].concat())), tshark_knows: true },
    Wrap { name: "PPPoE, session 5", wrap: |frame| ethernet(0x8864, &ppp(frame)), tshark_knows: true },
    Wrap { name: "GTP-U, TEID 0x2a", wrap: |frame| {
        let packet = network(frame).1;
        v4(17, &udp(2152, &[&[0x30, 0xff][..], &(packet.len() as u16).to_be_bytes(), &[0, 0, 0, 42], packet].concat()))
    }, tshark_knows: true },
    Wrap { name: "GTP-U, TEID 0x2a", wrap: |frame| {
        let packet = network(frame).1;
        let length = (packet.len() as u16 + 8).to_be_bytes();
        let extended = [0, 0, 0, 0x85, 1, 0, 9, 0]; // a PDU session container
        v4(17, &udp(2152, &[&[0x34, 0xff][..], &length, &[0, 0, 0, 42], &extended, packet].concat()))
    }, tshark_knows: true },
    Wrap { name: "802.1ah, I-SID 42", wrap: |frame| ethernet(0x88e7, &[&[0, 0, 0, 42][..], frame].concat()), tshark_knows: true },
    Wrap { name: "TRILL", wrap: |frame| ethernet(0x22f3, &[&[0, 9, 0, 1, 0, 2][..], frame].concat()), tshark_knows: true },
    Wrap { name: "FabricPath", wrap: |frame| ethernet(0x8903, &[&[0, 9][..], frame].concat()), tshark_knows: false },
    Wrap { name: "NSH, path 42", wrap: |frame| ethernet(0x894f, &[&[0x0f, 0xc2, 2, 3, 0, 0, 42, 255][..], frame].concat()), tshark_knows: true },
    Wrap { name: "VXLAN, VNI 42, inside ERSPAN type II, session 5", wrap: |frame| {
        v4(47, &gre(0x1000, 0x88be, &[[0; 4].as_slice(), &ERSPAN2].concat(), &v4(17, &udp(4789, &vxlan(8, 0, frame)))))
    }, tshark_knows: true },
];

/// The frame with tags of these kinds in front of its EtherType.
pub fn tagged(frame: &[u8], tags: &[&[u8]]) -> Vec<u8> {
    [&frame[..12], &tags.concat(), &frame[12..]].concat()
}

/// The explanation without what it says about tunnels, and what that is.
pub fn apart(told: &Explanation) -> (String, String) {
    let text = told.text(usize::MAX);
    let (tunnels, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains(" inside "));
    (rest.join("\n"), tunnels.join("\n"))
}
