//! The memory that the two sides show each other.

use common::{stage, Access, Error, MemoryRegion, Metadata, Result};

use crate::{Resources, OWN_LEN};

/// What the client will write in lesson 04. The server only needs its length, but our metadata names an rkey as well, and a
/// device may give no rkey to a region that no peer may reach.
pub fn register_source(resources: &Resources) -> Result<MemoryRegion> {
    let _stage = stage("register_source");
    resources.pd.reg_mr(OWN_LEN, Access::REMOTE_READ)
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
