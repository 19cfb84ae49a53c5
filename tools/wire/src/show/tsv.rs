//! The table for machines: one line per RoCEv2 packet, columns between tabs.

use roce::packet::Packet;
use run::capture::{Error, Reader};
use run::sighting::Sighting;
use std::fmt::{self, Display, Write as _};
use std::io::{Read, Write};

/// The first line: the names of the columns.
pub const HEADER: &str = "frame\tsrc\tdst\topcode\tname\tdestqp\tpsn\tackreq\tpadcnt\tva\trkey\tdmalen\t\
                          syndrome\tmsn\timm\tcm\tlocal_id\tremote_id\tpayload_len\ticrc\t\
                          time\tsrcqp\tservice\tsidr_status\n";

/// Writes the table of a whole capture, or of what can be read of it.
pub fn write<R: Read>(reader: &mut Reader<R>, out: &mut impl Write) -> Result<(), Error> {
    out.write_all(HEADER.as_bytes())?;
    let mut text = String::new();
    while let Some(sighting) = &reader.next()? {
        if let Some(packet) = sighting.packet() {
            text.clear();
            row(&mut text, sighting, packet)?;
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(out.flush()?)
}

fn row(text: &mut String, sighting: &Sighting, packet: &Packet) -> fmt::Result {
    let (bth, cm, remote, aeth) = (packet.bth, packet.cm(), packet.remote(), packet.aeth());
    let columns: [&dyn Display; 24] = [
        &sighting.number,
        &packet.datagram.src,
        &packet.datagram.dst,
        &bth.opcode,
        &packet.opcode.name,
        &bth.dest_qp,
        &bth.psn,
        &u8::from(bth.ack_req),
        &bth.pad_cnt,
        &Known(remote.map(|remote| Hex::<16>(remote.va))),
        &Known(remote.map(|remote| Hex::<8>(remote.r_key.into()))),
        &Known(packet.dma_length()),
        &Known(aeth.map(|aeth| aeth.syndrome)),
        &Known(aeth.map(|aeth| aeth.msn)),
        &Known(packet.immediate().map(|data| Hex::<8>(data.into()))),
        &Known(cm.map(|message| message.kind.name())),
        &Known(cm.and_then(|message| message.local_id()).map(|id| Hex::<8>(id.into()))),
        &Known(cm.and_then(|message| message.remote_id()).map(|id| Hex::<8>(id.into()))),
        &packet.payload_length(),
        &packet.icrc().name(),
        &Known(sighting.time_ns.map(Seconds)),
        &Known(sighting.src_qp()),
        &Known(cm.and_then(|message| message.service()).map(|service| Hex::<16>(service.0))),
        &Known(cm.and_then(|message| message.sidr_status())),
    ];
    write!(text, "{}", columns[0])?;
    columns[1..].iter().try_for_each(|column| write!(text, "\t{column}"))?;
    text.write_char('\n')
}

/// What a packet has, or nothing.
struct Known<T>(Option<T>);

impl<T: Display> Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}

/// `0x` and this many digits.
struct Hex<const DIGITS: usize>(u64);

impl<const DIGITS: usize> Display for Hex<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:0DIGITS$x}", self.0)
    }
}

/// Nanoseconds as seconds with nine decimals.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
