//! The RoCEv2 headers, field by field (InfiniBand Architecture Specification volume 1, chapter 9).
//!
//! `(byte, bit)` is where a field begins; then comes its width in bits. Everything is big-endian.

use crate::aeth::Syndrome;
use crate::field::{headers, only, Field};

headers! {
    /// RDMA Extended Transport Header: where in the peer's memory (9.3.3).
    pub mod reth = "RETH", "RDMA Extended Transport Header", 16 => {
        Field::hex("VirtualAddress", (0, 0), 64) => VA, "Address in the responder's address space.";
        Field::hex("R_Key", (8, 0), 32) => R_KEY, "The responder's permission slip for that memory.";
        Field::dec("DMALength", (12, 0), 32).means(|_| "bytes of the whole message".into())
            => DMA_LENGTH, "Bytes of the whole message, not of this packet.";
    }

    /// Atomic Extended Transport Header (9.3).
    pub mod atomic_eth = "AtomicETH", "Atomic Extended Transport Header", 28 => {
        Field::hex("VirtualAddress", (0, 0), 64) => VA, "Address of eight bytes at the responder; a multiple of eight.";
        Field::hex("R_Key", (8, 0), 32) => R_KEY, "The responder's permission slip for that memory.";
        Field::hex("SwapAddData", (12, 0), 64)
            => SWAP_ADD, "The number to add, or to put there if the comparison holds.";
        Field::hex("CompareData", (20, 0), 64) => COMPARE, "The number to compare with; unused by FetchAdd.";
    }

    /// ACK Extended Transport Header (9.3).
    pub mod aeth = "AETH", "ACK Extended Transport Header", 4 => {
        Field::hex("Syndrome", (0, 0), 8).means(|v| Syndrome::from(v as u8).to_string())
            => SYNDROME, "Accepted, not ready, or refused and why.";
        Field::dec("MSN", (1, 0), 24).means(|v| format!("{v} messages completed"))
            => MSN, "Messages the responder has completed, modulo 2^24.";
    }

    /// Atomic ACK Extended Transport Header (9.3).
    pub mod atomic_ack_eth = "AtomicAckETH", "Atomic ACK Extended Transport Header", 8 => {
        Field::hex("OriginalRemoteData", (0, 0), 64)
            => ORIGINAL, "What stood in the responder's memory before the operation.";
    }

    /// Immediate data (9.3): four bytes that land in the receiver's completion.
    pub mod imm_dt = "ImmDt", "Immediate Data", 4 => {
        Field::hex("ImmediateData", (0, 0), 32) => DATA, "The four bytes.";
    }

    /// Invalidate Extended Transport Header (9.3).
    pub mod ieth = "IETH", "Invalidate Extended Transport Header", 4 => {
        Field::hex("R_Key", (0, 0), 32) => R_KEY, "The receiver's key that becomes invalid.";
    }

    /// Datagram Extended Transport Header (9.3): UD has no connection, so each packet names its sender.
    pub mod deth = "DETH", "Datagram Extended Transport Header", 8 => {
        Field::hex("Q_Key", (0, 0), 32).means(|v| only(v, 0x8001_0000, "the well-known key of QP 1"))
            => Q_KEY, "The key of the receiving queue pair.";
        Field::dec("reserved", (4, 0), 8);
        Field::hex("SrcQP", (5, 0), 24) => SRC_QP, "The queue pair that sent this datagram.";
    }

    /// XRC Extended Transport Header (annex A14): for which shared receive queue a request is.
    pub mod xrc_eth = "XRCETH", "XRC Extended Transport Header", 4 => {
        Field::dec("reserved", (0, 0), 8);
        Field::hex("XRCSRQ", (1, 0), 24);
    }

    /// FLUSH Extended Transport Header (annex A19).
    pub mod feth = "FETH", "FLUSH Extended Transport Header", 4 => {
        Field::hex("reserved", (0, 0), 26);
        Field::dec("SelectivityLevel", (3, 2), 2) => SELECTIVITY, "A range, the whole region, or all.";
        Field::hex("PlacementType", (3, 4), 4) => PLACEMENT, "Visible to others, persistent, or both.";
    }

    /// What follows the BTH of a congestion notification packet (annex A17.9.3): nothing but zeroes.
    pub mod cnp = "CNP", "Congestion Notification Packet", 16 => {
        Field::bytes("reserved", 0, 16);
    }
}
