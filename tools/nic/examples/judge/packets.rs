//! Lesson 14: what a packet is, byte by byte.

use crate::came;
use crate::dump::{difference, differing};
use crate::recorded::Recorded;
use crate::unseen;
use crate::Verdict;
use nic::datagram;
use nic::packet::{self, Packet};
use nic::psn::Psn;
use roce::field::{Field, Header};
use roce::{bth, icrc as sum, opcode};
use std::collections::BTreeMap;

const RXE: &str = "rdma_rxe";

/// Numbers round the circle: which comes after which, and by how many.
pub fn since() -> Verdict {
    const HALF: i32 = 1 << 23;
    let (mut looked, starts) = (0, [0, 5, 0x7f_ffff, 0x80_0000, 0xff_fffe, 0xff_ffff]);
    for (start, steps) in starts.iter().flat_map(|start| [1, 4, 300, HALF - 1].map(|steps| (*start, steps))) {
        let (earlier, later) = (Psn::new(start), Psn::new(start).plus(steps as u32));
        for (one, other, wanted) in [(later, earlier, steps), (earlier, later, -steps), (later, later, 0)] {
            came::now(format!("PSN {one} since PSN {other}"));
            let yours = one.since(other);
            if yours != wanted {
                return Err(format!("PSN {one} since PSN {other} is {wanted}. Yours: {yours}."));
            }
            looked += 1;
        }
    }
    for (one, other) in starts.iter().map(|start| (Psn::new(*start), Psn::new(*start).plus(HALF as u32))) {
        let yours = one.since(other);
        if yours != -HALF {
            return Err(format!(
                "PSN {one} since PSN {other} is {}: half the circle counts as before. Yours: {yours}.",
                -HALF
            ));
        }
        looked += 1;
    }
    Ok(format!("{looked} pairs of PSNs, some across the end of the circle, compare as they should."))
}

/// Every field of every header, by itself and beside the others.
pub fn put() -> Verdict {
    let headers: BTreeMap<&str, &Header> = opcode::TABLE
        .iter()
        .flat_map(|row| row.headers.iter().copied())
        .chain([&bth::HEADER])
        .map(|header| (header.name, header))
        .collect();
    let mut looked = 0;
    for header in headers.into_values() {
        for value in [u64::MAX, 1, !1, 0x5a5a_a5a5_3c3c_c3c3] {
            let (mut wanted, mut yours) = (vec![0; header.length], vec![0; header.length]);
            for field in header.fields.iter().filter(|field| field.bits <= 64) {
                by_bits(&mut wanted, field, value);
                came::now(format!("{value:#x} for {} {}", header.name, field.name));
                packet::put(&mut yours, field, value);
                if let Some(at) = difference(&wanted, &yours) {
                    let Field { name, bit, bits, .. } = field;
                    let what = format!("{value:#x} put into {} {name}, {bits} bits from bit {bit} on:", header.name);
                    return Err(format!("{what}\n{}", differing("wanted", &wanted, &yours, at, "")));
                }
                looked += 1;
            }
        }
    }
    Ok(format!("{looked} fields of all headers are where they belong."))
}

/// The definition: bit after bit, the highest first; bit 0 of a header is the first bit sent.
fn by_bits(header: &mut [u8], field: &Field, value: u64) {
    for index in 0..field.bits {
        let at = field.bit + index;
        let bit = (value >> (field.bits - 1 - index) & 1) as u8;
        header[at / 8] |= bit << (7 - at % 8);
    }
}

/// Every packet of rdma_rxe, taken apart and put together again.
pub fn encode(frames: &[Recorded]) -> Verdict {
    let mut looked = 0;
    for (frame, theirs) in taken(frames) {
        let Some(decoded) = Packet::decode(&theirs) else { continue };
        let (start, end) = (theirs.bth_offset(), theirs.datagram.wire_length - sum::LENGTH);
        let (wanted, yours) = (&theirs.datagram.ip[start..end], decoded.encode());
        if let Some(at) = difference(wanted, &yours) {
            let what = format!("{}, {}, from the BTH to the padding:", frame.name, theirs.name());
            return Err(format!("{what}\n{}", differing(RXE, wanted, &yours, at, &field_at(&theirs, start + at))));
        }
        looked += 1;
    }
    Ok(format!("{looked} packets of rdma_rxe, taken apart and put together again, are the same to the byte."))
}

/// The IP and UDP headers in front of every packet. The identification and the source port each sender chooses; the judge puts
/// ours into the recorded ones, and does their checksum anew.
pub fn headers(frames: &[Recorded]) -> Verdict {
    let mut looked = 0;
    for (frame, theirs) in taken(frames) {
        let Some(decoded) = Packet::decode(&theirs) else { continue };
        let (udp, ip) = (theirs.datagram.udp_offset, theirs.datagram.ip);
        let wanted = as_ours(&ip[..udp + 8], udp);
        let yours = datagram::seal(theirs.datagram.src, theirs.datagram.dst, &decoded);
        let yours = &yours[..yours.len().min(udp + 8)];
        if let Some(at) = difference(&wanted, yours) {
            let what = format!("{}, {}, its IP and UDP headers:", frame.name, theirs.name());
            return Err(format!("{what}\n{}", differing(RXE, &wanted, yours, at, &lower_field(udp, at))));
        }
        looked += 1;
    }
    unseen::headers()?;
    Ok(format!("{looked} packets have the IP and UDP headers that rdma_rxe gave them."))
}

