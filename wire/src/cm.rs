//! Connection manager messages, field by field (IBTA chapter 12), and the RDMA-CM header inside them
//! (annex A11).
//!
//! A message is the data part of a management datagram (MAD) that travels between the QPs 1 of two
//! machines as a UD Send Only of 256 bytes.

use crate::field::{Field, Header};

/// Management Datagram header (13.4.3).
pub mod mad {
    use super::*;

    /// Version of the MAD format.
    pub const BASE_VERSION: Field = Field::dec("BaseVersion", (0, 0), 8);
    /// Which manager the datagram is for.
    pub const MGMT_CLASS: Field = Field::hex("MgmtClass", (1, 0), 8).means(class_name);
    /// Version of the class.
    pub const CLASS_VERSION: Field = Field::dec("ClassVersion", (2, 0), 8);
    /// Get, Set, Send…
    pub const METHOD: Field = Field::hex("Method", (3, 0), 8).means(method_name);
    /// How a request went.
    pub const STATUS: Field = Field::hex("Status", (4, 0), 16);
    /// Meaning depends on the class.
    pub const CLASS_SPECIFIC: Field = Field::hex("ClassSpecific", (6, 0), 16);
    /// An answer repeats the number of its question.
    pub const TRANSACTION_ID: Field = Field::hex("TransactionID", (8, 0), 64);
    /// Which message this is.
    pub const ATTRIBUTE_ID: Field =
        Field::hex("AttributeID", (16, 0), 16).means(|v| Kind::from(v as u16).name().into());
    /// Not used.
    pub const RESV: Field = Field::hex("reserved", (18, 0), 16);
    /// Enhancements the sender offers, else zero.
    pub const ATTRIBUTE_MODIFIER: Field = Field::hex("AttributeModifier", (20, 0), 32);

    /// The whole header.
    pub const HEADER: Header = Header {
        name: "MAD",
        title: "Management Datagram",
        length: 24,
        fields: &[
            BASE_VERSION,
            MGMT_CLASS,
            CLASS_VERSION,
            METHOD,
            STATUS,
            CLASS_SPECIFIC,
            TRANSACTION_ID,
            ATTRIBUTE_ID,
            RESV,
            ATTRIBUTE_MODIFIER,
        ],
    };

    fn class_name(class: u64) -> String {
        if class == 7 {
            "communication management".into()
        } else {
            String::new()
        }
    }

    fn method_name(method: u64) -> String {
        if method == 3 {
            "Send".into()
        } else {
            String::new()
        }
    }
}

/// Length in bytes of what follows the MAD header: one message with its private data.
pub const MESSAGE_LENGTH: usize = 232;

/// The class of connection management in [`mad::MGMT_CLASS`].
pub const CLASS: u64 = 7;

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

/// The sender's number for this connection attempt. Nearly every message begins with it.
pub const LOCAL_ID: Field = Field::hex("LocalCommID", (0, 0), 32);
/// The receiver's number for it, learned from an earlier message.
pub const REMOTE_ID: Field = Field::hex("RemoteCommID", (4, 0), 32);

/// REQ (12.6.5).
pub mod req {
    use super::*;

