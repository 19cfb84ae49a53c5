//! One RoCEv2 packet: the BTH, the headers its operation code calls for, the payload, the ICRC.

use crate::aeth::Syndrome;
use crate::bth;
use crate::cm;
use crate::field::Header;
use crate::headers::{aeth, atomic_ack_eth, atomic_eth, deth, feth, ieth, imm_dt, reth};
use crate::icrc::{self, Icrc};
use crate::link::other::Other;
use crate::link::{self, Datagram, LinkType};
use crate::opcode::{self, Opcode};

/// What a recorded frame holds.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    Roce(Packet<'a>),
    Other(Other),
}

impl<'a> Frame<'a> {
    /// Decodes a frame as recorded, perhaps cut short. Never fails: what is not a RoCEv2 packet is [`Frame::Other`].
    pub fn decode(link: LinkType, frame: &'a [u8]) -> Frame<'a> {
        #[cfg(debug_assertions)]
        DECODED.with(|decoded| decoded.set(decoded.get() + 1));
        match link::innermost(link, frame).and_then(Packet::new) {
            Ok(packet) => Frame::Roce(packet),
            Err(other) => Frame::Other(other),
        }
    }

    pub fn ethernet(frame: &'a [u8]) -> Frame<'a> {
        Frame::decode(LinkType::ETHERNET, frame)
    }

    /// The same frame in another copy of its bytes, so it needn't be decoded again. A switch may have marked the copy; that moves
    /// no header.
    pub fn within<'b>(&self, bytes: &'b [u8]) -> Frame<'b> {
        match self {
            Frame::Roce(packet) => Frame::Roce(packet.within(bytes)),
            Frame::Other(other) => Frame::Other(*other),
        }
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// How many frames this thread has decoded: tests look whether anything does so twice.
    pub static DECODED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The Base Transport Header's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// Operation code; [`Packet::opcode`] explains it.
    pub opcode: u8,
    /// Solicited event.
    pub se: bool,
    /// Bytes of padding after the payload.
    pub pad_cnt: u8,
    /// The receiver's queue pair.
    pub dest_qp: u32,
    /// An acknowledgement is asked for.
    pub ack_req: bool,
    pub psn: u32,
}

impl Bth {
    /// Reads the header; None if it is cut.
    pub fn read(header: &[u8]) -> Option<Bth> {
        Some(Bth {
            opcode: bth::OPCODE.read(header)? as u8,
            se: bth::SE.read(header)? == 1,
            pad_cnt: bth::PAD_CNT.read(header)? as u8,
            dest_qp: bth::DEST_QP.read(header)? as u32,
            ack_req: bth::ACK_REQ.read(header)? == 1,
            psn: bth::PSN.read(header)? as u32,
        })
    }
}

/// A place in the peer's memory, from a RETH or an AtomicETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Address at the responder.
    pub va: u64,
    pub r_key: u32,
}

/// The ACK header's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aeth {
    /// The byte that says how it went; [`Aeth::verdict`] explains it.
    pub syndrome: u8,
    pub msn: u32,
}

impl Aeth {
    pub fn verdict(&self) -> Syndrome {
        Syndrome::from(self.syndrome)
    }
}

/// A decoded packet. Headers that a snap length cut off read as None.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The layers below: addresses, ports, recorded bytes.
    pub datagram: Datagram<'a>,
    pub bth: Bth,
    /// What the operation code stands for.
    pub opcode: &'static Opcode,
    cm: Option<cm::Message<'a>>,
}

