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
    let mut line = Line(Vec::new());
    while let Some(sighting) = &reader.next()? {
        if let Some(packet) = sighting.packet() {
            line.packet(sighting, packet);
            out.write_all(&line.0)?;
        }
    }
    Ok(out.flush()?)
}

/// A line, made column by column, each with a tab after it. Bytes are appended by hand, because `fmt` would take longer than all the
/// decoding.
struct Line(Vec<u8>);

impl Line {
    fn packet(&mut self, sighting: &Sighting, packet: &Packet) {
        let (bth, cm, remote, aeth) = (packet.bth, packet.cm(), packet.remote(), packet.aeth());
        self.0.clear();
        self.decimal(Some(sighting.number));
        self.ip(packet.datagram.src);
        self.ip(packet.datagram.dst);
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
        self.0.extend_from_slice(text.unwrap_or_default().as_bytes());
        self.0.push(b'\t');
    }

    fn decimal(&mut self, number: Option<impl Into<u64>>) {
        let mut digits = itoa::Buffer::new();
        self.text(number.map(|number| digits.format(number.into())));
    }

    /// `0x` and this many digits.
    fn hex(&mut self, number: Option<impl Into<u64>>, digits: usize) {
        if let Some(number) = number.map(Into::into) {
            let digit = |place| b"0123456789abcdef"[(number >> (4 * place) & 0xf) as usize];
            self.0.extend_from_slice(b"0x");
            self.0.extend((0..digits).rev().map(digit));
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

    fn ip(&mut self, ip: IpAddr) {
        let IpAddr::V4(ip) = ip else { return self.text(Some(&ip.to_string())) };
        for byte in ip.octets() {
            self.decimal(Some(byte));
            self.end_with(b'.');
        }
        self.end_with(b'\t');
    }

    /// Something else instead of the last tab.
    fn end_with(&mut self, byte: u8) {
        self.0.pop();
        self.0.push(byte);
    }
}