    /// What the client wants to reach; [`super::Service`] takes it apart.
    pub const SERVICE_ID: Field = Field::hex("ServiceID", (8, 0), 64).means(|v| Service(v).to_string());
    /// The client's queue pair.
    pub const LOCAL_QPN: Field = Field::hex("LocalQPN", (32, 0), 24);
    /// How many READs and atomics of the server the client can serve at once.
    pub const RESPONDER_RESOURCES: Field = Field::dec("ResponderResources", (35, 0), 8);
    /// How many READs and atomics the client wants to have under way.
    pub const INITIATOR_DEPTH: Field = Field::dec("InitiatorDepth", (39, 0), 8);
    /// How long the client waits for the server's answer.
    pub const REMOTE_CM_TIMEOUT: Field = Field::dec("RemoteCMResponseTimeout", (43, 0), 5).means(timeout);
    /// RC, UC or RD.
    pub const TRANSPORT: Field = Field::dec("TransportServiceType", (43, 5), 2).means(transport);
    /// The first PSN of the *server's* requests.
    pub const STARTING_PSN: Field =
        Field::dec("StartingPSN", (44, 0), 24).means(|_| "the server's first request carries it".into());
    /// How long the server may wait for the client's answer.
    pub const LOCAL_CM_TIMEOUT: Field = Field::dec("LocalCMResponseTimeout", (47, 0), 5).means(timeout);
    /// How often the server shall repeat an unanswered request.
    pub const RETRY_COUNT: Field = Field::dec("RetryCount", (47, 5), 3);
    /// Largest payload of a packet on this path.
    pub const PATH_MTU: Field = Field::dec("PathPacketPayloadMTU", (50, 0), 4).means(mtu);
    /// How often to try again when no receive is posted.
    pub const RNR_RETRY: Field = Field::dec("RNRRetryCount", (50, 5), 3).means(rnr_retry);
    /// The client's address.
    pub const LOCAL_GID: Field = Field::address("PrimaryLocalGID", 56);
    /// The server's address.
    pub const REMOTE_GID: Field = Field::address("PrimaryRemoteGID", 72);
    /// How long to wait for an ACK before sending again.
    pub const ACK_TIMEOUT: Field = Field::dec("LocalACKTimeout", (95, 0), 5).means(timeout);
    /// Where the private data begins.
    pub const PRIVATE: usize = 140;

    /// The whole message.
    pub const HEADER: Header = Header {
        name: "REQ",
        title: "Connect Request",
        length: MESSAGE_LENGTH,
        fields: &[
            LOCAL_ID,
            Field::dec("reserved", (4, 0), 8),
            Field::hex("VendorID", (5, 0), 24),
            SERVICE_ID,
            Field::hex("LocalCAGUID", (16, 0), 64),
            Field::hex("reserved", (24, 0), 32),
            Field::hex("LocalQ_Key", (28, 0), 32),
            LOCAL_QPN,
            RESPONDER_RESOURCES,
            Field::hex("LocalEECN", (36, 0), 24),
            INITIATOR_DEPTH,
            Field::hex("RemoteEECN", (40, 0), 24),
            REMOTE_CM_TIMEOUT,
            TRANSPORT,
            Field::dec("EndToEndFlowControl", (43, 7), 1),
            STARTING_PSN,
            LOCAL_CM_TIMEOUT,
            RETRY_COUNT,
            Field::hex("P_Key", (48, 0), 16),
            PATH_MTU,
            Field::dec("RDCExists", (50, 4), 1),
            RNR_RETRY,
            Field::dec("MaxCMRetries", (51, 0), 4),
            Field::dec("SRQ", (51, 4), 1),
            Field::dec("ExtendedTransport", (51, 5), 3),
            Field::hex("PrimaryLocalLID", (52, 0), 16),
            Field::hex("PrimaryRemoteLID", (54, 0), 16),
            LOCAL_GID,
            REMOTE_GID,
            Field::hex("PrimaryFlowLabel", (88, 0), 20),
            Field::dec("reserved", (90, 4), 6),
            Field::dec("PrimaryPacketRate", (91, 2), 6),
            Field::hex("PrimaryTrafficClass", (92, 0), 8),
            Field::dec("PrimaryHopLimit", (93, 0), 8),
            Field::dec("PrimarySL", (94, 0), 4),
            Field::dec("PrimarySubnetLocal", (94, 4), 1),
            Field::dec("reserved", (94, 5), 3),
            ACK_TIMEOUT,
            Field::dec("reserved", (95, 5), 3),
            Field::hex("AlternateLocalLID", (96, 0), 16),
            Field::hex("AlternateRemoteLID", (98, 0), 16),
            Field::address("AlternateLocalGID", 100),
            Field::address("AlternateRemoteGID", 116),
            Field::hex("AlternateFlowLabel", (132, 0), 20),
            Field::dec("reserved", (134, 4), 6),
            Field::dec("AlternatePacketRate", (135, 2), 6),
            Field::hex("AlternateTrafficClass", (136, 0), 8),
            Field::dec("AlternateHopLimit", (137, 0), 8),
            Field::dec("AlternateSL", (138, 0), 4),
            Field::dec("AlternateSubnetLocal", (138, 4), 1),
            Field::dec("reserved", (138, 5), 3),
            Field::dec("AlternateACKTimeout", (139, 0), 5),
            Field::dec("reserved", (139, 5), 3),
            Field::bytes("PrivateData", PRIVATE, MESSAGE_LENGTH - PRIVATE),
        ],
    };
}

