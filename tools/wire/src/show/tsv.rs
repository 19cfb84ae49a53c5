//! The table for machines: one line per RoCEv2 packet, columns between tabs.

use roce::opcode;
use roce::packet::Packet;
use run::capture::{Error, Reader};
use run::sighting::Sighting;
use rustc_hash::FxHashMap;
use std::io::{Read, Write};
use std::net::IpAddr;

/// The first line: the names of the columns.
pub const HEADER: &str = "frame\tsrc\tdst\topcode\tname\tdestqp\tpsn\tackreq\tpadcnt\tva\trkey\tdmalen\t\
                          syndrome\tmsn\timm\tcm\tlocal_id\tremote_id\tpayload_len\ticrc\t\
                          time\tsrcqp\tservice\tsidr_status\n";

/// The table is written out each time it has this many bytes.
const FULL: usize = 64 << 10;

/// Writes the table of a whole capture, or of what can be read of it.
pub fn write<R: Read>(reader: &mut Reader<R>, out: &mut impl Write) -> Result<(), Error> {
    let mut table = Table::new();
    let read = loop {
        let sighting = match reader.next() {
            Ok(Some(sighting)) => sighting,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        if let Some(packet) = sighting.packet() {
            table.line(&sighting, packet);
        }
        if table.bytes.len() >= FULL {
            out.write_all(&table.bytes)?;
            table.bytes.clear();
        }
    };
    out.write_all(&table.bytes)?;
    out.flush()?;
    read
}

/// The two digits of each byte.
static HEX: [[u8; 2]; 256] = {
    let (digits, mut pairs, mut byte) = (b"0123456789abcdef", [[0; 2]; 256], 0);
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 0xf]];
        byte += 1;
    }
    pairs
};

/// From whom to whom a packet goes, its operation code, and to which queue pair.
type Way = (IpAddr, IpAddr, u8, u32);

/// The table, made column by column, each with a tab after it. Bytes are appended by hand, because `fmt` would take longer than all
/// the decoding.
struct Table {
    /// What isn't written yet.
    bytes: Vec<u8>,
    /// Most packets go a way that others went before, so these columns of theirs are made once.
    ways: FxHashMap<Way, String>,
}

impl Table {
    fn new() -> Table {
        Table { bytes: HEADER.as_bytes().to_vec(), ways: FxHashMap::default() }
    }

    /// A line for a packet. What it has and what it lacks is found out once, before the first column.
    fn line(&mut self, sighting: &Sighting, packet: &Packet) {
        let (bth, cm, remote, aeth) = (packet.bth, packet.cm(), packet.remote(), packet.aeth());
        self.decimal(Some(sighting.number));
        self.way((packet.datagram.src, packet.datagram.dst, bth.opcode, bth.dest_qp));
        self.decimal(Some(bth.psn));
        self.decimal(Some(bth.ack_req));
        self.decimal(Some(bth.pad_cnt));
        self.hex(remote.map(|remote| remote.va.to_be_bytes()));
        self.hex(remote.map(|remote| remote.r_key.to_be_bytes()));
        self.decimal(packet.dma_length());
        self.decimal(aeth.map(|aeth| aeth.syndrome));
        self.decimal(aeth.map(|aeth| aeth.msn));
        self.hex(packet.immediate().map(u32::to_be_bytes));
        match &cm {
            Some(message) => {
                self.text(message.kind.name());
                self.hex(message.local_id().map(u32::to_be_bytes));
                self.hex(message.remote_id().map(u32::to_be_bytes));
            }
            None => self.bytes.extend_from_slice(b"\t\t\t"),
        }
        self.decimal(Some(packet.payload_length() as u64));
        self.text(packet.icrc().name());
        self.seconds(sighting.time_ns);
        self.decimal(sighting.src_qp());
        match &cm {
            Some(message) => {
                self.hex(message.service().map(|service| service.0.to_be_bytes()));
                self.decimal(message.sidr_status());
            }
            None => self.bytes.extend_from_slice(b"\t\t"),
        }
        self.end_with(b'\n');
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'\t');
    }

    fn decimal(&mut self, number: Option<impl Into<u64>>) {
        match number.map(Into::into) {
            None => self.bytes.push(b'\t'),
            // Most columns are that short.
            Some(digit @ 0..=9) => self.bytes.extend_from_slice(&[b'0' + digit as u8, b'\t']),
            Some(two @ 10..=99) => self.bytes.extend_from_slice(&[b'0' + two as u8 / 10, b'0' + two as u8 % 10, b'\t']),
            Some(number) => self.text(itoa::Buffer::new().format(number)),
        }
    }

    /// `0x` and two digits for each byte.
    fn hex<const BYTES: usize>(&mut self, bytes: Option<[u8; BYTES]>) {
        if let Some(bytes) = bytes {
            self.bytes.extend_from_slice(b"0x");
            bytes.iter().for_each(|byte| self.bytes.extend_from_slice(&HEX[usize::from(*byte)]));
        }
        self.bytes.push(b'\t');
    }

    /// Nanoseconds as seconds with nine decimals.
    fn seconds(&mut self, ns: Option<u64>) {
        const SECOND: u64 = 1_000_000_000;
        let Some(ns) = ns else { return self.bytes.push(b'\t') };
        self.decimal(Some(ns / SECOND));
        self.end_with(b'.');
        // The one in front keeps the zeroes behind it.
        self.text(&itoa::Buffer::new().format(SECOND + ns % SECOND)[1..]);
    }

    /// The columns from the addresses to the queue pair.
    fn way(&mut self, way: Way) {
        const MOST: usize = 10_000;
        if self.ways.len() == MOST {
            self.ways.clear();
        }
        let (src, dst, code, dest_qp) = way;
        let columns = || format!("{src}\t{dst}\t{code}\t{}\t{dest_qp}\t", opcode::lookup(code).name);
        self.bytes.extend_from_slice(self.ways.entry(way).or_insert_with(columns).as_bytes());
    }

    /// Something else instead of the last tab.
    fn end_with(&mut self, byte: u8) {
        self.bytes.pop();
        self.bytes.push(byte);
    }
}
