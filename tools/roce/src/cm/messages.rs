//! The messages, declared field by field.

use super::words::{message_name, mtu, reject_reason, sidr_status, timeout, transport, Service};
use super::Kind;
use crate::field::{headers, only, Field};

/// Length in bytes of what follows the MAD header: one message with its private data.
pub const MESSAGE_LENGTH: usize = 232;

/// The class of connection management in [`mad::MGMT_CLASS`].
pub const CLASS: u64 = 7;

/// The sender's number for this connection attempt. Nearly every message begins with it.
pub const LOCAL_ID: Field = Field::hex("LocalCommID", (0, 0), 32);
/// The receiver's number for it, learned from an earlier message.
pub const REMOTE_ID: Field = Field::hex("RemoteCommID", (4, 0), 32);

headers! {
    /// Management Datagram header (13.4.3).
    pub mod mad = "MAD", "Management Datagram", 24 => {
        Field::dec("BaseVersion", (0, 0), 8);
        Field::hex("MgmtClass", (1, 0), 8).means(|v| only(v, CLASS, "communication management"))
            => MGMT_CLASS, "Which manager the datagram is for.";
        Field::dec("ClassVersion", (2, 0), 8);
        Field::hex("Method", (3, 0), 8).means(|v| only(v, 3, "Send"));
        Field::hex("Status", (4, 0), 16);
        Field::hex("ClassSpecific", (6, 0), 16);
        Field::hex("TransactionID", (8, 0), 64) => TRANSACTION_ID, "An answer repeats the number of its question.";
        Field::hex("AttributeID", (16, 0), 16).means(|v| Kind::from(v as u16).name().into())
            => ATTRIBUTE_ID, "Which message this is.";
        Field::hex("reserved", (18, 0), 16);
        Field::hex("AttributeModifier", (20, 0), 32);
    }

    /// REQ (table 106).
    pub mod req = "REQ", "Connect Request", MESSAGE_LENGTH => {
        LOCAL_ID;
        Field::dec("reserved", (4, 0), 8);
        Field::hex("VendorID", (5, 0), 24);
        Field::hex("ServiceID", (8, 0), 64).means(|v| Service(v).to_string())
            => SERVICE_ID, "What the client wants to reach; [`super::Service`] takes it apart.";
        Field::hex("LocalCAGUID", (16, 0), 64) => LOCAL_CA_GUID, "The client's device.";
        Field::hex("reserved", (24, 0), 32);
        Field::hex("LocalQ_Key", (28, 0), 32);
        Field::hex("LocalQPN", (32, 0), 24) => LOCAL_QPN, "The client's queue pair.";
        Field::dec("ResponderResources", (35, 0), 8)
            => RESPONDER_RESOURCES, "How many READs and atomics of the server the client can serve at once.";
        Field::hex("LocalEECN", (36, 0), 24);
        Field::dec("InitiatorDepth", (39, 0), 8)
            => INITIATOR_DEPTH, "How many READs and atomics the client wants to have under way.";
        Field::hex("RemoteEECN", (40, 0), 24);
        Field::dec("RemoteCMResponseTimeout", (43, 0), 5).means(timeout)
            => REMOTE_CM_TIMEOUT, "How long the server may take to answer: 4.096 µs × 2^n.";
        Field::dec("TransportServiceType", (43, 5), 2).means(transport) => TRANSPORT, "RC, UC or RD.";
        Field::dec("EndToEndFlowControl", (43, 7), 1);
        Field::dec("StartingPSN", (44, 0), 24).means(|_| "the server's first request carries it".into())
            => STARTING_PSN, "The first PSN of the *server's* requests.";
        Field::dec("LocalCMResponseTimeout", (47, 0), 5).means(timeout)
            => LOCAL_CM_TIMEOUT, "How long the client may take to answer: 4.096 µs × 2^n.";
        Field::dec("RetryCount", (47, 5), 3) => RETRY_COUNT, "How often the server shall repeat an unanswered request.";
        Field::hex("P_Key", (48, 0), 16) => P_KEY, "The partition.";
        Field::dec("PathPacketPayloadMTU", (50, 0), 4).means(mtu)
            => PATH_MTU, "Largest payload of a packet on this path.";
        Field::dec("RDCExists", (50, 4), 1); Field::dec("RNRRetryCount", (50, 5), 3).means(|v| only(v, 7, "for ever"))
            => RNR_RETRY, "How often to try again when no receive is posted.";
        Field::dec("MaxCMRetries", (51, 0), 4)
            => MAX_CM_RETRIES, "How often a message is repeated that nobody answers.";
        Field::dec("SRQ", (51, 4), 1);
        Field::dec("ExtendedTransport", (51, 5), 3);
        Field::hex("PrimaryLocalLID", (52, 0), 16)
            => PRIMARY_LOCAL_LID, "The client's address on InfiniBand; no meaning on Ethernet.";
        Field::hex("PrimaryRemoteLID", (54, 0), 16)
            => PRIMARY_REMOTE_LID, "The server's address on InfiniBand; no meaning on Ethernet.";
        Field::address("PrimaryLocalGID", 56) => PRIMARY_LOCAL_GID, "The client's address.";
        Field::address("PrimaryRemoteGID", 72) => PRIMARY_REMOTE_GID, "The server's address.";
        Field::hex("PrimaryFlowLabel", (88, 0), 20);
        Field::dec("reserved", (90, 4), 6);
        Field::dec("PrimaryPacketRate", (91, 2), 6);
        Field::hex("PrimaryTrafficClass", (92, 0), 8)
            => PRIMARY_TRAFFIC_CLASS, "The traffic class of both directions.";
        Field::dec("PrimaryHopLimit", (93, 0), 8) => PRIMARY_HOP_LIMIT, "How many routers a packet may pass.";
        Field::dec("PrimarySL", (94, 0), 4); Field::dec("PrimarySubnetLocal", (94, 4), 1);
        Field::dec("reserved", (94, 5), 3);
        Field::dec("LocalACKTimeout", (95, 0), 5).means(timeout)
            => LOCAL_ACK_TIMEOUT, "How long the server shall wait for an ACK: 4.096 µs × 2^n.";
        Field::dec("reserved", (95, 5), 3);
        Field::hex("AlternateLocalLID", (96, 0), 16);
        Field::hex("AlternateRemoteLID", (98, 0), 16);
        Field::address("AlternateLocalGID", 100);
        Field::address("AlternateRemoteGID", 116);
        Field::hex("AlternateFlowLabel", (132, 0), 20);
        Field::dec("reserved", (134, 4), 6);
        Field::dec("AlternatePacketRate", (135, 2), 6);
        Field::hex("AlternateTrafficClass", (136, 0), 8);
        Field::dec("AlternateHopLimit", (137, 0), 8);
        Field::dec("AlternateSL", (138, 0), 4); Field::dec("AlternateSubnetLocal", (138, 4), 1);
        Field::dec("reserved", (138, 5), 3);
        Field::dec("AlternateACKTimeout", (139, 0), 5); Field::dec("reserved", (139, 5), 3);
        Field::bytes("PrivateData", 140, 92);
    }

    /// REP (table 110).
    pub mod rep = "REP", "Connect Reply", MESSAGE_LENGTH => {
        LOCAL_ID; REMOTE_ID;
        Field::hex("LocalQ_Key", (8, 0), 32);
        Field::hex("LocalQPN", (12, 0), 24) => LOCAL_QPN, "The server's queue pair.";
        Field::hex("VendorIDHigh", (15, 0), 8);
        Field::hex("LocalEECN", (16, 0), 24);
        Field::hex("VendorIDMiddle", (19, 0), 8);
        Field::dec("StartingPSN", (20, 0), 24).means(|_| "the client's first request carries it".into())
            => STARTING_PSN, "The first PSN of the *client's* requests.";
        Field::hex("VendorIDLow", (23, 0), 8);
        Field::dec("ResponderResources", (24, 0), 8)
            => RESPONDER_RESOURCES, "How many READs and atomics of the client the server can serve at once.";
        Field::dec("InitiatorDepth", (25, 0), 8)
            => INITIATOR_DEPTH, "How many READs and atomics the server wants to have under way.";
        Field::dec("TargetACKDelay", (26, 0), 5).means(timeout)
            => TARGET_ACK_DELAY, "How long an ACK of the server may take: 4.096 µs × 2^n.";
        Field::dec("FailoverAccepted", (26, 5), 2);
        Field::dec("EndToEndFlowControl", (26, 7), 1);
        Field::dec("RNRRetryCount", (27, 0), 3).means(|v| only(v, 7, "for ever"))
            => RNR_RETRY, "How often to try again when no receive is posted.";
        Field::dec("SRQ", (27, 3), 1); Field::dec("reserved", (27, 4), 4);
        Field::hex("LocalCAGUID", (28, 0), 64) => LOCAL_CA_GUID, "The server's device.";
        Field::bytes("PrivateData", 36, 196);
    }

    /// RTU (table 111).
    pub mod rtu = "RTU", "Ready To Use", MESSAGE_LENGTH => {
        LOCAL_ID; REMOTE_ID;
        Field::bytes("PrivateData", 8, 224);
    }

    /// MRA (table 107).
    pub mod mra = "MRA", "Message Receipt Acknowledgement", MESSAGE_LENGTH => {
        LOCAL_ID; REMOTE_ID;
        Field::dec("MessageMRAed", (8, 0), 2).means(message_name); Field::dec("reserved", (8, 2), 6);
        Field::dec("ServiceTimeout", (9, 0), 5).means(timeout)
            => SERVICE_TIMEOUT, "How much longer it takes: 4.096 µs × 2^n.";
        Field::dec("reserved", (9, 5), 3);
        Field::bytes("PrivateData", 10, 222);
    }

    /// REJ (table 108).
    pub mod rej = "REJ", "Connect Reject", MESSAGE_LENGTH => {
        LOCAL_ID; REMOTE_ID;
        Field::dec("MessageRejected", (8, 0), 2).means(message_name)
            => MESSAGE_REJECTED, "Which message is answered so: a REQ, a REP, or none.";
        Field::dec("reserved", (8, 2), 6);
        Field::dec("RejectInfoLength", (9, 0), 7) => REJECT_INFO_LENGTH, "Bytes of [`INFO`].";
        Field::dec("reserved", (9, 7), 1);
        Field::dec("Reason", (10, 0), 16).means(|v| reject_reason(v as u16).into()) => REASON, "Why.";
        Field::bytes("AdditionalRejectInformation", 12, 72) => INFO, "More about the reason.";
        Field::bytes("PrivateData", 84, 148);
    }

    /// DREQ (table 112).
    pub mod dreq = "DREQ", "Disconnect Request", MESSAGE_LENGTH => {
        LOCAL_ID; REMOTE_ID;
        Field::hex("RemoteQPN", (8, 0), 24) => REMOTE_QPN, "The receiver's queue pair.";
        Field::dec("reserved", (11, 0), 8);
        Field::bytes("PrivateData", 12, 220);
    }

    /// DREP (table 113).
    pub mod drep = "DREP", "Disconnect Reply", MESSAGE_LENGTH => {
        LOCAL_ID; REMOTE_ID;
        Field::bytes("PrivateData", 8, 224);
    }

    /// SIDR_REQ (table 119): a UD peer asks for a queue pair.
    pub mod sidr_req = "SIDR_REQ", "Service ID Resolution Request", MESSAGE_LENGTH => {
        Field::hex("RequestID", (0, 0), 32) => REQUEST_ID, "The client's number for its question.";
        Field::hex("P_Key", (4, 0), 16) => P_KEY, "The partition.";
        Field::hex("reserved", (6, 0), 16);
        Field::hex("ServiceID", (8, 0), 64).means(|v| Service(v).to_string())
            => SERVICE_ID, "What the client wants to reach.";
        Field::bytes("PrivateData", 16, 216);
    }

    /// SIDR_REP (table 120).
    pub mod sidr_rep = "SIDR_REP", "Service ID Resolution Response", MESSAGE_LENGTH => {
        Field::hex("RequestID", (0, 0), 32) => REQUEST_ID, "The client's number for its question.";
        Field::dec("Status", (4, 0), 8).means(|v| sidr_status(v as u8).into()) => STATUS, "Yes, or why not.";
        Field::dec("AdditionalInfoLength", (5, 0), 8);
        Field::hex("reserved", (6, 0), 16);
        Field::hex("QPN", (8, 0), 24) => QPN, "The queue pair to send to.";
        Field::dec("reserved", (11, 0), 8);
        Field::hex("ServiceID", (12, 0), 64).means(|v| Service(v).to_string())
            => SERVICE_ID, "What the client wanted to reach.";
        Field::hex("Q_Key", (20, 0), 32) => Q_KEY, "The key that its datagrams must bring.";
        Field::bytes("AdditionalInfo", 24, 72);
        Field::bytes("PrivateData", 96, 136);
    }

    /// LAP (table 115): another path for the connection, in case the first one fails.
    pub mod lap = "LAP", "Load Alternate Path", MESSAGE_LENGTH => {
        LOCAL_ID; REMOTE_ID;
        Field::hex("reserved", (8, 0), 32);
        Field::hex("RemoteQPN", (12, 0), 24);
        Field::dec("RemoteCMResponseTimeout", (15, 0), 5).means(timeout); Field::dec("reserved", (15, 5), 3);
        Field::hex("reserved", (16, 0), 32);
        Field::hex("AlternateLocalLID", (20, 0), 16);
        Field::hex("AlternateRemoteLID", (22, 0), 16);
        Field::address("AlternateLocalGID", 24);
        Field::address("AlternateRemoteGID", 40);
        Field::hex("AlternateFlowLabel", (56, 0), 20);
        Field::dec("reserved", (58, 4), 4);
        Field::hex("AlternateTrafficClass", (59, 0), 8);
        Field::dec("AlternateHopLimit", (60, 0), 8);
        Field::dec("reserved", (61, 0), 2); Field::dec("AlternatePacketRate", (61, 2), 6);
        Field::dec("AlternateSL", (62, 0), 4); Field::dec("AlternateSubnetLocal", (62, 4), 1);
        Field::dec("reserved", (62, 5), 3);
        Field::dec("AlternateACKTimeout", (63, 0), 5).means(timeout); Field::dec("reserved", (63, 5), 3);
        Field::bytes("PrivateData", 64, 168);
    }

    /// APR (table 116): what became of it.
    pub mod apr = "APR", "Alternate Path Response", MESSAGE_LENGTH => {
        LOCAL_ID; REMOTE_ID;
        Field::dec("AdditionalInfoLength", (8, 0), 8);
        Field::dec("APStatus", (9, 0), 8);
        Field::hex("reserved", (10, 0), 16);
        Field::bytes("AdditionalInfo", 12, 72);
        Field::bytes("PrivateData", 84, 148);
    }

    /// The header that the RDMA connection manager puts at the start of a REQ's private data (A11.6).
    pub mod ip_cm = "RDMA-CM", "RDMA IP CM Service header", 36 => {
        Field::dec("MajorVersion", (0, 0), 4); Field::dec("MinorVersion", (0, 4), 4);
        Field::dec("IPVersion", (1, 0), 4); Field::dec("reserved", (1, 4), 4);
        Field::dec("SourcePort", (2, 0), 16);
        Field::address("SourceIP", 4);
        Field::address("DestinationIP", 20);
    }
}
