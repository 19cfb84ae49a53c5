//! Open files of the two devices, and how we hear of their end.
//!
//! Behind an open uverbs0 is memory without a name (memfd_create(2)), of which the provider maps its queues: mmap(2) needs no
//! help of ours then. It is a TiB of nothing, it cannot grow, and the program's offset is at its end: so a write that did not
//! come to us fails, and no queue is spoiled. Behind an open rdma_cm is the reading end of a pipe, with a byte in it for each
//! event that waits: poll(2) and epoll(7) need no help then.
//!
//! The program may hand its descriptor on, by dup(2) or fork(2), and nobody tells us when the last one is closed. Of a pipe
//! whose readers are gone poll(2) tells an error. For a memfd a thread waits: each open file of a program shares a lock, for as
//! long as anybody has it, mappings included, and the thread waits to have it alone (flock(2)). inotify(7) would do, too, but its
//! end takes the kernel 16 ms (seen with Linux 6.18), which is longer than most programs run.

use super::poll::{Poll, Ready};
use rustix::fs::{fcntl_add_seals, flock, ftruncate, memfd_create, open, seek, statx};
use rustix::fs::{AtFlags, FlockOperation, MemfdFlags, Mode, OFlags, SealFlags, SeekFrom, StatxFlags};
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use rustix::path::Arg;
use rustix::pipe::{pipe_with, PipeFlags};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;

/// One open of a device. Kept by dup(2), inherited by fork(2); never given twice.
pub type FileId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// /dev/infiniband/uverbs0
    Uverbs,
    /// /dev/infiniband/rdma_cm
    RdmaCm,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Uverbs, Kind::RdmaCm];

    pub fn path(self) -> &'static str {
        match self {
            Kind::Uverbs => "/dev/infiniband/uverbs0",
            Kind::RdmaCm => "/dev/infiniband/rdma_cm",
        }
    }

    /// The numbers of the device: major and minor.
    pub fn numbers(self) -> (u32, u32) {
        match self {
            Kind::Uverbs => (231, 192),
            Kind::RdmaCm => (10, 58),
        }
    }
}

/// Bytes of address space for the queues of one open uverbs0.
const SPACE: u64 = 1 << 40;

#[derive(Debug)]
struct File {
    kind: Kind,
    inode: Inode,
    /// Our own descriptor: the memory, or the writing end of the pipe.
    ours: OwnedFd,
}

#[derive(Debug)]
pub struct Files {
    files: BTreeMap<FileId, File>,
    inodes: HashMap<Inode, FileId>,
    last: FileId,
    /// Here the threads say whose end has come.
    ends: OwnedFd,
    end: Arc<OwnedFd>,
}

impl Files {
    pub(super) fn new(poll: &Poll) -> Result<Files, Errno> {
        let (ends, end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        poll.add(&ends, Ready::Closing)?;
        Ok(Files { files: BTreeMap::new(), inodes: HashMap::new(), last: 0, ends, end: Arc::new(end) })
    }

    /// A new file, which no program has yet.
    pub(super) fn open(&mut self, kind: Kind, poll: &Poll) -> Result<FileId, Errno> {
        let id = self.last.checked_add(1).ok_or(Errno::NFILE)?;
        let ours = match kind {
            Kind::Uverbs => memory()?,
            Kind::RdmaCm => {
                let (_, writing) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                poll.add(&writing, Ready::NoReader(id))?;
                writing
            }
        };
        let inode = inode(&ours, "", AtFlags::EMPTY_PATH)?;
        self.files.insert(id, File { kind, inode, ours });
        self.inodes.insert(inode, id);
        self.last = id;
        Ok(id)
    }

    /// Waits for the end of a file, for which there is a descriptor for a program.
    pub fn watch(&self, id: FileId) -> Result<(), Errno> {
        let Some(memory) = self.pages(id) else { return Ok(()) };
        let (memory, end) = (fcntl_dupfd_cloexec(memory, 0)?, Arc::clone(&self.end));
        let wait = move || {
            while flock(&memory, FlockOperation::LockExclusive) == Err(Errno::INTR) {}
            let _ = rustix::io::write(&*end, &id.to_ne_bytes());
        };
        let thread = thread::Builder::new().name(format!("uverbs {id}")).stack_size(64 << 10);
        thread.spawn(wait).map(drop).map_err(|_| Errno::AGAIN)
    }

    /// One more open file for a program. Of the flags O_NONBLOCK is kept.
    pub fn descriptor(&self, id: FileId, flags: OFlags) -> Result<OwnedFd, Errno> {
        let file = self.files.get(&id).ok_or(Errno::BADF)?;
        let access = if file.kind == Kind::Uverbs { OFlags::RDWR } else { OFlags::RDONLY };
        let kept = flags & OFlags::NONBLOCK;
        let theirs = open(path(&file.ours), access | kept | OFlags::CLOEXEC, Mode::empty())?;
        if file.kind == Kind::Uverbs {
            seek(&theirs, SeekFrom::Start(SPACE))?;
            flock(&theirs, FlockOperation::NonBlockingLockShared)?;
        }
        Ok(theirs)
    }

    /// What it was, if there was one to be closed.
    pub fn close(&mut self, id: FileId) -> Option<Kind> {
        let file = self.files.remove(&id)?;
        self.inodes.remove(&file.inode);
        Some(file.kind)
    }

    /// An uverbs0 that no program has open any more.
    pub fn ended(&self) -> Option<FileId> {
        let mut id = [0; 4];
        rustix::io::read(&self.ends, &mut id).ok().map(|_| FileId::from_ne_bytes(id))
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn with_inode(&self, inode: Inode) -> Option<FileId> {
        self.inodes.get(&inode).copied()
    }

    pub fn kind(&self, id: FileId) -> Option<Kind> {
        self.files.get(&id).map(|file| file.kind)
    }

    /// The memory behind an open uverbs0, of which the provider maps its queues.
    pub fn pages(&self, id: FileId) -> Option<BorrowedFd<'_>> {
        self.files.get(&id).filter(|file| file.kind == Kind::Uverbs).map(|file| file.ours.as_fd())
    }

    /// Makes an open rdma_cm readable, once for each event that waits: puts a byte into the pipe.
    pub fn ring(&self, id: FileId) {
        if let Some(file) = self.files.get(&id).filter(|file| file.kind == Kind::RdmaCm) {
            let _ = rustix::io::write(&file.ours, &[0]);
        }
    }

    /// Takes that back, once for each event that is fetched, or dropped. Had we a reading end all the time, we would not hear of the last close.
    pub fn hush(&self, id: FileId) {
        if self.kind(id) == Some(Kind::RdmaCm) {
            let reading = self.descriptor(id, OFlags::NONBLOCK);
            let _ = reading.and_then(|reading| rustix::io::read(&reading, &mut [0; 1]));
        }
    }
}

fn memory() -> Result<OwnedFd, Errno> {
    let memory = memfd_create("uverbs0", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, SPACE)?;
    fcntl_add_seals(&memory, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(memory)
}

fn path(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// A file, whoever has it open: its device, major and minor, and its number there.
pub(super) type Inode = (u32, u32, u64);

/// The inode at a path. What a program has open may lie on another machine: that is not asked.
pub(super) fn inode(folder: impl AsFd, path: impl Arg, flags: AtFlags) -> Result<Inode, Errno> {
    let stat = statx(folder, path, flags | AtFlags::STATX_DONT_SYNC, StatxFlags::INO)?;
    Ok((stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino))
}
