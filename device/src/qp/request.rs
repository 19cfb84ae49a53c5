//! Which packet carries PSN *n* of a request (specification, volume 1, 9.4 and 9.7.2).
//!
//! A packet is made from its work request whenever it is to be sent: the first time, and again when it was lost. Nothing of
//! it is kept. A READ that got a part of its answer asks for the rest.

use super::requester::Wqe;
use super::{name, packets, Qp};
use crate::completion::Status;
use crate::outside::Outside;
use crate::packet::{code, opcode_of, AtomicEth, Packet, Reth};
use crate::psn::Psn;
use crate::work::{Local, Work};
use wire::opcode::{Operation, Part};

/// An ACK is asked for at the end of a message, and so often within it, so that the window moves on.
const ASK_EVERY: u32 = 16;

impl Qp {
    /// The packet of `wqe` with this PSN, and the PSN of the packet behind it.
    pub(super) fn packet_with(&self, wqe: &Wqe, psn: Psn, out: &mut Outside) -> Result<(Packet, Psn), Status> {
        let (request, mtu) = (&wqe.request, self.attributes.mtu);
        let index = psn.since(wqe.first) as u32;
        let offset = index * mtu;
        let mut packet = Packet { dest_qp: self.attributes.dest_qp, psn, ack_request: true, ..Packet::default() };
        match request.work {
            Work::Read(remote) => {
                packet.opcode = code::READ_REQUEST;
                let va = remote.address.wrapping_add(offset.into());
                packet.reth = Reth { va, rkey: remote.rkey, length: request.length - offset };
                return Ok((packet, wqe.last.plus(1)));
            }
            Work::CompareSwap { remote, compare, swap } => {
                packet.opcode = code::COMPARE_SWAP;
                packet.atomic = AtomicEth { va: remote.address, rkey: remote.rkey, swap_add: swap, compare };
                return Ok((packet, psn.plus(1)));
            }
            Work::FetchAdd { remote, add } => {
                packet.opcode = code::FETCH_ADD;
                packet.atomic = AtomicEth { va: remote.address, rkey: remote.rkey, swap_add: add, compare: 0 };
                return Ok((packet, psn.plus(1)));
            }
            Work::Write(remote) => {
                packet.reth = Reth { va: remote.address, rkey: remote.rkey, length: request.length };
            }
            Work::Send => {}
        }
        let operation = if request.work == Work::Send { Operation::Send } else { Operation::Write };
        let part = part(index, packets(request.length, mtu));
        let ends = matches!(part, Part::Last | Part::Only);
        packet.opcode = opcode_of(operation, part, ends && request.immediate.is_some());
        packet.immediate = request.immediate.unwrap_or_default();
        // A WRITE without immediate completes nothing at the peer, so it wakes nobody.
        packet.solicited = request.solicited && ends && (operation == Operation::Send || request.immediate.is_some());
        packet.ack_request = ends || index % ASK_EVERY == ASK_EVERY - 1;
        let length = mtu.min(request.length - offset);
        packet.payload = match &request.local {
            Local::Inline(bytes) => bytes[offset as usize..][..length as usize].to_vec(),
            Local::Pieces(pieces) => {
                out.memory.gather(self.settings.domain, pieces, offset, length).map_err(|refusal| {
                    out.say(|| format!("requester: {} not sent: its own memory: {refusal}", name(request.work)));
                    Status::LocProtErr
                })?
            }
        };
        Ok((packet, psn.plus(1)))
    }
}

/// Which part of a message of `count` packets the one at `index` is.
pub(super) fn part(index: u32, count: u32) -> Part {
    match (index, count) {
        (0, 1) => Part::Only,
        (0, _) => Part::First,
        (index, count) if index + 1 == count => Part::Last,
        _ => Part::Middle,
    }
}
