//! Which packet carries PSN *n* of a request (specification, volume 1, 9.4 and 9.7).
//!
//! A packet is made from its work request whenever it's to be sent, for the first time or again. None is kept. A READ that got
//! part of its response asks for the rest.

use super::requester::Wqe;
use super::{packets, View};
use crate::completion::Status;
use crate::fact::Fact;
use crate::outside::Ctx;
use crate::packet::{code, opcode_of, AtomicEth, Deth, Packet, Reth};
use crate::psn::Psn;
use crate::work::{Local, Remote, SendRequest, Work};
use roce::headers::{ieth, imm_dt};
use roce::opcode::{Operation, Part};

/// An ACK is asked for at the end of a message, and once in this many packets before that, so that the window moves on.
const ASK_EVERY: u32 = 16;

/// The packet of `wqe` with this PSN, and the PSN of the packet after it.
///
/// # Errors
/// The status with which the request fails, because its own memory is out of reach.
pub(super) fn segment(wqe: &Wqe, psn: Psn, qp: &View, ctx: &mut Ctx) -> Result<(Packet, Psn), Status> {
    let request = &wqe.request;
    let index = psn.since(wqe.first) as u32;
    // Only a reliable service has ACKs to ask for.
    let ack_request = qp.service.is_reliable();
    let empty = Packet { dest_qp: qp.attributes.dest_qp, psn, ack_request, ..Packet::default() };
    let packet = match request.work {
        Work::Unknown => return Err(Status::LocQpOpErr),
        Work::Read(remote) => {
            let offset = index * qp.attributes.mtu;
            let va = remote.address.wrapping_add(offset.into());
            let reth = Reth { va, rkey: remote.rkey, length: request.length - offset };
            // Its responses use up all the PSNs to the request's last one.
            return Ok((Packet { opcode: code::READ_REQUEST, reth, ..empty }, wqe.last.plus(1)));
        }
        Work::CompareSwap { remote, compare, swap } => {
            let atomic = AtomicEth { va: remote.address, rkey: remote.rkey, swap_add: swap, compare };
            Packet { opcode: code::COMPARE_SWAP, atomic, ..empty }
        }
        Work::FetchAdd { remote, add } => {
            let atomic = AtomicEth { va: remote.address, rkey: remote.rkey, swap_add: add, compare: 0 };
            Packet { opcode: code::FETCH_ADD, atomic, ..empty }
        }
        Work::Write(remote) => {
            let reth = Reth { va: remote.address, rkey: remote.rkey, length: request.length };
            part_of_message(request, Operation::Write, index, Packet { reth, ..empty }, qp, ctx)?
        }
        Work::Datagram(to) => {
            let qkey = if to.qkey >> 31 == 1 { qp.attributes.qkey } else { to.qkey };
            let deth = Deth { qkey, src_qp: qp.number };
            part_of_message(
                request,
                Operation::Send,
                index,
                Packet { class: to.class, dest_qp: to.qp, deth, ..empty },
                qp,
                ctx,
            )?
        }
        Work::Send | Work::SendInvalidate(_) => part_of_message(request, Operation::Send, index, empty, qp, ctx)?,
        Work::AtomicWrite(Remote { address, rkey }) => {
            let reth = Reth { va: address, rkey, length: request.length };
            Packet { opcode: code::ATOMIC_WRITE, reth, payload: payload(request, 0, qp, ctx)?, ..empty }
        }
        Work::Flush { remote: Remote { address, rkey }, feth } => {
            let reth = Reth { va: address, rkey, length: request.length };
            Packet { opcode: code::FLUSH, reth, feth, ..empty }
        }
        // It needs no packet, so nobody asks for one.
        Work::Bind(_) | Work::LocalInvalidate(_) => return Err(Status::LocQpOpErr),
    };
    Ok((packet, psn.plus(1)))
}

/// The packet at `index` of a SEND or WRITE.
fn part_of_message(
    request: &SendRequest,
    operation: Operation,
    index: u32,
    empty: Packet,
    qp: &View,
    ctx: &mut Ctx,
) -> Result<Packet, Status> {
    let part = part(index, packets(request.length, qp.attributes.mtu));
    let ends = matches!(part, Part::Last | Part::Only);
    let (immediate, invalidate) = match request.work {
        Work::SendInvalidate(key) => (None, Some(key)),
        _ => (request.immediate, None),
    };
    let extra = immediate.map(|_| &imm_dt::HEADER).or(invalidate.map(|_| &ieth::HEADER)).filter(|_| ends);
    let payload = payload(request, index, qp, ctx)?;
    Ok(Packet {
        opcode: opcode_of(qp.service, operation, part, extra),
        immediate: immediate.unwrap_or_default(),
        invalidate: invalidate.unwrap_or_default(),
        // A WRITE without an immediate completes nothing at the peer, so it wakes nobody.
        solicited: request.solicited && ends && (operation == Operation::Send || extra.is_some()),
        ack_request: empty.ack_request && (ends || index % ASK_EVERY == ASK_EVERY - 1),
        payload,
        ..empty
    })
}

/// The bytes of the packet at `index`.
fn payload(request: &SendRequest, index: u32, qp: &View, ctx: &mut Ctx) -> Result<Vec<u8>, Status> {
    let offset = index * qp.attributes.mtu;
    let length = qp.attributes.mtu.min(request.length - offset);
    let bytes = match &request.local {
        Local::Inline(bytes) => return Ok(bytes[offset as usize..][..length as usize].to_vec()),
        Local::SgList(sge) => ctx.memory.gather(qp.pd, sge, offset, length),
    };
    bytes.map_err(|refusal| {
        ctx.say(|| Fact::new("unsent").with("work", request.work).refused(&refusal));
        Status::LocProtErr
    })
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
