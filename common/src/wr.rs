//! `ibv_send_wr` and `ibv_recv_wr`, the work requests: what the device should do (man 3 ibv_post_send, ibv_post_recv).
//!
//! A request of the send queue is an operation, the bytes it moves, and flags. The bytes are pieces of registered regions,
//! one scatter/gather element (SGE) each; or they are *inline*: copied into the request itself by the post.

use std::ops::Range;
use std::rc::Rc;

use rdma_sys::*;

use crate::ah::{self, Destination};
use crate::context::Context;
use crate::error::Result;
use crate::ledger::Memory;
use crate::metadata::Metadata;
use crate::mr::MemoryRegion;
use crate::qp_init::QpType;
use crate::sge::{sges, unusable, Piece, Sges};

/// What a request of the send queue does. Immediate data are 32 bits for the peer's program, here in this machine's byte order,
/// on the wire big-endian. So are the numbers of atomics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `IBV_WR_SEND`: the bytes go into the buffer of the peer's next receive, which completes.
    Send,
    /// `IBV_WR_SEND_WITH_IMM`: the same, with immediate data in the peer's completion.
    SendImm(u32),
    /// `IBV_WR_RDMA_WRITE`: the bytes go to the start of the peer's buffer. The peer's program doesn't notice.
    Write(Metadata),
    /// `IBV_WR_RDMA_WRITE_WITH_IMM`: the same, and the peer's next receive completes with the immediate data.
    WriteImm(Metadata, u32),
    /// `IBV_WR_RDMA_READ`: the bytes come from the start of the peer's buffer. The peer's program doesn't notice.
    Read(Metadata),
    /// `IBV_WR_ATOMIC_FETCH_AND_ADD`: adds to the 8 bytes at the start of the peer's buffer, which must be aligned. The
    /// old value comes back, into 8 bytes of ours.
    FetchAdd(Metadata, u64),
    /// `IBV_WR_ATOMIC_CMP_AND_SWP`: if those 8 bytes are `compare`, they become `swap`. The old value comes back.
    CompareSwap {
        /// Whose first 8 bytes.
        at: Metadata,
        /// What must be there.
        compare: u64,
        /// What replaces it.
        swap: u64,
    },
}

