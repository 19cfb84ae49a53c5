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
    let mut line = Vec::new();
    while let Some(sighting) = &reader.next()? {
        if let Some(packet) = sighting.packet() {
            line.clear();
            row(&mut line, sighting, packet);
            out.write_all(&line)?;
        }
    }
    Ok(out.flush()?)
}

fn row(line: &mut Vec<u8>, sighting: &Sighting, packet: &Packet) {
    let (bth, cm, remote, aeth) = (packet.bth, packet.cm(), packet.remote(), packet.aeth());
    sighting.number.add(line);
    packet.datagram.src.add(line);
    packet.datagram.dst.add(line);
    bth.opcode.add(line);
    packet.opcode.name.add(line);
    bth.dest_qp.add(line);
    bth.psn.add(line);
    u8::from(bth.ack_req).add(line);
    bth.pad_cnt.add(line);
    remote.map(|remote| Hex::<16>(remote.va)).add(line);
    remote.map(|remote| Hex::<8>(remote.r_key.into())).add(line);
    packet.dma_length().add(line);
    aeth.map(|aeth| aeth.syndrome).add(line);
    aeth.map(|aeth| aeth.msn).add(line);
    packet.immediate().map(|data| Hex::<8>(data.into())).add(line);
    cm.map(|message| message.kind.name()).add(line);
    cm.and_then(|message| message.local_id()).map(|id| Hex::<8>(id.into())).add(line);
    cm.and_then(|message| message.remote_id()).map(|id| Hex::<8>(id.into())).add(line);
    packet.payload_length().add(line);
    packet.icrc().name().add(line);
    sighting.time_ns.map(Seconds).add(line);
    sighting.src_qp().add(line);
    cm.and_then(|message| message.service()).map(|service| Hex::<16>(service.0)).add(line);
    cm.and_then(|message| message.sidr_status()).add(line);
    // There's a tab after each column, the last one as well.
    line.pop();
    line.push(b'\n');
}

/// What a column holds. It's written by hand, because `fmt` would take longer for a packet than all the decoding.
trait Column: Sized {
    fn write(self, line: &mut Vec<u8>);

    /// It, and the tab after it.
    fn add(self, line: &mut Vec<u8>) {
        self.write(line);
        line.push(b'\t');
    }
}

macro_rules! decimal {
    ($($number:ty)*) => {$(
        impl Column for $number {
            fn write(self, line: &mut Vec<u8>) {
                line.extend_from_slice(itoa::Buffer::new().format(self).as_bytes());
            }
        }
    )*};
}

decimal!(u8 u32 u64 usize);

impl Column for &str {
    fn write(self, line: &mut Vec<u8>) {
        line.extend_from_slice(self.as_bytes());
    }
}

impl<T: Column> Column for Option<T> {
    fn write(self, line: &mut Vec<u8>) {
        self.into_iter().for_each(|value| value.write(line));
    }
}

impl Column for IpAddr {
    fn write(self, line: &mut Vec<u8>) {
        match self {
            IpAddr::V4(ip) => {
                for byte in ip.octets() {
                    byte.write(line);
                    line.push(b'.');
                }
                line.pop();
            }
            IpAddr::V6(ip) => line.extend_from_slice(ip.to_string().as_bytes()),
        }
    }
}

/// `0x` and this many digits.
struct Hex<const DIGITS: usize>(u64);

impl<const DIGITS: usize> Column for Hex<DIGITS> {
    fn write(self, line: &mut Vec<u8>) {
        let digit = |place: usize| b"0123456789abcdef"[(self.0 >> (4 * (DIGITS - 1 - place)) & 0xf) as usize];
        line.extend_from_slice(b"0x");
        line.extend_from_slice(&std::array::from_fn::<u8, DIGITS, _>(digit));
    }
}

/// Nanoseconds as seconds with nine decimals.
struct Seconds(u64);

impl Column for Seconds {
    fn write(self, line: &mut Vec<u8>) {
        const SECOND: u64 = 1_000_000_000;
        (self.0 / SECOND).write(line);
        let at = line.len();
        // Of ten digits, the first one is where the point goes.
        (SECOND + self.0 % SECOND).write(line);
        line[at] = b'.';
    }
}
