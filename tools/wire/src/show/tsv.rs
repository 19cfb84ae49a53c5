//! The table for machines: one line per RoCEv2 packet, columns between tabs.

use roce::packet::Packet;
use run::capture::{Error, Reader};
use run::sighting::Sighting;
use std::io::{Read, Write};
use std::net::IpAddr;

/// The first line: the names of the columns.
pub const HEADER: &str = "frame\tsrc\tdst\topcode\tname\tdestqp\tpsn\tackreq\tpadcnt\tva\trkey\tdmalen\t\
                          syndrome\tmsn\timm\tcm\tlocal_id\tremote_id\tpayload_len\ticrc\t\
                          time\tsrcqp\tservice\tsidr_status\n";

/// Writes the table of a whole capture, or of what can be read of it.
pub fn write<R: Read>(reader: &mut Reader<R>, out: &mut impl Write) -> Result<(), Error> {
    out.write_all(HEADER.as_bytes())?;
    let mut line = Line::default();
    while let Some(sighting) = &reader.next()? {
        if let Some(packet) = sighting.packet() {
            line.packet(sighting, packet);
            out.write_all(&line.bytes)?;
        }
    }
    Ok(out.flush()?)
}

/// A line, made column by column, each with a tab after it. Bytes are appended by hand, because `fmt` would take longer than all the
/// decoding.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// Few machines send many packets, so the columns with their addresses are written once.
    known: Vec<([IpAddr; 2], String)>,
}

impl Line {
    fn packet(&mut self, sighting: &Sighting, packet: &Packet) {
        let (bth, cm, remote, aeth) = (packet.bth, packet.cm(), packet.remote(), packet.aeth());
        self.bytes.clear();
        self.decimal(Some(sighting.number));
        self.ips([packet.datagram.src, packet.datagram.dst]);
        self.decimal(Some(bth.opcode));
        self.text(Some(packet.opcode.name));
        self.decimal(Some(bth.dest_qp));
        self.decimal(Some(bth.psn));
        self.decimal(Some(bth.ack_req));
        self.decimal(Some(bth.pad_cnt));
        self.hex(remote.map(|remote| remote.va), 16);
        self.hex(remote.map(|remote| remote.r_key), 8);
        self.decimal(packet.dma_length());
        self.decimal(aeth.map(|aeth| aeth.syndrome));
        self.decimal(aeth.map(|aeth| aeth.msn));
        self.hex(packet.immediate(), 8);
        self.text(cm.map(|message| message.kind.name()));
        self.hex(cm.and_then(|message| message.local_id()), 8);
        self.hex(cm.and_then(|message| message.remote_id()), 8);
        self.decimal(Some(packet.payload_length() as u64));
        self.text(Some(packet.icrc().name()));
        self.seconds(sighting.time_ns);
        self.decimal(sighting.src_qp());
        self.hex(cm.and_then(|message| message.service()).map(|service| service.0), 16);
        self.decimal(cm.and_then(|message| message.sidr_status()));
        self.end_with(b'\n');
    }

    fn text(&mut self, text: Option<&str>) {
        self.bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
        self.bytes.push(b'\t');
    }

    fn decimal(&mut self, number: Option<impl Into<u64>>) {
        let mut digits = itoa::Buffer::new();
        self.text(number.map(|number| digits.format(number.into())));
    }

    /// `0x` and this many digits.
    fn hex(&mut self, number: Option<impl Into<u64>>, digits: usize) {
        if let Some(number) = number.map(Into::into) {
            let digit = |place| b"0123456789abcdef"[(number >> (4 * place) & 0xf) as usize];
            self.bytes.extend_from_slice(b"0x");
            self.bytes.extend((0..digits).rev().map(digit));
        }
        self.text(None);
    }

    /// Nanoseconds as seconds with nine decimals.
    fn seconds(&mut self, ns: Option<u64>) {
        const SECOND: u64 = 1_000_000_000;
        let Some(ns) = ns else { return self.text(None) };
        self.decimal(Some(ns / SECOND));
        self.end_with(b'.');
        let mut digits = itoa::Buffer::new();
        self.text(digits.format(SECOND + ns % SECOND).get(1..));
    }

    /// From whom to whom.
    fn ips(&mut self, ends: [IpAddr; 2]) {
        const MOST: usize = 16;
        let at = self.known.iter().position(|(known, _)| *known == ends).unwrap_or_else(|| {
            self.known.truncate(MOST - 1);
            self.known.push((ends, format!("{}\t{}\t", ends[0], ends[1])));
            self.known.len() - 1
        });
        self.bytes.extend_from_slice(self.known[at].1.as_bytes());
    }

    /// Something else instead of the last tab.
    fn end_with(&mut self, byte: u8) {
        self.bytes.pop();
        self.bytes.push(byte);
    }
}
