//! Connection manager messages, field by field (IBTA chapter 12), and the RDMA-CM header in them (annex A11).
//!
//! A message is the data of a management datagram (MAD) between the QPs 1 of two machines: a UD Send Only of 256 bytes.

mod messages;
mod words;

pub use messages::*;
pub use words::{mtu_bytes, reject_reason, sidr_status, Service};

use crate::field::{Field, Header};

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
    /// SIDR_REQ: to which queue pair do I send datagrams for this service?
    ServiceRequest,
    /// SIDR_REP: to this one, or to none.
    ServiceReply,
    /// LAP: another path, in case the first one fails.
    LoadAlternatePath,
    /// APR: what became of it.
    AlternatePathResponse,
    /// A message that this tool does not decode: its attribute.
    Unknown(u16),
}

/// Each kind in the order of its attribute, with its name written out and its layout, which has the short name.
const KINDS: [(u16, Kind, &str, &Header); 11] = [
    (0x10, Kind::ConnectRequest, "ConnectRequest", &req::HEADER),
    (0x11, Kind::MsgRcptAck, "MsgRcptAck", &mra::HEADER),
    (0x12, Kind::ConnectReject, "ConnectReject", &rej::HEADER),
    (0x13, Kind::ConnectReply, "ConnectReply", &rep::HEADER),
    (0x14, Kind::ReadyToUse, "ReadyToUse", &rtu::HEADER),
    (0x15, Kind::DisconnectRequest, "DisconnectRequest", &dreq::HEADER),
    (0x16, Kind::DisconnectReply, "DisconnectReply", &drep::HEADER),
    (0x17, Kind::ServiceRequest, "ServiceIDResolutionRequest", &sidr_req::HEADER),
    (0x18, Kind::ServiceReply, "ServiceIDResolutionResponse", &sidr_rep::HEADER),
    (0x19, Kind::LoadAlternatePath, "LoadAlternatePath", &lap::HEADER),
    (0x1a, Kind::AlternatePathResponse, "AlternatePathResponse", &apr::HEADER),
];

impl From<u16> for Kind {
    fn from(attribute: u16) -> Kind {
        let row = KINDS.get(usize::from(attribute.wrapping_sub(KINDS[0].0)));
        row.map_or(Kind::Unknown(attribute), |row| row.1)
    }
}

impl Kind {
    fn row(self) -> Option<&'static (u16, Kind, &'static str, &'static Header)> {
        KINDS.iter().find(|row| row.1 == self)
    }

    /// The name written out.
    pub fn name(self) -> &'static str {
        self.row().map_or("Unknown CM message", |row| row.2)
    }

    /// The name the specification uses for short.
    pub fn short(self) -> &'static str {
        self.header().map_or("Unknown CM message", |header| header.name)
    }

    /// How the message after the MAD header is laid out; None for a kind this tool does not decode.
    pub fn header(self) -> Option<&'static Header> {
        self.row().map(|row| row.3)
    }

    /// True for the first message of an exchange: of a connection, or of the search for a datagram service.
    pub fn begins(self) -> bool {
        matches!(self, Kind::ConnectRequest | Kind::ServiceRequest)
    }
}

/// One CM message inside a packet.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
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

    /// The sender's number for the connection. A SIDR exchange has one number, which the client gave to its request.
    pub fn local_id(&self) -> Option<u32> {
        let known = !matches!(self.kind, Kind::Unknown(_) | Kind::ServiceReply);
        known.then(|| LOCAL_ID.read(self.body)).flatten().map(|v| v as u32)
    }

    /// The receiver's number for the connection; a REQ does not know it yet.
    pub fn remote_id(&self) -> Option<u32> {
        let id = match self.kind {
            Kind::ServiceReply => LOCAL_ID.read(self.body),
            Kind::Unknown(_) | Kind::ConnectRequest | Kind::ServiceRequest => None,
            _ => REMOTE_ID.read(self.body),
        };
        id.map(|v| v as u32)
    }

    /// What stands in that one of these fields which this kind of message has.
    fn read_one(&self, fields: &[(Kind, Field)]) -> Option<u64> {
        let (_, field) = fields.iter().find(|(kind, _)| *kind == self.kind)?;
        field.read(self.body)
    }

    /// The service a REQ or SIDR_REQ asks for.
    pub fn service(&self) -> Option<Service> {
        let id =
            self.read_one(&[(Kind::ConnectRequest, req::SERVICE_ID), (Kind::ServiceRequest, sidr_req::SERVICE_ID)]);
        id.map(Service)
    }

    /// The sender's queue pair, in a REQ or REP, or the one that a SIDR_REP names.
    pub fn local_qpn(&self) -> Option<u32> {
        let connect = [(Kind::ConnectRequest, req::LOCAL_QPN), (Kind::ConnectReply, rep::LOCAL_QPN)];
        self.read_one(&connect).or_else(|| self.read_one(&[(Kind::ServiceReply, sidr_rep::QPN)])).map(|v| v as u32)
    }

    /// In a REQ or REP, the PSN that the *receiver's* first request will carry.
    pub fn starting_psn(&self) -> Option<u32> {
        let fields = [(Kind::ConnectRequest, req::STARTING_PSN), (Kind::ConnectReply, rep::STARTING_PSN)];
        self.read_one(&fields).map(|v| v as u32)
    }

    /// How a SIDR_REP answers; [`sidr_status`] has the words.
    pub fn sidr_status(&self) -> Option<u8> {
        self.read_one(&[(Kind::ServiceReply, sidr_rep::STATUS)]).map(|v| v as u8)
    }

    /// Why a REJ refuses; [`reject_reason`] has the words.
    pub fn reason(&self) -> Option<u16> {
        self.read_one(&[(Kind::ConnectReject, rej::REASON)]).map(|v| v as u16)
    }

    /// The RDMA-CM header of a REQ, if the service says that there is one.
    pub fn ip_cm(&self) -> Option<&'a [u8]> {
        self.service()?.port()?;
        let (start, _) = self.kind.header()?.fields.last()?.span();
        self.body.get(start..start + ip_cm::HEADER.length)
    }

    /// The private data without the zeroes that fill it up; it may have been longer than what is not zero.
    pub fn given_data(&self) -> &'a [u8] {
        let data = self.private_data();
        &data[..data.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)]
    }

    /// The private data with the zeroes that fill it up; without the RDMA-CM header.
    pub fn private_data(&self) -> &'a [u8] {
        let Some(field) = self.kind.header().and_then(|header| header.fields.last()) else { return &[] };
        let skip = self.ip_cm().map_or(0, <[u8]>::len);
        let (start, end) = field.span();
        self.body.get(start + skip..end.min(self.body.len())).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attribute_has_its_place() {
        for (attribute, kind, name, _) in KINDS {
            assert_eq!((Kind::from(attribute), kind.name()), (kind, name));
        }
    }
}
