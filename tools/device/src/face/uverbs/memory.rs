//! Protection domains, memory regions and windows: where keys come from. What a key opens is checked, with each packet that brings one,
//! in [`nic::memory`].

use super::{Answer, Command, Done, Object};
use crate::abi::{AllocMw, AllocMwResp, RegMr, RegMrResp, ReregMr, ReregMrResp};
use crate::machine::Process;
use crate::node::Nic;
use crate::strict::FREED;
use nic::fact::Fact;
use nic::memory::{Access, Region, WindowKind};
use rustix::io::Errno;
use std::sync::Arc;

/// Offsets within a page must be the same in the program and for its peers.
const PAGE: u64 = 4096;

pub fn alloc_pd(nic: &mut Nic, command: &mut Command) -> Answer {
    let handle = nic.pds.insert(command.file, ());
    Ok(Done::with(&handle).made(Object::Pd, handle))
}

/// Refused while something is in the domain.
pub fn dealloc_pd(nic: &mut Nic, command: &mut Command) -> Answer {
    let pd = command.handle();
    nic.pds.get(command.file, pd)?;
    let by_qp = nic.qps.values().any(|entry| entry.qp.settings().pd == pd);
    let by_srq = nic.srqs.values().any(|srq| srq.queue.pd() == pd);
    let by_handle = nic.handles.values().any(|handle| handle.pd == pd);
    if by_qp || by_srq || by_handle || nic.memory.is_used(pd) {
        return Err(Errno::BUSY);
    }
    Ok(Done::default().dooms(Object::Pd, pd))
}

pub fn register(nic: &mut Nic, command: &mut Command) -> Answer {
    let RegMr { start, length, hca_va, pd_handle: pd, access_flags } = command.input();
    nic.pds.get(command.file, pd)?;
    // As the kernel counts: nothing at the beginning of a page is no page.
    let is_nothing = length == 0 && start % PAGE == 0;
    if is_nothing || start % PAGE != hca_va % PAGE {
        return Err(Errno::INVAL);
    }
    // Its last page has an end.
    start.checked_add(length).and_then(|end| end.checked_next_multiple_of(PAGE)).ok_or(Errno::INVAL)?;
    let access = access(access_flags)?;
    command.process.has(start, length)?;
    may_be_written(command.process, start, length, access)?;
    let region = Region { program: Arc::new(command.process.clone()), start, va: hca_va, length, access, pd };
    let variant = nic.random() as u8;
    let key = nic.memory.register(region, variant);
    let handle = nic.regions.insert(command.file, key);
    let lkey = nic.memory.other_key(key);
    Ok(Done::with(&RegMrResp { mr_handle: handle, lkey, rkey: key }).made(Object::Mr, handle))
}

/// Refuses to write where the program itself may not, as the kernel does when it pins the pages: `.rodata`, a file that is mapped to be
/// read. Which rights count as writing is `ib_access_writable` of the kernel.
fn may_be_written(process: &Process, start: u64, length: u64, access: Access) -> Result<(), Errno> {
    const WRITE: u32 = Access::LOCAL_WRITE.0 | Access::REMOTE_WRITE.0 | Access::REMOTE_ATOMIC.0 | Access::MW_BIND.0;
    let is_good = access.0 & WRITE == 0 || process.may_write(start, length);
    is_good.then_some(()).ok_or(Errno::FAULT)
}

/// What REG_MR asks for.
pub fn asks(call: Fact, command: &Command) -> Fact {
    let RegMr { start, length, access_flags, .. } = command.input();
    let call = call.with("addr", format_args!("{start:#x}")).with("len", length);
    call.with("access", Access(access_flags))
}

/// Whether the program has given the memory of a region back before the region: it isn't there any more, or its end is what
/// [`FREED`] writes.
pub fn asks_of_end(call: Fact, nic: &Nic, command: &Command) -> Fact {
    let Ok(key) = nic.regions.get(command.file, command.handle()) else { return call };
    let Some(region) = nic.memory.get(*key) else { return call };
    let mut end = [0; 8];
    let end = &mut end[..region.length.min(8) as usize];
    let is_there = region.program.read(region.start + region.length - end.len() as u64, end);
    let is_written_over = end.len() >= 4 && end.iter().all(|byte| *byte == FREED);
    if is_there && !is_written_over {
        call
    } else {
        call.with("freed", 1)
    }
}

/// The rights, if they go together.
fn access(flags: u32) -> Result<Access, Errno> {
    /// What a device may ignore, by its definition.
    const OPTIONAL: u32 = 0x3ff0_0000;
    const HERE: u32 = 0xf | Access::MW_BIND.0 | Access::FLUSH_GLOBAL.0;
    /// Zero based addresses, huge pages, memory that outlives a power cut: rdma_rxe refuses them since Linux 6.5. Paging on
    /// demand, and what nobody knows, any kernel does, with another errno.
    const ELSEWHERE: u32 = Access::ZERO_BASED.0 | 0x80 | 0x200;
    let granted = Access(flags & !OPTIONAL);
    let comes_to_write = granted.0 & (Access::REMOTE_WRITE.0 | Access::REMOTE_ATOMIC.0) != 0;
    if granted.0 & !(HERE | ELSEWHERE) != 0 || (comes_to_write && !granted.allow(Access::LOCAL_WRITE)) {
        return Err(Errno::INVAL);
    }
    (granted.0 & ELSEWHERE == 0).then_some(granted).ok_or(Errno::OPNOTSUPP)
}

/// Other memory, another domain, or other rights behind the same key.
pub fn register_again(nic: &mut Nic, command: &mut Command) -> Answer {
    const TRANSLATION: u32 = 1;
    const PD: u32 = 2;
    const ACCESS: u32 = 4;
    let input: ReregMr = command.input();
    let key = *nic.regions.get(command.file, input.mr_handle)?;
    let mut region = nic.memory.get(key).ok_or(Errno::INVAL)?.clone();
    if input.flags == 0 || input.flags & !(TRANSLATION | PD | ACCESS) != 0 {
        return Err(Errno::INVAL);
    }
    // As rdma_rxe of Linux 6.12: what is registered stays where it is.
    if input.flags & TRANSLATION != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if input.flags & PD != 0 {
        nic.pds.get(command.file, input.pd_handle)?;
        region.pd = input.pd_handle;
    }
    if input.flags & ACCESS != 0 {
        region.access = access(input.access_flags)?;
        may_be_written(command.process, region.start, region.length, region.access)?;
    }
    nic.memory.replace(key, region);
    Ok(Done::with(&ReregMrResp { lkey: nic.memory.other_key(key), rkey: key }))
}

/// Refused while a window lies on the region.
pub fn deregister(nic: &mut Nic, command: &mut Command) -> Answer {
    let handle = command.handle();
    let key = *nic.regions.get(command.file, handle)?;
    if nic.memory.bears_window(key) {
        return Err(Errno::INVAL);
    }
    Ok(Done::default().dooms(Object::Mr, handle))
}

pub fn allocate_window(nic: &mut Nic, command: &mut Command) -> Answer {
    let AllocMw { pd_handle: pd, mw_type, .. } = command.input();
    nic.pds.get(command.file, pd)?;
    let kind = match mw_type {
        1 => WindowKind::One,
        2 => WindowKind::Two,
        _ => return Err(Errno::INVAL),
    };
    let variant = nic.random() as u8;
    let rkey = nic.memory.allocate_window(kind, pd, variant);
    let handle = nic.windows.insert(command.file, rkey);
    Ok(Done::with(&AllocMwResp { mw_handle: handle, rkey }).made(Object::Mw, handle))
}
