//! The memory that the two sides show each other.

use common::args::Args;
use common::narrate::preview;
use common::{say, stage, Access, Error, MemoryRegion, Metadata, Result, SendWr};

use crate::{Resources, LEN, TEXT};

/// What will be written. REMOTE_READ, so that the rkey that is sent for it is one: the other side could READ here.
pub fn register_source(resources: &Resources, args: &Args) -> Result<MemoryRegion> {
    let _stage = stage("register_source");
    let payload: Vec<u8> = match args.number(&LEN) {
        // 251 is prime: a piece in a wrong place never looks right, as it could with 256.
        Some(len) => (0..len).map(|i| (i % 251) as u8).collect(),
        None => args.text(&TEXT).into(),
    };
    say!("to be written: {} ({} bytes)", preview(&payload), payload.len());
    let source = resources.pd.reg_mr(payload.len(), Access::REMOTE_READ)?;
    source.write(0, &payload)?;
    Ok(source)
}

/// Memory that the other side may WRITE and READ without our doing.
pub fn register_buffer(resources: &Resources, len: usize) -> Result<MemoryRegion> {
    let _stage = stage("register_buffer");
    // REMOTE_WRITE needs LOCAL_WRITE too: in the end it is our device that writes.
    resources.pd.reg_mr(len, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ)
}

/// The other side may have less room than we need, or, if it refused, none.
pub fn check_room(source: &MemoryRegion, theirs: &Metadata) -> Result<()> {
    let _stage = stage("check_room");
    if source.len() > theirs.len as usize {
        let what = format!("our {} bytes do not fit into the other side's {}", source.len(), theirs.len);
        return Err(Error::content(what, "Write less (at most 1 MiB), and give both sides the same options"));
    }
    Ok(())
}

/// One-sided: the request carries the other side's address and rkey, and its device does the rest. The completion means that
/// its device has the bytes; that its *program* knows, it does not mean.
pub fn write(resources: &Resources, source: &MemoryRegion, theirs: &Metadata) -> Result<u64> {
    let _stage = stage("write");
    resources.qp.post_send(&SendWr::rdma_write(source, 0..source.len(), theirs))
}

/// One-sided too: the other side's device answers. Our device writes the bytes into `destination`.
pub fn read(resources: &Resources, destination: &MemoryRegion, theirs: &Metadata) -> Result<u64> {
    let _stage = stage("read");
    let len = destination.len().min(theirs.len as usize);
    resources.qp.post_send(&SendWr::rdma_read(destination, 0..len, theirs))
}

/// The other side's goodbye is how we know that its WRITE is done: nothing else has told this program about it.
pub fn show_memory(buffer: &MemoryRegion) -> Result<()> {
    let _stage = stage("show_memory");
    let bytes = buffer.read(0..buffer.len())?;
    say!("the memory holds {} bytes: {}", bytes.len(), preview(&bytes));
    Ok(())
}
