//! The messages, declared field by field.

use super::words::{message_name, mtu, reject_reason, rnr_retry, sidr_status, timeout, transport, Service};
use super::Kind;
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
    pub const HEADER: Header = Header::new("MAD", "Management Datagram", 24, FIELDS);

    const FIELDS: &[Field] = &[
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
    ];

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
    pub const HEADER: Header = message("REQ", "Connect Request", FIELDS);

    const FIELDS: &[Field] = &[
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
    ];
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
    pub const HEADER: Header = message("REP", "Connect Reply", FIELDS);

    const FIELDS: &[Field] = &[
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
    ];
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
    pub const HEADER: Header = message("MRA", "Message Receipt Acknowledgement", FIELDS);

    const FIELDS: &[Field] = &[
        LOCAL_ID,
        REMOTE_ID,
        MESSAGE,
        Field::dec("reserved", (8, 2), 6),
        SERVICE_TIMEOUT,
        Field::dec("reserved", (9, 5), 3),
        Field::bytes("PrivateData", 10, 222),
    ];
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
    pub const HEADER: Header = message("REJ", "Connect Reject", FIELDS);

    const FIELDS: &[Field] = &[
        LOCAL_ID,
        REMOTE_ID,
        MESSAGE,
        Field::dec("reserved", (8, 2), 6),
        INFO_LENGTH,
        Field::dec("reserved", (9, 7), 1),
        REASON,
        Field::bytes("AdditionalRejectInformation", 12, 72),
        Field::bytes("PrivateData", PRIVATE, MESSAGE_LENGTH - PRIVATE),
    ];
}

/// DREQ (12.6.10).
pub mod dreq {
    use super::*;

    /// The receiver's queue pair that shall be disconnected.
    pub const REMOTE_QPN: Field = Field::hex("RemoteQPN", (8, 0), 24);

    /// The whole message.
    pub const HEADER: Header = message("DREQ", "Disconnect Request", FIELDS);

    const FIELDS: &[Field] =
        &[LOCAL_ID, REMOTE_ID, REMOTE_QPN, Field::dec("reserved", (11, 0), 8), Field::bytes("PrivateData", 12, 220)];
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
    pub const HEADER: Header = message("SIDR_REQ", "Service ID Resolution Request", FIELDS);

    const FIELDS: &[Field] = &[
        Field::hex("RequestID", (0, 0), 32),
        Field::hex("P_Key", (4, 0), 16),
        Field::hex("reserved", (6, 0), 16),
        SERVICE_ID,
        Field::bytes("PrivateData", PRIVATE, MESSAGE_LENGTH - PRIVATE),
    ];
}

/// SIDR_REP (12.11.2).
pub mod sidr_rep {
    use super::*;

    /// Yes, or why not.
    pub const STATUS: Field = Field::dec("Status", (4, 0), 8).means(|v| sidr_status(v as u8).into());
    /// The queue pair to send to.
    pub const QPN: Field = Field::hex("QPN", (8, 0), 24);

    /// The whole message.
    pub const HEADER: Header = message("SIDR_REP", "Service ID Resolution Response", FIELDS);

    const FIELDS: &[Field] = &[
        Field::hex("RequestID", (0, 0), 32),
        STATUS,
        Field::dec("AdditionalInfoLength", (5, 0), 8),
        Field::hex("reserved", (6, 0), 16),
        QPN,
        Field::dec("reserved", (11, 0), 8),
        Field::hex("ServiceID", (12, 0), 64).means(|v| Service(v).to_string()),
        Field::hex("Q_Key", (20, 0), 32),
        Field::bytes("AdditionalInfo", 24, 72),
        Field::bytes("PrivateData", 96, 136),
    ];
}

/// LAP (12.8.1): another path for the connection, in case the first one fails.
pub mod lap {
    use super::*;

    /// The whole message.
    pub const HEADER: Header = message("LAP", "Load Alternate Path", FIELDS);

    const FIELDS: &[Field] = &[
        LOCAL_ID,
        REMOTE_ID,
        Field::hex("reserved", (8, 0), 32),
        Field::hex("RemoteQPN", (12, 0), 24),
        Field::dec("RemoteCMResponseTimeout", (15, 0), 5).means(timeout),
        Field::dec("reserved", (15, 5), 3),
        Field::hex("reserved", (16, 0), 32),
        Field::hex("AlternateLocalLID", (20, 0), 16),
        Field::hex("AlternateRemoteLID", (22, 0), 16),
        Field::address("AlternateLocalGID", 24),
        Field::address("AlternateRemoteGID", 40),
        Field::hex("AlternateFlowLabel", (56, 0), 20),
        Field::dec("reserved", (58, 4), 4),
        Field::hex("AlternateTrafficClass", (59, 0), 8),
        Field::dec("AlternateHopLimit", (60, 0), 8),
        Field::dec("reserved", (61, 0), 2),
        Field::dec("AlternatePacketRate", (61, 2), 6),
        Field::dec("AlternateSL", (62, 0), 4),
        Field::dec("AlternateSubnetLocal", (62, 4), 1),
        Field::dec("reserved", (62, 5), 3),
        Field::dec("AlternateACKTimeout", (63, 0), 5).means(timeout),
        Field::dec("reserved", (63, 5), 3),
        Field::bytes("PrivateData", 64, 168),
    ];
}

/// APR (12.8.2): what became of it.
pub mod apr {
    use super::*;

    /// The whole message.
    pub const HEADER: Header = message("APR", "Alternate Path Response", FIELDS);

    const FIELDS: &[Field] = &[
        LOCAL_ID,
        REMOTE_ID,
        Field::dec("AdditionalInfoLength", (8, 0), 8),
        Field::dec("APStatus", (9, 0), 8),
        Field::hex("reserved", (10, 0), 16),
        Field::bytes("AdditionalInfo", 12, 72),
        Field::bytes("PrivateData", 84, 148),
    ];
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
    pub const HEADER: Header = Header::new("RDMA-CM", "RDMA IP CM Service header", 36, FIELDS);

    const FIELDS: &[Field] = &[
        Field::dec("MajorVersion", (0, 0), 4),
        Field::dec("MinorVersion", (0, 4), 4),
        IP_VERSION,
        Field::dec("reserved", (1, 4), 4),
        SRC_PORT,
        SRC_IP,
        DST_IP,
    ];
}

const fn message(name: &'static str, title: &'static str, fields: &'static [Field]) -> Header {
    Header::new(name, title, MESSAGE_LENGTH, fields)
}

const fn ids_and_private_data(name: &'static str, title: &'static str) -> Header {
    const FIELDS: &[Field] = &[LOCAL_ID, REMOTE_ID, Field::bytes("PrivateData", 8, 224)];
    message(name, title, FIELDS)
}