/// The bytes of a request.
enum Bytes<'a> {
    /// The most common case, without an allocation.
    Piece(Piece<'a>),
    Pieces(Vec<Piece<'a>>),
    Inline(&'a [u8]),
}

/// A request for the send queue. It's signaled, which means it yields a completion, unless you make it unsignaled.
pub struct SendWr<'a> {
    operation: Operation,
    bytes: Bytes<'a>,
    flags: u32,
    to: Option<&'a Destination>,
}

impl<'a> SendWr<'a> {
    /// Any operation, with any number of pieces, one after the other: to be sent from there, or (READ, atomics) to be
    /// written there.
    pub fn new(operation: Operation, pieces: &[Piece<'a>]) -> Self {
        let bytes = match pieces {
            [piece] => Bytes::Piece(piece.clone()),
            pieces => Bytes::Pieces(pieces.to_vec()),
        };
        Self { operation, bytes, flags: ibv_send_flags::IBV_SEND_SIGNALED.0, to: None }
    }

    /// `IBV_SEND_INLINE`: the post copies the bytes, which need no region. For SEND and WRITE; `max_inline_data` at most.
    pub fn inline(operation: Operation, bytes: &'a [u8]) -> Self {
        let flags = ibv_send_flags::IBV_SEND_SIGNALED.0 | ibv_send_flags::IBV_SEND_INLINE.0;
        Self { operation, bytes: Bytes::Inline(bytes), flags, to: None }
    }

    /// [`Operation::Send`] of one piece.
    pub fn send(region: &'a MemoryRegion, range: Range<usize>) -> Self {
        Self::new(Operation::Send, &[(region, range)])
    }

    /// [`Operation::Write`] of one piece.
    pub fn rdma_write(region: &'a MemoryRegion, range: Range<usize>, to: &Metadata) -> Self {
        Self::new(Operation::Write(*to), &[(region, range)])
    }

    /// [`Operation::Read`] into one piece.
    pub fn rdma_read(region: &'a MemoryRegion, range: Range<usize>, from: &Metadata) -> Self {
        Self::new(Operation::Read(*from), &[(region, range)])
    }

    /// Without `IBV_SEND_SIGNALED`: success yields no completion. A later signaled request's completion says that this
    /// one is also done; until one comes, the request keeps its place in the queue.
    pub fn unsignaled(mut self) -> Self {
        self.flags &= !ibv_send_flags::IBV_SEND_SIGNALED.0;
        self
    }

    /// `IBV_SEND_FENCE`: not before all READs and atomics that were posted earlier are done.
    pub fn fenced(mut self) -> Self {
        self.flags |= ibv_send_flags::IBV_SEND_FENCE.0;
        self
    }

    /// `IBV_SEND_SOLICITED`: wakes a peer that waits only for such (`CompletionQueue::req_notify_solicited`).
    pub fn solicited(mut self) -> Self {
        self.flags |= ibv_send_flags::IBV_SEND_SOLICITED.0;
        self
    }

    /// The destination, which a request of a QP for datagrams must name, and no other can.
    pub fn to(mut self, to: &'a Destination) -> Self {
        self.to = Some(to);
        self
    }

    /// A QP for datagrams needs to know where to, and cannot do anything but SEND. A driver that is given another request takes
    /// its fields for what they are not.
    pub(crate) fn fits(&self, qp_type: QpType, context: &Context) -> Result<()> {
        match (qp_type, self.to) {
            (QpType::Ud, _) if self.remote().is_some() => {
                Err(unusable(format!("{} on a UD QP", self.name()), "a SEND"))
            }
            (QpType::Ud, None) => Err(unusable("a datagram without a destination".into(), "SendWr::to")),
            (QpType::Ud, Some(to)) if to.ah.context().raw() != context.raw() => {
                Err(unusable("an address handle of another device".into(), "one of the QP's device"))
            }
            (QpType::Rc | QpType::Uc, Some(_)) => {
                Err(unusable("a destination on a connected QP".into(), "a request without one"))
            }
            _ => Ok(()),
        }
    }

    /// The opcode's C name without its prefix.
    pub(crate) fn name(&self) -> &'static str {
        match self.operation {
            Operation::Send => "SEND",
            Operation::SendImm(_) => "SEND_WITH_IMM",
            Operation::Write(_) => "RDMA_WRITE",
            Operation::WriteImm(..) => "RDMA_WRITE_WITH_IMM",
            Operation::Read(_) => "RDMA_READ",
            Operation::FetchAdd(..) => "ATOMIC_FETCH_AND_ADD",
            Operation::CompareSwap { .. } => "ATOMIC_CMP_AND_SWP",
        }
    }

    pub(crate) fn is_signaled(&self) -> bool {
        self.flags & ibv_send_flags::IBV_SEND_SIGNALED.0 != 0
    }

    /// The regions that must stay until the request is done: none if the bytes are inline.
    pub(crate) fn memory(&self) -> Memory {
        self.pieces().iter().map(|(region, _)| region.keep()).collect()
    }

    /// The address handle, which must stay as long.
    pub(crate) fn handle(&self) -> Option<Rc<ah::Inner>> {
        self.to.map(|to| to.ah.keep())
    }

    fn pieces(&self) -> &[Piece<'a>] {
        match &self.bytes {
            Bytes::Piece(piece) => std::slice::from_ref(piece),
            Bytes::Pieces(pieces) => pieces,
            Bytes::Inline(_) => &[],
        }
    }

    /// The scatter/gather elements, if each is inside its region and the operation can use them.
    pub(crate) fn sges(&self, max_sge: u32, max_inline: u32) -> Result<Sges> {
        let returns = matches!(self.operation, Operation::FetchAdd(..) | Operation::CompareSwap { .. });
        match &self.bytes {
            Bytes::Inline(_) if returns || matches!(self.operation, Operation::Read(_)) => {
                Err(unusable(format!("{} brings bytes back: they need a region", self.name()), "SendWr::new"))
            }
            Bytes::Inline(bytes) if bytes.len() > max_inline as usize => {
                let what = format!("{} bytes inline, where this QP takes at most {max_inline}", bytes.len());
                Err(unusable(what, "a larger QpCap::max_inline_data"))
            }
            // The post copies the bytes: no lkey is needed.
            Bytes::Inline(bytes) => {
                let sge = ibv_sge { addr: bytes.as_ptr() as u64, length: bytes.len() as u32, lkey: 0 };
                Ok(Sges::from_iter([sge]))
            }
            _ if returns && self.pieces().iter().map(|(_, range)| range.len()).sum::<usize>() != 8 => {
                Err(unusable(format!("{} brings back 8 bytes", self.name()), "a piece of 8 bytes"))
            }
            _ => sges(self.pieces(), max_sge),
        }
    }

    /// As in `wr_id=1 opcode=RDMA_WRITE signaled=1 num_sge=1 remote_addr=0x… rkey=0x…`.
    pub(crate) fn dump(&self, wr_id: u64, num_sge: usize) -> String {
        let remote = match self.remote() {
            Some(at) => format!(" remote_addr=0x{:x} rkey=0x{:x}", at.addr, at.rkey),
            None => String::new(),
        };
        let to = self.to.map(|to| format!(" remote_qpn={} remote_qkey=0x{:x}", to.qp_num, to.qkey)).unwrap_or_default();
        let imm = self.imm_data().map(|imm| format!(" imm_data=0x{imm:x}")).unwrap_or_default();
        let signaled = u8::from(self.is_signaled());
        format!("wr_id={wr_id} opcode={} signaled={signaled} num_sge={num_sge}{remote}{to}{imm}", self.name())
    }

    fn remote(&self) -> Option<Metadata> {
        match self.operation {
            Operation::Send | Operation::SendImm(_) => None,
            Operation::Write(at) | Operation::WriteImm(at, _) | Operation::Read(at) => Some(at),
            Operation::FetchAdd(at, _) | Operation::CompareSwap { at, .. } => Some(at),
        }
    }

    fn imm_data(&self) -> Option<u32> {
        match self.operation {
            Operation::SendImm(imm) | Operation::WriteImm(_, imm) => Some(imm),
            _ => None,
        }
    }

    /// The C struct. It points to `sges`, which must stay where they are until it is posted.
    pub(crate) fn to_c(&self, wr_id: u64, sges: &mut [ibv_sge]) -> ibv_send_wr {
        // SAFETY: ibv_send_wr is plain data, for which zero is a value: no next request, no immediate data.
        let mut wr: ibv_send_wr = unsafe { std::mem::zeroed() };
        wr.wr_id = wr_id;
        wr.sg_list = sges.as_mut_ptr();
        wr.num_sge = sges.len() as i32;
        wr.send_flags = self.flags;
        if let Some(imm) = self.imm_data() {
            wr.imm_data_invalidated_rkey_union.imm_data = imm.to_be();
        }
        let rdma = |at: Metadata| wr_t { rdma: rdma_t { remote_addr: at.addr, rkey: at.rkey } };
        let atomic = |at: Metadata, compare_add, swap| wr_t {
            atomic: atomic_t { remote_addr: at.addr, compare_add, swap, rkey: at.rkey },
        };
        match self.operation {
            Operation::Send => wr.opcode = ibv_wr_opcode::IBV_WR_SEND,
            Operation::SendImm(_) => wr.opcode = ibv_wr_opcode::IBV_WR_SEND_WITH_IMM,
            Operation::Write(at) => (wr.opcode, wr.wr) = (ibv_wr_opcode::IBV_WR_RDMA_WRITE, rdma(at)),
            Operation::WriteImm(at, _) => (wr.opcode, wr.wr) = (ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM, rdma(at)),
            Operation::Read(at) => (wr.opcode, wr.wr) = (ibv_wr_opcode::IBV_WR_RDMA_READ, rdma(at)),
            Operation::FetchAdd(at, add) => {
                (wr.opcode, wr.wr) = (ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD, atomic(at, add, 0));
            }
            Operation::CompareSwap { at, compare, swap } => {
                (wr.opcode, wr.wr) = (ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP, atomic(at, compare, swap));
            }
        }
        if let Some(Destination { ah, qp_num, qkey }) = self.to {
            wr.wr = wr_t { ud: ud_t { ah: ah.raw(), remote_qpn: *qp_num, remote_qkey: *qkey } };
        }
        wr
    }
}