/// REP (12.6.8).
pub mod rep {
    use super::*;

    /// The server's queue pair.
    pub const LOCAL_QPN: Field = Field::hex("LocalQPN", (12, 0), 24);
    /// The first PSN of the *client's* requests.
    pub const STARTING_PSN: Field =
        Field::dec("StartingPSN", (20, 0), 24).means(|_| "the client's first request carries it".into());
    /// How many READs and atomics of the client the server can serve at once.
    pub const RESPONDER_RESOURCES: Field = Field::dec("ResponderResources", (24, 0), 8);
    /// How many READs and atomics the server wants to have under way.
    pub const INITIATOR_DEPTH: Field = Field::dec("InitiatorDepth", (25, 0), 8);
    /// How often to try again when no receive is posted.
    pub const RNR_RETRY: Field = Field::dec("RNRRetryCount", (27, 0), 3).means(rnr_retry);
    /// Where the private data begins.
    pub const PRIVATE: usize = 36;

    /// The whole message.
    pub const HEADER: Header = Header {
        name: "REP",
        title: "Connect Reply",
        length: MESSAGE_LENGTH,
        fields: &[
            LOCAL_ID,
            REMOTE_ID,
            Field::hex("LocalQ_Key", (8, 0), 32),
            LOCAL_QPN,
            Field::hex("VendorIDHigh", (15, 0), 8),
            Field::hex("LocalEECN", (16, 0), 24),
            Field::hex("VendorIDMiddle", (19, 0), 8),
            STARTING_PSN,
            Field::hex("VendorIDLow", (23, 0), 8),
            RESPONDER_RESOURCES,
            INITIATOR_DEPTH,
            Field::dec("TargetACKDelay", (26, 0), 5).means(timeout),
            Field::dec("FailoverAccepted", (26, 5), 2),
            Field::dec("EndToEndFlowControl", (26, 7), 1),
            RNR_RETRY,
            Field::dec("SRQ", (27, 3), 1),
            Field::dec("reserved", (27, 4), 4),
            Field::hex("LocalCAGUID", (28, 0), 64),
            Field::bytes("PrivateData", PRIVATE, MESSAGE_LENGTH - PRIVATE),
        ],
    };
}

/// RTU (12.6.9).
pub mod rtu {
    use super::*;

    /// The whole message.
    pub const HEADER: Header = ids_and_private_data("RTU", "Ready To Use");
}

/// MRA (12.6.6).
pub mod mra {
    use super::*;

    /// Which message was received.
    pub const MESSAGE: Field = Field::dec("MessageMRAed", (8, 0), 2).means(message_name);
    /// How much longer the answer may take.
    pub const SERVICE_TIMEOUT: Field = Field::dec("ServiceTimeout", (9, 0), 5).means(timeout);

    /// The whole message.
    pub const HEADER: Header = Header {
        name: "MRA",
        title: "Message Receipt Acknowledgement",
        length: MESSAGE_LENGTH,
        fields: &[
            LOCAL_ID,
            REMOTE_ID,
            MESSAGE,
            Field::dec("reserved", (8, 2), 6),
            SERVICE_TIMEOUT,
            Field::dec("reserved", (9, 5), 3),
            Field::bytes("PrivateData", 10, 222),
        ],
    };
}

/// REJ (12.6.7).
pub mod rej {
    use super::*;

    /// Which message is refused.
    pub const MESSAGE: Field = Field::dec("MessageRejected", (8, 0), 2).means(message_name);
    /// Valid bytes of the additional information.
    pub const INFO_LENGTH: Field = Field::dec("RejectInfoLength", (9, 0), 7);
    /// Why.
    pub const REASON: Field = Field::dec("Reason", (10, 0), 16).means(|v| reject_reason(v as u16).into());
    /// Where the private data begins.
    pub const PRIVATE: usize = 84;

