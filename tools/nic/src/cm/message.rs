//! The connection manager's messages, which are management datagrams of 256 bytes, carried by UD SENDs between the QPs 1 of two
//! machines (specification, volume 1, 12.6 and 13.4; the header inside a REQ's private data: annex A11.6).
//!
//! `roce` has the tables of where each field lies.

use crate::packet::{code, put, Deth, Packet};
use crate::psn::Psn;
use roce::cm::{ip_cm, mad, req, sidr_req, Kind, Message, LOCAL_ID, MESSAGE_LENGTH, REMOTE_ID};
use roce::field::{Field, Header};
use std::net::IpAddr;

/// The key of QP 1. Every datagram to it carries this key (3.5.3).
pub const QKEY: u32 = 0x8001_0000;
pub const QP1: u32 = 1;
const MAD_LENGTH: usize = mad::HEADER.length + MESSAGE_LENGTH;
/// The space for private data after the RDMA-CM header, in a REQ and in a SIDR_REQ.
pub const REQ_PRIVATE: usize = 56;
pub const SIDR_REQ_PRIVATE: usize = 180;
/// The same in a REP and in a REJ, which have no such header.
pub const REP_PRIVATE: usize = 196;
pub const REJ_PRIVATE: usize = 148;
pub const SIDR_REP_PRIVATE: usize = 136;

/// A port space. Programs that want connections and programs that want datagrams have separate ports. In the ID of a service, the
/// number of the space precedes the port (A11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    Tcp = 0x0106,
    Udp = 0x0111,
    /// For programs that name the transport themselves.
    Ib = 0x013f,
}

impl Space {
    /// The ID of the service at a port.
    pub(super) fn service(self, port: u16) -> u64 {
        (self as u64) << 16 | u64::from(port)
    }
}

/// A message being written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mad {
    kind: Kind,
    bytes: Vec<u8>,
}

impl Mad {
    /// A message of this kind, with everything else zero. Its answer will repeat the transaction id.
    pub fn new(kind: Kind, transaction_id: u64) -> Mad {
        let mut bytes = vec![0; MAD_LENGTH];
        // Base version 1, communication management, class version 2, method Send.
        bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
        put(&mut bytes, &mad::TRANSACTION_ID, transaction_id);
        let attribute = (0x10..=0x1a).find(|attribute| Kind::from(*attribute) == kind).unwrap_or_default();
        put(&mut bytes, &mad::ATTRIBUTE_ID, attribute.into());
        Mad { kind, bytes }
    }

    /// A message that begins with the ids of both sides, as all do except a REQ and those of SIDR.
    pub fn between(kind: Kind, transaction_id: u64, local: u32, remote: u32) -> Mad {
        Mad::new(kind, transaction_id).with(&LOCAL_ID, local.into()).with(&REMOTE_ID, remote.into())
    }

