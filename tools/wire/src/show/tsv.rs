//! The table for machines: one line per RoCEv2 packet, columns between tabs.

use roce::link;
use roce::packet::Packet;
use roce::track::Tracker;
use run::capture::{Error, Reader, Record};
use std::io::{Read, Write};
use std::net::IpAddr;

/// The first line: the names of the columns.
pub const HEADER: &str = "frame\tsrc\tdst\topcode\tname\tdestqp\tpsn\tackreq\tpadcnt\tva\trkey\tdmalen\t\
                          syndrome\tmsn\timm\tcm\tlocal_id\tremote_id\tpayload_len\ticrc\t\
                          time\tsrcqp\tservice\tsidr_status\n";

/// Writes the table of a whole capture, or of what can be read of it.
pub fn write<R: Read>(reader: &mut Reader<R>, out: &mut impl Write) -> Result<(), Error> {
    let mut line = Line { bytes: HEADER.into(), ..Line::default() };
    let end = rows(reader, &mut line, out);
    out.write_all(&line.bytes)?;
    out.flush()?;
    end
}

fn rows<R: Read>(reader: &mut Reader<R>, line: &mut Line, out: &mut impl Write) -> Result<(), Error> {
    const FULL: usize = 32 << 10;
    let mut tracker = Tracker::default();
    while let Some(record) = reader.next()? {
        // As Frame::decode does, but for moving the packet: it is large, and that takes time.
        if let Ok(packet) = &link::datagram(record.link, record.data).and_then(Packet::new) {
            let seen = tracker.see(packet);
            row(line, &record, packet, tracker.src_qp(packet, seen));
        }
        if line.bytes.len() > FULL {
            out.write_all(&line.bytes)?;
            line.bytes.clear();
        }
    }
    Ok(())
}

fn row(line: &mut Line, record: &Record, packet: &Packet, src_qp: Option<u32>) {
    let cm = packet.cm();
    line.dec(record.number);
    line.addresses(&packet.datagram.src, &packet.datagram.dst);
    line.dec(packet.bth.opcode.into());
    line.text(packet.opcode.name);
    line.dec(packet.bth.dest_qp.into());
    line.dec(packet.bth.psn.into());
    line.dec(packet.bth.ack_req.into());
    line.dec(packet.bth.pad_cnt.into());
    let remote = packet.remote();
    line.optional(remote, |line, remote| line.hex(remote.va, 16));
    line.optional(remote, |line, remote| line.hex(remote.r_key.into(), 8));
    line.optional(packet.dma_length(), |line, length| line.dec(length.into()));
    let aeth = packet.aeth();
    line.optional(aeth, |line, aeth| line.dec(aeth.syndrome.into()));
    line.optional(aeth, |line, aeth| line.dec(aeth.msn.into()));
    line.optional(packet.immediate(), |line, data| line.hex(data.into(), 8));
    line.optional(cm, |line, message| line.text(message.kind.name()));
    line.optional(cm.and_then(|message| message.local_id()), |line, id| line.hex(id.into(), 8));
    line.optional(cm.and_then(|message| message.remote_id()), |line, id| line.hex(id.into(), 8));
    line.dec(packet.payload_length() as u64);
    line.text(packet.icrc().name());
    line.optional(record.time_ns, Line::seconds);
    line.optional(src_qp, |line, qp| line.dec(qp.into()));
    line.optional(cm.and_then(|message| message.service()), |line, service| line.hex(service.0, 16));
    line.optional(cm.and_then(|message| message.sidr_status()), |line, status| line.dec(status.into()));
    line.end();
}

/// One line of output, built without the formatting machinery: that alone would take longer than decoding.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// Few machines send many packets: the texts of the latest pairs of addresses.
    pairs: Vec<([IpAddr; 2], String)>,
}

const MOST_PAIRS: usize = 8;

impl Line {
    fn end_column(&mut self) {
        self.bytes.push(b'\t');
    }

    /// Turns the tab after the last column into the end of the line.
    fn end(&mut self) {
        self.bytes.pop();
        self.bytes.push(b'\n');
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.end_column();
    }

    fn dec(&mut self, value: u64) {
        self.text(itoa::Buffer::new().format(value));
    }

    /// Seconds since 1970 with nine decimals.
    fn seconds(&mut self, ns: u64) {
        const SECOND: u64 = 1_000_000_000;
        self.bytes.extend_from_slice(itoa::Buffer::new().format(ns / SECOND).as_bytes());
        self.bytes.push(b'.');
        self.text(&itoa::Buffer::new().format(SECOND + ns % SECOND)[1..]);
    }

    /// `0x` and `width` digits.
    fn hex(&mut self, value: u64, width: usize) {
        let mut digits = *b"0x0000000000000000\t";
        for (place, digit) in digits[2..2 + width].iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdef"[(value >> (4 * place) & 0xf) as usize];
        }
        digits[2 + width] = b'\t';
        self.bytes.extend_from_slice(&digits[..3 + width]);
    }

    fn addresses(&mut self, src: &IpAddr, dst: &IpAddr) {
        let known = self.pairs.iter().position(|(known, _)| known[0] == *src && known[1] == *dst);
        let at = known.unwrap_or_else(|| {
            if self.pairs.len() == MOST_PAIRS {
                self.pairs.clear();
            }
            self.pairs.push(([*src, *dst], format!("{src}\t{dst}")));
            self.pairs.len() - 1
        });
        self.bytes.extend_from_slice(self.pairs[at].1.as_bytes());
        self.end_column();
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Line, T)) {
        match value {
            Some(value) => write(self, value),
            None => self.end_column(),
        }
    }
}