    /// The whole message.
    pub const HEADER: Header = Header {
        name: "REJ",
        title: "Connect Reject",
        length: MESSAGE_LENGTH,
        fields: &[
            LOCAL_ID,
            REMOTE_ID,
            MESSAGE,
            Field::dec("reserved", (8, 2), 6),
            INFO_LENGTH,
            Field::dec("reserved", (9, 7), 1),
            REASON,
            Field::bytes("AdditionalRejectInformation", 12, 72),
            Field::bytes("PrivateData", PRIVATE, MESSAGE_LENGTH - PRIVATE),
        ],
    };
}

/// DREQ (12.6.10).
pub mod dreq {
    use super::*;

    /// The receiver's queue pair that shall be disconnected.
    pub const REMOTE_QPN: Field = Field::hex("RemoteQPN", (8, 0), 24);

    /// The whole message.
    pub const HEADER: Header = Header {
        name: "DREQ",
        title: "Disconnect Request",
        length: MESSAGE_LENGTH,
        fields: &[
            LOCAL_ID,
            REMOTE_ID,
            REMOTE_QPN,
            Field::dec("reserved", (11, 0), 8),
            Field::bytes("PrivateData", 12, 220),
        ],
    };
}

/// DREP (12.6.11).
pub mod drep {
    use super::*;

    /// The whole message.
    pub const HEADER: Header = ids_and_private_data("DREP", "Disconnect Reply");
}

/// SIDR_REQ (12.11.1): a UD peer asks for a queue pair.
pub mod sidr_req {
    use super::*;

    /// What the client wants to reach.
    pub const SERVICE_ID: Field = Field::hex("ServiceID", (8, 0), 64).means(|v| Service(v).to_string());
    /// Where the private data begins.
    pub const PRIVATE: usize = 16;

    /// The whole message.
    pub const HEADER: Header = Header {
        name: "SIDR_REQ",
        title: "Service ID Resolution Request",
        length: MESSAGE_LENGTH,
        fields: &[
            Field::hex("RequestID", (0, 0), 32),
            Field::hex("P_Key", (4, 0), 16),
            Field::hex("reserved", (6, 0), 16),
            SERVICE_ID,
            Field::bytes("PrivateData", PRIVATE, MESSAGE_LENGTH - PRIVATE),
        ],
    };
}

/// SIDR_REP (12.11.2).
pub mod sidr_rep {
    use super::*;

    /// The whole message.
    pub const HEADER: Header = Header {
        name: "SIDR_REP",
        title: "Service ID Resolution Response",
        length: MESSAGE_LENGTH,
        fields: &[
            Field::hex("RequestID", (0, 0), 32),
            Field::dec("Status", (4, 0), 8),
            Field::dec("AdditionalInfoLength", (5, 0), 8),
            Field::hex("reserved", (6, 0), 16),
            Field::hex("QPN", (8, 0), 24),
            Field::dec("reserved", (11, 0), 8),
            Field::hex("ServiceID", (12, 0), 64).means(|v| Service(v).to_string()),
            Field::hex("Q_Key", (20, 0), 32),
            Field::bytes("AdditionalInfo", 24, 72),
            Field::bytes("PrivateData", 96, 136),
        ],
    };
}

/// The header that the RDMA connection manager puts at the start of a REQ's private data (A11.6).
pub mod ip_cm {
    use super::*;

    /// IP version of the addresses.
    pub const IP_VERSION: Field = Field::dec("IPVersion", (1, 0), 4);
    /// The client's port.
    pub const SRC_PORT: Field = Field::dec("SourcePort", (2, 0), 16);
    /// The client's address; IPv4 stands in the last four bytes.
    pub const SRC_IP: Field = Field::address("SourceIP", 4);
    /// The server's address.
    pub const DST_IP: Field = Field::address("DestinationIP", 20);

    /// The whole header.
    pub const HEADER: Header = Header {
        name: "RDMA-CM",
        title: "RDMA IP CM Service header",
        length: 36,
        fields: &[
            Field::dec("MajorVersion", (0, 0), 4),
            Field::dec("MinorVersion", (0, 4), 4),
            IP_VERSION,
            Field::dec("reserved", (1, 4), 4),
            SRC_PORT,
            SRC_IP,
            DST_IP,
        ],
    };
}

