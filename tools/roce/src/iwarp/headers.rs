//! The headers of iWARP, field by field: MPA (RFC 5044, RFC 6581), DDP (RFC 5041), RDMAP (RFC 5040).

use super::{name, terminate};
use crate::field::{headers, only, Field};

headers! {
    /// What either side says first, before TCP carries RDMA (RFC 5044, 7.1; the enhanced bit is RFC 6581's).
    pub mod startup = "MPA", "Marker PDU Aligned framing, start-up", 20 => {
        Field::bytes("Key", 0, 16);
        Field::dec("Markers", (16, 0), 1) => MARKERS, "The sender wants markers in what it receives.";
        Field::dec("CRC", (16, 1), 1).means(|v| if v == 1 { "used".into() } else { "not asked for".into() })
            => CRC, "The sender wants CRCs to be used.";
        Field::dec("Rejected", (16, 2), 1) => REJECTED, "In a reply: the connection is refused.";
        Field::dec("Enhanced", (16, 3), 1).means(|v| only(v, 1, "the private data begins with IRD and ORD"))
            => ENHANCED, "IRD and ORD come before the private data.";
        Field::dec("Reserved", (16, 4), 4);
        Field::dec("Revision", (17, 0), 8);
        Field::dec("PD_Length", (18, 0), 16) => LENGTH, "Bytes of private data.";
    }

    /// How many READs at a time (RFC 6581, 6).
    pub mod enhanced = "MPA v2", "READs that each side answers and has under way", 4 => {
        Field::dec("Peer-to-peer", (0, 0), 1);
        Field::dec("Zero-length Send", (0, 1), 1);
        Field::dec("IRD", (0, 2), 14).means(|_| "READs that the sender answers at a time".into()) => IRD, "Inbound READs.";
        Field::dec("Zero-length Write", (2, 0), 1);
        Field::dec("Zero-length Read", (2, 1), 1);
        Field::dec("ORD", (2, 2), 14).means(|_| "READs that the sender has under way at a time".into()) => ORD, "Outbound READs.";
    }

    /// The length in front of each unit, because TCP carries bytes without borders (RFC 5044, 4.1).
    pub mod mpa = "MPA", "Marker PDU Aligned framing", 2 => {
        Field::dec("ULPDU_Length", (0, 0), 16) => LENGTH, "Bytes of DDP and payload, without padding and CRC.";
    }

    /// For memory that the sender names: WRITE, READ Response (RFC 5041, 4.1; its second byte is RFC 5040's, 4.1).
    pub mod tagged = "DDP", "Direct Data Placement, tagged", 14 => {
        Field::dec("Tagged", (0, 0), 1) => TAGGED, "The receiver's memory is named by STag and TO.";
        Field::dec("Last", (0, 1), 1).means(|v| only(v, 1, "the message ends here")) => LAST, "The message's last segment.";
        Field::dec("Reserved", (0, 2), 4);
        Field::dec("DV", (0, 6), 2).means(|v| only(v, 1, "DDP's version"));
        Field::dec("RV", (1, 0), 2).means(|v| only(v, 1, "RDMAP's version"));
        Field::dec("Reserved", (1, 2), 2);
        Field::hex("Opcode", (1, 4), 4).means(|v| name(v as u8).into());
        Field::hex("STag", (2, 0), 32) => STAG, "Steering tag: RoCE's R_Key.";
        Field::hex("TO", (6, 0), 64) => OFFSET, "Tagged offset: RoCE's virtual address.";
    }

    /// For a buffer that the receiver chooses: SEND, READ Request, Terminate (RFC 5041, 4.2).
    pub mod untagged = "DDP", "Direct Data Placement, untagged", 18 => {
        Field::dec("Tagged", (0, 0), 1);
        Field::dec("Last", (0, 1), 1).means(|v| only(v, 1, "the message ends here"));
        Field::dec("Reserved", (0, 2), 4);
        Field::dec("DV", (0, 6), 2).means(|v| only(v, 1, "DDP's version"));
        Field::dec("RV", (1, 0), 2).means(|v| only(v, 1, "RDMAP's version"));
        Field::dec("Reserved", (1, 2), 2);
        Field::hex("Opcode", (1, 4), 4).means(|v| name(v as u8).into());
        Field::hex("InvalidateSTag", (2, 0), 32) => INVALIDATE, "The receiver's tag that becomes invalid; else reserved.";
        Field::dec("QN", (6, 0), 32).means(|v| match v {
            0 => "SENDs".into(),
            1 => "READ Requests".into(),
            2 => "Terminate".into(),
            _ => String::new(),
        }) => QUEUE, "The receiver's queue.";
        Field::dec("MSN", (10, 0), 32) => MSN, "The message's number in that queue, from 1.";
        Field::dec("MO", (14, 0), 32) => OFFSET, "Where in the message this segment belongs.";
    }

    /// What a READ Request asks for (RFC 5040, 4.4).
    pub mod read = "RDMAP", "RDMA Read Request", 28 => {
        Field::hex("SinkSTag", (0, 0), 32) => SINK, "Where the answer goes: memory of the one who asks.";
        Field::hex("SinkTO", (4, 0), 64) => SINK_OFFSET, "The place in it.";
        Field::dec("RDMARDSZ", (12, 0), 32).means(|_| "bytes wanted".into()) => SIZE, "Bytes wanted.";
        Field::hex("SrcSTag", (16, 0), 32) => SOURCE, "What is read: RoCE's R_Key.";
        Field::hex("SrcTO", (20, 0), 64) => SOURCE_OFFSET, "The place in it: RoCE's virtual address.";
    }

    /// Why a side ends the connection (RFC 5040, 4.8); the refused headers may follow.
    pub mod terminate_control = "RDMAP", "Terminate", 4 => {
        Field::dec("Layer", (0, 0), 4).means(|v| terminate::layer(v as u8).into()) => LAYER, "Who complains.";
        Field::dec("EType", (0, 4), 4) => KIND, "What sort of error.";
        Field::hex("ErrorCode", (1, 0), 8) => CODE, "Which one.";
        Field::dec("HdrCt_M", (2, 0), 1);
        Field::dec("HdrCt_D", (2, 1), 1);
        Field::dec("HdrCt_R", (2, 2), 1);
        Field::dec("Reserved", (2, 3), 13);
    }

    /// The end of each unit: CRC32c over the unit (RFC 5044, 4.4). Where nobody asked for CRCs it's there, but says nothing.
    pub mod crc = "MPA", "CRC", 4 => {
        Field::hex("CRC", (0, 0), 32);
    }
}
