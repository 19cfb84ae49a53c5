//! Connection manager messages, field by field (IBTA chapter 12), and the RDMA-CM header inside them
//! (annex A11).
//!
//! A message is the data part of a management datagram (MAD) that travels between the QPs 1 of two
//! machines as a UD Send Only of 256 bytes.

mod messages;
mod words;

pub use messages::*;
pub use words::{mtu_bytes, reject_reason, Service};

use crate::field::Header;

/// Which message it is, from [`mad::ATTRIBUTE_ID`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// REQ: may I connect?
    ConnectRequest,
    /// MRA: received, the answer takes longer.
    MsgRcptAck,
    /// REJ: no, and why.
    ConnectReject,
    /// REP: yes.
    ConnectReply,
    /// RTU: ready to use, the third step of the handshake.
    ReadyToUse,
    /// DREQ: let us end it.
    DisconnectRequest,
    /// DREP: ended.
    DisconnectReply,
    /// A message about something other than a connection: its attribute.
    Other(u16),
}

impl From<u16> for Kind {
    fn from(attribute: u16) -> Kind {
        match attribute {
            0x10 => Kind::ConnectRequest,
            0x11 => Kind::MsgRcptAck,
            0x12 => Kind::ConnectReject,
            0x13 => Kind::ConnectReply,
            0x14 => Kind::ReadyToUse,
            0x15 => Kind::DisconnectRequest,
            0x16 => Kind::DisconnectReply,
            other => Kind::Other(other),
        }
    }
}

impl Kind {
    /// The name written out, as in the column `cm` of `wire show --format tsv`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ConnectRequest => "ConnectRequest",
            Kind::MsgRcptAck => "MsgRcptAck",
            Kind::ConnectReject => "ConnectReject",
            Kind::ConnectReply => "ConnectReply",
            Kind::ReadyToUse => "ReadyToUse",
            Kind::DisconnectRequest => "DisconnectRequest",
            Kind::DisconnectReply => "DisconnectReply",
            Kind::Other(0x17) => "ServiceIDResolutionRequest",
            Kind::Other(0x18) => "ServiceIDResolutionResponse",
            Kind::Other(0x19) => "LoadAlternatePath",
            Kind::Other(0x1a) => "AlternatePathResponse",
            Kind::Other(_) => "CM message",
        }
    }

    /// The name the specification uses for short.
    pub fn short(self) -> &'static str {
        match self {
            Kind::ConnectRequest => "REQ",
            Kind::MsgRcptAck => "MRA",
            Kind::ConnectReject => "REJ",
            Kind::ConnectReply => "REP",
            Kind::ReadyToUse => "RTU",
            Kind::DisconnectRequest => "DREQ",
            Kind::DisconnectReply => "DREP",
            Kind::Other(0x17) => "SIDR_REQ",
            Kind::Other(0x18) => "SIDR_REP",
            Kind::Other(0x19) => "LAP",
            Kind::Other(0x1a) => "APR",
            Kind::Other(_) => "CM message",
        }
    }

    /// How the message after the MAD header is laid out; None for a kind this tool does not decode.
    pub fn header(self) -> Option<&'static Header> {
        Some(match self {
            Kind::ConnectRequest => &req::HEADER,
            Kind::MsgRcptAck => &mra::HEADER,
            Kind::ConnectReject => &rej::HEADER,
            Kind::ConnectReply => &rep::HEADER,
            Kind::ReadyToUse => &rtu::HEADER,
            Kind::DisconnectRequest => &dreq::HEADER,
            Kind::DisconnectReply => &drep::HEADER,
            Kind::Other(0x17) => &sidr_req::HEADER,
            Kind::Other(0x18) => &sidr_rep::HEADER,
            Kind::Other(_) => return None,
        })
    }
}

/// One CM message inside a packet.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Which message.
    pub kind: Kind,
    /// [`mad::TRANSACTION_ID`].
    pub transaction_id: u64,
    /// What follows the MAD header, as far as it was recorded.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Takes the payload of a UD Send to QP 1 for a CM message; None if it is another kind of MAD or cut.
    pub fn read(payload: &'a [u8]) -> Option<Message<'a>> {
        if mad::MGMT_CLASS.read(payload)? != CLASS {
            return None;
        }
        Some(Message {
            kind: Kind::from(mad::ATTRIBUTE_ID.read(payload)? as u16),
            transaction_id: mad::TRANSACTION_ID.read(payload)?,
            body: payload.get(mad::HEADER.length..)?,
        })
    }

    /// The sender's number for the connection.
    pub fn local_id(&self) -> Option<u32> {
        self.names_connection().then(|| LOCAL_ID.read(self.body)).flatten().map(|v| v as u32)
    }

    /// The receiver's number for the connection; a REQ does not know it yet.
    pub fn remote_id(&self) -> Option<u32> {
        let known = self.names_connection() && self.kind != Kind::ConnectRequest;
        known.then(|| REMOTE_ID.read(self.body)).flatten().map(|v| v as u32)
    }

    fn names_connection(&self) -> bool {
        !matches!(self.kind, Kind::Other(_))
    }

    /// The service a REQ asks for.
    pub fn service(&self) -> Option<Service> {
        match self.kind {
            Kind::ConnectRequest => req::SERVICE_ID.read(self.body).map(Service),
            Kind::Other(0x17) => sidr_req::SERVICE_ID.read(self.body).map(Service),
            _ => None,
        }
    }

    /// The sender's queue pair, in a REQ or REP.
    pub fn local_qpn(&self) -> Option<u32> {
        match self.kind {
            Kind::ConnectRequest => req::LOCAL_QPN.read(self.body).map(|v| v as u32),
            Kind::ConnectReply => rep::LOCAL_QPN.read(self.body).map(|v| v as u32),
            _ => None,
        }
    }

    /// In a REQ or REP, the PSN that the *receiver's* first request will carry.
    pub fn starting_psn(&self) -> Option<u32> {
        match self.kind {
            Kind::ConnectRequest => req::STARTING_PSN.read(self.body).map(|v| v as u32),
            Kind::ConnectReply => rep::STARTING_PSN.read(self.body).map(|v| v as u32),
            _ => None,
        }
    }

    /// Why a REJ refuses; [`reject_reason`] has the words.
    pub fn reason(&self) -> Option<u16> {
        (self.kind == Kind::ConnectReject).then(|| rej::REASON.read(self.body)).flatten().map(|v| v as u16)
    }

    /// The RDMA-CM header of a REQ, if the service says that there is one.
    pub fn ip_cm(&self) -> Option<&'a [u8]> {
        let start = match self.kind {
            Kind::ConnectRequest => req::PRIVATE,
            Kind::Other(0x17) => sidr_req::PRIVATE,
            _ => return None,
        };
        self.service()?.port()?;
        self.body.get(start..start + ip_cm::HEADER.length)
    }

    /// The private data with the zeroes that fill it up; without the RDMA-CM header.
    pub fn private_data(&self) -> &'a [u8] {
        let Some(field) = self.kind.header().and_then(|header| header.fields.last()) else {
            return &[];
        };
        let skip = self.ip_cm().map_or(0, <[u8]>::len);
        let (start, end) = field.span();
        self.body.get(start + skip..end.min(self.body.len())).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::tests::assert_covered;

    #[test]
    fn every_bit_of_every_message_belongs_to_one_field() {
        assert_covered(&mad::HEADER);
        assert_covered(&ip_cm::HEADER);
        for attribute in 0x10..=0x18 {
            assert_covered(Kind::from(attribute).header().unwrap());
        }
        assert!(Kind::Other(0x19).header().is_none());
    }
}