const fn ids_and_private_data(name: &'static str, title: &'static str) -> Header {
    const FIELDS: &[Field] = &[LOCAL_ID, REMOTE_ID, Field::bytes("PrivateData", 8, 224)];
    Header { name, title, length: MESSAGE_LENGTH, fields: FIELDS }
}

/// A service ID. The RDMA connection manager builds it from a port space and a port (A11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service(pub u64);

impl Service {
    /// The port the server listens on, if the ID comes from the RDMA connection manager.
    pub fn port(self) -> Option<u16> {
        (self.0 >> 32 == 0 && self.0 >> 24 == 1).then_some(self.0 as u16)
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let space = match self.0 >> 16 & 0xff {
            0x06 => "RDMA_PS_TCP",
            0x11 => "RDMA_PS_UDP",
            0x3f => "RDMA_PS_IB",
            _ => "port space unknown",
        };
        match self.port() {
            Some(port) => write!(f, "{space}, port {port}"),
            None => write!(f, "not an RDMA-CM service"),
        }
    }
}

/// Why a connection was refused, in words (12.6.7.2).
pub fn reject_reason(reason: u16) -> &'static str {
    match reason {
        1 => "no QP available",
        2 => "no EE context available",
        3 => "no resources available",
        4 => "timeout",
        5 => "unsupported request",
        6 => "invalid communication ID",
        7 => "invalid communication instance",
        8 => "invalid service ID: nobody listens",
        9 => "invalid transport service type",
        10 => "stale connection",
        11 => "RDC does not exist",
        12 => "primary remote GID rejected",
        13 => "primary remote LID rejected",
        14 => "invalid primary SL",
        15 => "invalid primary traffic class",
        16 => "invalid primary hop limit",
        17 => "invalid primary packet rate",
        18 => "alternate remote GID rejected",
        19 => "alternate remote LID rejected",
        20 => "invalid alternate SL",
        21 => "invalid alternate traffic class",
        22 => "invalid alternate hop limit",
        23 => "invalid alternate packet rate",
        24 => "port and CM redirection",
        25 => "port redirection",
        26 => "invalid path MTU",
        27 => "insufficient responder resources",
        28 => "consumer reject",
        29 => "RNR retry count rejected",
        30 => "duplicate local communication ID",
        31 => "invalid class version",
        32 => "invalid primary flow label",
        33 => "invalid alternate flow label",
        35 => "rejected vendor option",
        _ => "unknown reason",
    }
}

/// A time code: 4.096 microseconds times a power of two.
fn timeout(code: u64) -> String {
    if code == 0 {
        return "no time limit".into();
    }
    let microseconds = 4.096 * (1u64 << code.min(31)) as f64;
    match microseconds {
        us if us < 1e3 => format!("{us:.1} microseconds"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

fn mtu(code: u64) -> String {
    match code {
        1..=5 => format!("{} bytes", mtu_bytes(code as u8).unwrap_or(0)),
        _ => "not a valid MTU".into(),
    }
}

/// The path MTU in bytes for its code 1 to 5.
pub fn mtu_bytes(code: u8) -> Option<u32> {
    (1..=5).contains(&code).then(|| 128 << code)
}

fn rnr_retry(count: u64) -> String {
    if count == 7 {
        "for ever".into()
    } else {
        String::new()
    }
}

fn transport(code: u64) -> String {
    ["RC", "UC", "RD", "see ExtendedTransport"].get(code as usize).copied().unwrap_or_default().into()
}

fn message_name(code: u64) -> String {
    ["REQ", "REP", "another message", "reserved"].get(code as usize).copied().unwrap_or_default().into()
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

    #[test]
    fn service_ids_of_the_rdma_cm() {
        assert_eq!(Service(0x0106_1d2f).to_string(), "RDMA_PS_TCP, port 7471");
        assert_eq!(Service(0x1_0106_1d2f).port(), None);
        assert_eq!(Service(0x0002_0000).port(), None);
    }

    #[test]
    fn codes_in_words() {
        assert_eq!(timeout(19), "2.1 s");
        assert_eq!(timeout(0), "no time limit");
        assert_eq!(timeout(14), "67.1 ms");
        assert_eq!(mtu(3), "1024 bytes");
        assert_eq!(mtu(0), "not a valid MTU");
        assert_eq!(reject_reason(28), "consumer reject");
    }
}
