//! The Base Transport Header, with which every RoCEv2 packet begins (InfiniBand Architecture Specification volume 1, 9.2).

use crate::field::{headers, only, Field};
use crate::opcode;
pub use fields::*;

headers! {
    /// Base Transport Header: stands at the start of every RoCEv2 packet (9.2).
    pub mod fields = "BTH", "Base Transport Header", 12 => {
        Field::hex("OpCode", (0, 0), 8).means(|v| opcode::lookup(v as u8).name.into())
            => OPCODE, "Which operation, and which part of a message, this packet is.";
        Field::dec("SE", (1, 0), 1).means(|v| only(v, 1, "solicited event: wake the receiver"))
            => SE, "The receiver's completion raises an event even if it only asked for solicited ones.";
        Field::dec("MigReq", (1, 1), 1);
        Field::dec("PadCnt", (1, 2), 2).means(|v| only(v.min(1), 1, &format!("{v} zero bytes follow the payload")))
            => PAD_CNT, "Bytes of padding after the payload, to a multiple of four.";
        Field::dec("TVer", (1, 4), 4) => T_VER, "The version of the transport: 0.";
        Field::hex("P_Key", (2, 0), 16).means(|v| only(v, 0xffff, "default partition, full member"))
            => P_KEY, "The partition that both ends belong to.";
        Field::dec("FECN", (4, 0), 1).means(|v| only(v, 1, "congestion met on the way"));
        Field::dec("BECN", (4, 1), 1).means(|v| only(v, 1, "slow down: your packets met congestion"))
            => BECN, "In a CNP: what you sent to me met congestion.";
        Field::dec("reserved", (4, 2), 6);
        Field::hex("DestQP", (5, 0), 24).means(|v| only(v, 1, "the general services QP: connection management"))
            => DEST_QP, "The queue pair, at the receiver, this packet is for.";
        Field::dec("AckReq", (8, 0), 1).means(|v| only(v, 1, "acknowledge this (RC only)"))
            => ACK_REQ, "The sender wants an acknowledgement. Only RC gives any; Linux asks in its management datagrams, too.";
        Field::dec("reserved", (8, 1), 7);
        Field::dec("PSN", (9, 0), 24) => PSN, "Packet sequence number, modulo 2^24.";
    }
}