impl<'a> Packet<'a> {
    /// Takes a UDP datagram for RoCEv2, if it goes to the port and is long enough.
    pub fn new(datagram: Datagram<'a>) -> Result<Packet<'a>, Other> {
        if datagram.dst_port != link::ROCE_PORT {
            return Err(Other::Port(datagram.dst_port));
        }
        let start = datagram.udp_offset + 8;
        if datagram.wire_length < start + bth::HEADER.length + icrc::LENGTH {
            return Err(Other::Short);
        }
        let bth = datagram.ip.get(start..).and_then(Bth::read).ok_or(Other::Cut)?;
        let mut packet = Packet { datagram, bth, opcode: opcode::lookup(bth.opcode), cm: None };
        packet.read_message();
        Ok(packet)
    }

    fn read_message(&mut self) {
        if self.bth.dest_qp == 1 && self.bth.opcode == 0x64 {
            self.cm = cm::Message::read(self.payload());
        }
    }

    fn within<'b>(&self, frame: &'b [u8]) -> Packet<'b> {
        let Packet { datagram, bth, opcode, .. } = *self;
        let Datagram { ip_offset, udp_offset, wire_length, src, dst, dst_port, is_tunnelled, .. } = datagram;
        let ip = frame.get(ip_offset..).unwrap_or_default();
        let ip = &ip[..wire_length.min(ip.len())];
        let datagram = Datagram { ip, ip_offset, udp_offset, wire_length, src, dst, dst_port, is_tunnelled };
        let mut packet = Packet { datagram, bth, opcode, cm: None };
        packet.read_message();
        packet
    }

    /// Where the BTH begins, counted from the IP header.
    pub fn bth_offset(&self) -> usize {
        self.datagram.udp_offset + 8
    }

    /// Every header from the BTH on, with where it begins, counted from the IP header.
    pub fn headers(&self) -> impl Iterator<Item = (usize, &'static Header)> {
        let mut next = self.bth_offset();
        std::iter::once(&bth::HEADER).chain(self.opcode.headers.iter().copied()).map(move |header| {
            let start = next;
            next += header.length;
            (start, header)
        })
    }

    /// The recorded bytes of one of this packet's headers.
    fn header(&self, wanted: &str) -> Option<&'a [u8]> {
        // Asked several times for each packet of a capture: a loop takes half the time of `headers`.
        let mut start = self.bth_offset() + bth::HEADER.length;
        for header in self.opcode.headers {
            if header.name == wanted {
                return self.datagram.ip.get(start..start + header.length);
            }
            start += header.length;
        }
        None
    }

    /// Where the payload begins, counted from the IP header.
    pub fn payload_offset(&self) -> usize {
        let extended: usize = self.opcode.headers.iter().map(|header| header.length).sum();
        self.bth_offset() + bth::HEADER.length + extended
    }

    /// Bytes of payload on the wire, without padding.
    pub fn payload_length(&self) -> usize {
        let after = icrc::LENGTH + usize::from(self.bth.pad_cnt);
        self.datagram.wire_length.saturating_sub(self.payload_offset() + after)
    }

    /// The payload without padding, as far as it was recorded.
    pub fn payload(&self) -> &'a [u8] {
        let recorded = self.datagram.ip.get(self.payload_offset()..).unwrap_or(&[]);
        &recorded[..recorded.len().min(self.payload_length())]
    }

    /// The last four bytes and whether they fit the packet.
    pub fn icrc(&self) -> Icrc {
        let Datagram { ip, wire_length, .. } = self.datagram;
        match self.expected_icrc() {
            None => Icrc::Cut,
            Some(sum) if ip[wire_length - icrc::LENGTH..] == sum.to_le_bytes() => Icrc::Ok,
            Some(_) => Icrc::Bad,
        }
    }

    /// The ICRC that fits the packet; None if it was not recorded to its end.
    pub fn expected_icrc(&self) -> Option<u32> {
        let Datagram { ip, wire_length, udp_offset, .. } = self.datagram;
        let covered = (ip.len() >= wire_length).then(|| &ip[..wire_length - icrc::LENGTH])?;
        icrc::compute(covered, udp_offset)
    }

    /// Address and key, of a WRITE, READ or atomic operation.
    pub fn remote(&self) -> Option<Remote> {
        let (bytes, va, r_key) = match self.header(reth::HEADER.name) {
            Some(bytes) => (bytes, reth::VA, reth::R_KEY),
            None => (self.header(atomic_eth::HEADER.name)?, atomic_eth::VA, atomic_eth::R_KEY),
        };
        Some(Remote { va: va.read(bytes)?, r_key: r_key.read(bytes)? as u32 })
    }

    /// Bytes of the whole message, from the RETH.
    pub fn dma_length(&self) -> Option<u32> {
        reth::DMA_LENGTH.read(self.header(reth::HEADER.name)?).map(|v| v as u32)
    }

    pub fn aeth(&self) -> Option<Aeth> {
        let bytes = self.header(aeth::HEADER.name)?;
        Some(Aeth { syndrome: aeth::SYNDROME.read(bytes)? as u8, msn: aeth::MSN.read(bytes)? as u32 })
    }

    /// It's an answer, but the recording ends before the byte that says which: ACK and NAK look the same.
    pub fn is_answer_cut(&self) -> bool {
        let recorded = self.datagram.ip.len();
        let mut headers = self.headers().filter(|(_, header)| header.name == aeth::HEADER.name);
        recorded < self.datagram.wire_length && headers.any(|(start, _)| recorded <= start)
    }

    pub fn immediate(&self) -> Option<u32> {
        imm_dt::DATA.read(self.header(imm_dt::HEADER.name)?).map(|v| v as u32)
    }

    /// The key a SEND with invalidate ends.
    pub fn invalidated_key(&self) -> Option<u32> {
        ieth::R_KEY.read(self.header(ieth::HEADER.name)?).map(|v| v as u32)
    }

    /// The sender's queue pair, which only datagrams tell.
    pub fn src_qp(&self) -> Option<u32> {
        deth::SRC_QP.read(self.header(deth::HEADER.name)?).map(|v| v as u32)
    }

    /// Swap or add data, and compare data, of an atomic request.
    pub fn atomic_operands(&self) -> Option<(u64, u64)> {
        let bytes = self.header(atomic_eth::HEADER.name)?;
        Some((atomic_eth::SWAP_ADD.read(bytes)?, atomic_eth::COMPARE.read(bytes)?))
    }

    /// Selectivity level and placement type of a FLUSH.
    pub fn flush(&self) -> Option<(u64, u64)> {
        let bytes = self.header(feth::HEADER.name)?;
        Some((feth::SELECTIVITY.read(bytes)?, feth::PLACEMENT.read(bytes)?))
    }

    /// The old value an atomic operation found.
    pub fn atomic_original(&self) -> Option<u64> {
        atomic_ack_eth::ORIGINAL.read(self.header(atomic_ack_eth::HEADER.name)?)
    }

    pub fn cm(&self) -> Option<cm::Message<'a>> {
        self.cm
    }

    /// The name of the CM message, else of the operation code.
    pub fn name(&self) -> &'static str {
        self.cm().map_or(self.opcode.name, |message| message.kind.name())
    }

    /// What it is called if it refuses a request. By its opcode a NAK is an acknowledgement like any other: its AETH tells.
    pub fn refusal(&self) -> Option<&'static str> {
        match self.aeth()?.verdict() {
            Syndrome::Nak(_) => Some("NAK"),
            Syndrome::RnrNak { .. } => Some("RNR NAK"),
            _ => None,
        }
    }

    /// The name under which it is counted and told: [`Packet::refusal`] if it is one, and else its [`Packet::name`].
    pub fn told(&self) -> &'static str {
        self.refusal().unwrap_or_else(|| self.name())
    }
}
