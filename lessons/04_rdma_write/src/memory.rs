//! The memory that the two sides show each other.

use common::args::Args;
use common::narrate::preview;
use common::{say, stage, Access, Error, MemoryRegion, Metadata, Result, SendWr};

use crate::{Resources, LEN, TEXT};

/// What we'll write. Nobody reads it from outside, but our metadata names its rkey, and a device may give no rkey to a region
/// that no peer may reach.
pub fn register_source(resources: &Resources, args: &Args) -> Result<MemoryRegion> {
    let _stage = stage("register_source");
    let payload: Vec<u8> = match args.number(&LEN) {
        // Not 256, because bytes that land a whole packet (1024) too far would look right then.
        Some(len) => (0..len).map(|i| (i % 251) as u8).collect(),
        None => args.text(&TEXT).into(),
    };
    say!("to be written: {} ({} bytes)", preview(&payload), payload.len());
    let source = resources.pd.reg_mr(payload.len(), Access::REMOTE_READ)?;
    source.write(0, &payload)?;
    Ok(source)
}

/// Memory that the other side may WRITE and READ without asking us.
pub fn register_buffer(resources: &Resources, len: usize) -> Result<MemoryRegion> {
    let _stage = stage("register_buffer");
    // REMOTE_WRITE needs LOCAL_WRITE as well, because in the end it's our own device that writes.
    resources.pd.reg_mr(len, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ)
}

/// The other side may have less room than we need, or none if it refused.
pub fn check_room(source: &MemoryRegion, theirs: &Metadata) -> Result<()> {
    let _stage = stage("check_room");
    if source.len() > theirs.len as usize {
        let what = format!("our {} bytes do not fit into the other side's {}", source.len(), theirs.len);
        return Err(Error::content(what, "Write no more than that, and give both sides the same options"));
    }
    Ok(())
}

/// One-sided: the request names the other side's memory, and the other side's device does the rest. The completion means that
/// the other *device* has taken charge of the bytes. It says nothing about the other *program*.
pub fn write(resources: &Resources, source: &MemoryRegion, theirs: &Metadata) -> Result<u64> {
    let _stage = stage("write");
    resources.qp.post_send(&SendWr::rdma_write(source, 0..source.len(), theirs))
}

/// Called when the other side has said that it's done: nothing else tells us that its WRITE has arrived.
pub fn show_memory(buffer: &MemoryRegion) -> Result<()> {
    let _stage = stage("show_memory");
    let bytes = buffer.read(0..buffer.len())?;
    say!("the memory holds {} bytes: {}", bytes.len(), preview(&bytes));
    Ok(())
}