    /// Reads the payload of a datagram for QP 1. None if it isn't a message about a connection.
    pub fn read(payload: &[u8]) -> Option<Mad> {
        let message = Message::read(payload).filter(|message| message.body.len() == MESSAGE_LENGTH)?;
        message.kind.header()?;
        Some(Mad { kind: message.kind, bytes: payload.to_vec() })
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The number that an answer repeats.
    pub fn transaction_id(&self) -> u64 {
        mad::TRANSACTION_ID.read(&self.bytes).unwrap_or_default()
    }

    /// Sets a number in one of this kind's fields.
    #[must_use]
    pub fn with(mut self, field: &Field, value: u64) -> Mad {
        debug_assert!(self.has(field), "{:?} has no field {}", self.kind, field.name);
        put(&mut self.bytes[mad::HEADER.length..], field, value);
        self
    }

    /// Sets an address. An IPv4 address is mapped to IPv6, as in a GID.
    #[must_use]
    pub fn with_gid(self, field: &Field, address: IpAddr) -> Mad {
        self.with_bytes(field, &gid(address))
    }

    /// Sets the first bytes of a field that isn't a number.
    #[must_use]
    pub fn with_bytes(mut self, field: &Field, bytes: &[u8]) -> Mad {
        debug_assert!(self.has(field) && field.bits >= 8 * bytes.len(), "{:?}: {}", self.kind, field.name);
        self.bytes[mad::HEADER.length + field.span().0..][..bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Sets the private data, and cuts off what's too long.
    #[must_use]
    pub fn with_private(mut self, data: &[u8]) -> Mad {
        let start = self.private_start();
        let length = data.len().min(MAD_LENGTH - start);
        self.bytes[start..][..length].copy_from_slice(&data[..length]);
        self
    }

    /// Puts the RDMA-CM header at the start of the private data of a REQ or SIDR_REQ. It holds IP addresses and the client's
    /// port.
    #[must_use]
    pub fn with_addresses(mut self, from: IpAddr, port: u16, to: IpAddr) -> Mad {
        let version = if from.is_ipv4() { 0x40 } else { 0x60 };
        let octets = |address| match address {
            // The last four of sixteen bytes, with zeroes before them, which isn't the form of a GID.
            IpAddr::V4(address) => address.to_ipv6_compatible().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let header = [&[0, version], &port.to_be_bytes()[..], &octets(from), &octets(to)].concat();
        let start = self.all_private_start();
        self.bytes[start..][..header.len()].copy_from_slice(&header);
        self
    }

    /// Gets a number from one of this kind's fields.
    pub fn get(&self, field: &Field) -> u64 {
        debug_assert!(self.has(field), "{:?} has no field {}", self.kind, field.name);
        field.read(&self.bytes[mad::HEADER.length..]).unwrap_or_default()
    }

    fn has(&self, field: &Field) -> bool {
        self.header().fields.iter().any(|other| (other.name, other.bit) == (field.name, field.bit))
    }

    /// The private data, without a REQ's RDMA-CM header. A message doesn't say how many bytes of it were sent; the rest is
    /// zeroes.
    pub fn private_data(&self) -> &[u8] {
        &self.bytes[self.private_start()..]
    }

    pub fn source_port(&self) -> u16 {
        let header = &self.bytes[self.all_private_start()..];
        u16::from_be_bytes([header[2], header[3]])
    }

    /// The port that a REQ or SIDR_REQ asks for, or None if it wants another service.
    pub fn port(&self) -> Option<(Space, u16)> {
        let (space, field) = match self.kind {
            Kind::ServiceRequest => (Space::Udp, &sidr_req::SERVICE_ID),
            _ => (Space::Tcp, &req::SERVICE_ID),
        };
        let id = self.get(field);
        let space = [space, Space::Ib].into_iter().find(|space| id == space.service(id as u16))?;
        Some((space, id as u16))
    }

    pub fn packet(&self, psn: Psn) -> Packet {
        let (payload, deth) = (self.bytes.clone(), Deth { qkey: QKEY, src_qp: QP1 });
        // AckReq means nothing in a datagram. The kernel sets it, and so do we.
        let opcode = code::UD_SEND_ONLY;
        Packet { opcode, dest_qp: QP1, deth, psn, ack_request: true, payload, ..Packet::default() }
    }

    fn header(&self) -> &'static Header {
        self.kind.header().unwrap_or(&mad::HEADER)
    }

    fn all_private_start(&self) -> usize {
        mad::HEADER.length + self.header().fields.last().map_or(MESSAGE_LENGTH, |field| field.span().0)
    }

    /// Where the program's private data begins. In a REQ or SIDR_REQ that's after the RDMA-CM header.
    fn private_start(&self) -> usize {
        let before = if self.kind.begins() { ip_cm::HEADER.length } else { 0 };
        self.all_private_start() + before
    }
}

/// An address as a GID (annex A17.4.2.1).
pub fn gid(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The address in a GID.
pub fn address_in(gid: [u8; 16]) -> IpAddr {
    IpAddr::from(gid).to_canonical()
}