/// The ICRC of every packet, and what it must notice and what not.
pub fn icrc(frames: &[Recorded]) -> Verdict {
    let mut kinds = BTreeMap::new();
    let mut looked = 0;
    for (frame, theirs) in taken(frames) {
        let (udp, ip) = (theirs.datagram.udp_offset, theirs.datagram.ip);
        let (covered, recorded) = ip.split_at(ip.len() - sum::LENGTH);
        let yours = sum::compute(covered, udp).map(u32::to_le_bytes);
        if yours.as_ref().map(|yours| &yours[..]) != Some(recorded) {
            let yours = yours.map_or("none".to_owned(), |yours| format!("{yours:02x?}"));
            return Err(format!("{}, {}: its ICRC is {recorded:02x?}. Yours: {yours}.", frame.name, theirs.name()));
        }
        kinds.entry((udp, theirs.name())).or_insert((frame, covered));
        looked += 1;
    }
    for ((udp, kind), (frame, covered)) in &kinds {
        flips(covered, *udp).map_err(|said| format!("{}, {kind}: {said}", frame.name))?;
    }
    flips(&unseen::icrc()?, 40).map_err(|said| format!("A READ response without bytes, over IPv6: {said}"))?;
    Ok(format!("{looked} packets have the ICRC of rdma_rxe; of {} kinds each flipped bit is noticed.", kinds.len()))
}

/// Flips each bit: the sum notices it, but where a router may.
fn flips(covered: &[u8], udp: usize) -> Result<(), String> {
    let right = sum::compute(covered, udp);
    for (at, mask) in (0..covered.len()).flat_map(|at| (0..8).map(move |bit| (at, 0x80 >> bit))) {
        // With another version, or a header of another length, it is another packet.
        if at == 0 && (udp == 20 || mask >= 0x10) {
            continue;
        }
        let mut flipped = covered.to_vec();
        flipped[at] ^= mask;
        let field = lower_field(udp, at);
        match (sum::compute(&flipped, udp) != right, may_change(at, mask, udp)) {
            (true, true) => {
                return Err(format!("a router changed byte {at}{field}, as it may; your sum takes that for damage."))
            }
            (false, false) => return Err(format!("a bit of byte {at}{field} was flipped; your sum is the same.")),
            _ => {}
        }
    }
    Ok(())
}

/// Whether the ICRC counts this bit as one, whatever it is (annex A17.3.3).
fn may_change(at: usize, mask: u8, udp: usize) -> bool {
    match udp {
        20 if at < udp => matches!(at, 1 | 8 | 10 | 11),
        40 if at < udp => matches!(at, 1..=3 | 7) || at == 0 && mask < 0x10,
        _ => matches!(at - udp, 6 | 7 | 12),
    }
}

/// Packets of runs without a fault, which were recorded whole.
fn taken(frames: &[Recorded]) -> impl Iterator<Item = (&Recorded, roce::Packet<'_>)> {
    let whole = |packet: &roce::Packet| packet.datagram.ip.len() == packet.datagram.wire_length;
    let taken = frames.iter().filter(|frame| !frame.is_faulty);
    taken.filter_map(move |frame| {
        let packet = frame.packet().filter(whole)?;
        came::now(format!("{}, {}", frame.name, packet.name()));
        Some((frame, packet))
    })
}

/// What a byte of a packet is called, counted from the IP header.
pub fn field_at(packet: &roce::Packet, at: usize) -> String {
    let header = packet.headers().find(|(start, header)| (*start..start + header.length).contains(&at));
    let Some((start, header)) = header else { return ", in the payload or its padding".to_owned() };
    let is_there = |field: &&Field| (field.span().0..field.span().1).contains(&(at - start));
    let names: Vec<&str> = header.fields.iter().filter(is_there).map(|field| field.name).collect();
    format!(", {}: {}", header.name, names.join(", "))
}

/// The same below the BTH.
fn lower_field(udp: usize, at: usize) -> String {
    const UDP: [(usize, &str); 4] = [(0, "source port"), (2, "destination port"), (4, "length"), (6, "checksum")];
    const IPV4: [(usize, &str); 10] = [
        (0, "version and length of the header"),
        (1, "type of service"),
        (2, "length"),
        (4, "identification"),
        (6, "don't fragment"),
        (8, "time to live"),
        (9, "protocol"),
        (10, "checksum"),
        (12, "source"),
        (16, "destination"),
    ];
    const IPV6: [(usize, &str); 6] = [
        (0, "version, traffic class, flow label"),
        (4, "length"),
        (6, "next header"),
        (7, "hop limit"),
        (8, "source"),
        (24, "destination"),
    ];
    let (name, at, fields) = match at {
        at if at >= udp + 8 => return format!(", {} bytes after the UDP header", at - udp - 8),
        at if at >= udp => ("UDP", at - udp, &UDP[..]),
        at if udp == 20 => ("IPv4", at, &IPV4[..]),
        at => ("IPv6", at, &IPV6[..]),
    };
    let field = fields.iter().rev().find(|(start, _)| *start <= at).map_or("", |(_, field)| field);
    format!(", {name}: {field}")
}

/// Recorded IP and UDP headers with our identification and source port.
fn as_ours(headers: &[u8], udp: usize) -> Vec<u8> {
    let mut bytes = headers.to_vec();
    bytes[udp..udp + 2].copy_from_slice(&roce::link::ROCE_PORT.to_be_bytes());
    if udp == 20 {
        bytes[4..6].fill(0);
        bytes[10..12].fill(0);
        let mut total: u32 = bytes[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        while total >> 16 > 0 {
            total = (total >> 16) + (total & 0xffff);
        }
        bytes[10..12].copy_from_slice(&(!(total as u16)).to_be_bytes());
    }
    bytes
}
