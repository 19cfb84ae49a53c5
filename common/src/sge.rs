//! `ibv_sge`, the scatter/gather element: one piece of memory in a work request (man 3 ibv_post_send, ibv_post_recv).

use std::ops::Range;

use rdma_sys::{ibv_recv_wr, ibv_sge};
use smallvec::SmallVec;

use crate::error::{Error, Kind, Result};
use crate::info;
use crate::mr::MemoryRegion;

/// A piece of a region: which of its bytes, counted from its start.
pub type Piece<'a> = (&'a MemoryRegion, Range<usize>);

/// The scatter/gather elements of a request. One of them, as most requests have, takes no allocation.
pub(crate) type Sges = SmallVec<[ibv_sge; 1]>;

/// A request for the receive queue. It points to `sges`, which must stay where they are until it is posted.
pub(crate) fn recv_wr(wr_id: u64, sges: &mut [ibv_sge]) -> ibv_recv_wr {
    ibv_recv_wr { wr_id, next: std::ptr::null_mut(), sg_list: sges.as_mut_ptr(), num_sge: sges.len() as i32 }
}

/// The pieces as scatter/gather elements, if each is inside its region.
pub(crate) fn sges(pieces: &[Piece], max_sge: u32) -> Result<Sges> {
    if pieces.len() > max_sge as usize {
        let what = format!("{} pieces in one request, where this queue takes at most {max_sge}", pieces.len());
        return Err(unusable(what, "a larger max_send_sge or max_recv_sge"));
    }
    let sge = |(region, range): &Piece| {
        let range = region.check(range.clone())?;
        // Regions are at most u32::MAX bytes long, so the length fits.
        let (addr, length) = (region.addr() + range.start as u64, range.len() as u32);
        Ok(ibv_sge { addr, length, lkey: region.lkey() })
    };
    pieces.iter().map(sge).collect()
}

/// Logs each piece of a request.
#[track_caller]
pub(crate) fn show_sges(sges: &[ibv_sge]) {
    for sge in sges {
        info!("SGE: addr=0x{:x} len={} lkey=0x{:x}", sge.addr, sge.length, sge.lkey);
    }
}

/// The length of a whole request in bytes.
pub(crate) fn total_len(sges: &[ibv_sge]) -> u64 {
    sges.iter().map(|sge| u64::from(sge.length)).sum()
}

pub(crate) fn unusable(what: String, use_instead: &str) -> Error {
    Error::of(Kind::Misuse, what, format!("Use {use_instead}"))
}
