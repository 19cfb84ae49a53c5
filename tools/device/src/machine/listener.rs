//! The other end of the filter: calls that wait, and the four answers to one: a result, the kernel's own, a descriptor, none
//! yet (seccomp_unotify(2)).

use super::kernel;
use libc::{seccomp_notif_addfd, seccomp_notif_resp};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct Listener(pub Arc<OwnedFd>);

/// One trapped system call. The kernel knows it by its number, until it is answered or its caller gone.
#[derive(Clone, Debug)]
pub struct Call {
    listener: Listener,
    id: u64,
    /// Who waits, as gettid(2) names it.
    pub thread: u32,
    /// One of `libc::SYS_…`.
    pub number: libc::c_long,
    pub arguments: [u64; 6],
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Listener {
    /// The next call. To be asked only if there is one; None if its caller was killed meanwhile.
    pub fn receive(&self) -> Option<Call> {
        let got = kernel::receive(self.as_fd()).ok()?;
        let (number, arguments) = (got.data.nr.into(), got.data.args);
        Some(Call { listener: self.clone(), id: got.id, thread: got.pid, number, arguments })
    }

    /// Whether the kernel can give descriptors: then it knows no call with this number.
    pub fn can_give(&self) -> bool {
        let nobody = Call { listener: self.clone(), id: 0, thread: 0, number: 0, arguments: [0; 6] };
        nobody.give(self, true) == Err(Errno::NOENT)
    }
}

impl Call {
    /// Answers it with a result or an errno. False: its caller did not hear it. It was killed; or, before Linux 5.19, a signal has
    /// taken it out of the call, and it may ask again: what the call has made must be undone.
    pub fn answer(&self, result: Result<i64, Errno>) -> bool {
        let (val, error) = result.map_or_else(|errno| (0, -errno.raw_os_error()), |value| (value, 0));
        kernel::send(self.listener.as_fd(), seccomp_notif_resp { id: self.id, val, error, flags: 0 }).is_ok()
    }

    /// Lets the kernel do it, as if there was no filter.
    pub fn pass(&self) {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let _ = kernel::send(self.listener.as_fd(), seccomp_notif_resp { id: self.id, val: 0, error: 0, flags });
    }

    /// Gives the caller a descriptor, with the first free number. What the call answers comes later.
    ///
    /// # Errors
    /// `EMFILE`: the caller may have no more. `ENOENT`: it is gone.
    pub fn give(&self, what: impl AsFd, cloexec: bool) -> Result<RawFd, Errno> {
        self.add(what.as_fd(), None, cloexec, 0)
    }

    /// The same with this number, which is free.
    ///
    /// # Errors
    /// As above, and `EBADF`: the number is above the caller's limit.
    pub fn give_at(&self, what: impl AsFd, number: RawFd) -> Result<RawFd, Errno> {
        self.add(what.as_fd(), Some(number), true, 0)
    }

    /// Gives the caller a descriptor, with this number or the first free one, and answers the call with it: since Linux 5.14 both
    /// or none.
    ///
    /// # Errors
    /// As above, and `EBADF`: the number is above the caller's limit.
    pub fn open(&self, what: impl AsFd, at: Option<RawFd>, cloexec: bool) -> Result<RawFd, Errno> {
        match self.add(what.as_fd(), at, cloexec, libc::SECCOMP_ADDFD_FLAG_SEND as u32) {
            Err(Errno::INVAL) => {
                let number = self.add(what.as_fd(), at, cloexec, 0)?;
                self.answer(Ok(number.into()));
                Ok(number)
            }
            opened => opened,
        }
    }

    fn add(&self, what: BorrowedFd<'_>, at: Option<RawFd>, cloexec: bool, flags: u32) -> Result<RawFd, Errno> {
        let flags = flags | at.map_or(0, |_| libc::SECCOMP_ADDFD_FLAG_SETFD as u32);
        let newfd_flags = if cloexec { OFlags::CLOEXEC.bits() } else { 0 };
        let (srcfd, newfd) = (what.as_raw_fd() as u32, at.unwrap_or(0) as u32);
        kernel::add(self.listener.as_fd(), seccomp_notif_addfd { id: self.id, flags, srcfd, newfd, newfd_flags })
    }

    /// Whether its caller is gone. To be asked before it is answered.
    pub fn is_gone(&self) -> bool {
        !kernel::is_valid(self.listener.as_fd(), self.id)
    }

    /// Whether its caller waits for it no more: it is gone, or a signal wants to interrupt it. To be looked at from time to time
    /// while an answer is kept back: since Linux 5.19 the kernel leaves the caller to us. One with a signal is answered
    /// ERESTARTSYS, of which the kernel makes EINTR, or the same call again (signal(7)).
    pub fn is_over(&self) -> bool {
        const ERESTARTSYS: i32 = 512;
        if self.is_gone() {
            return true;
        }
        let is_interrupted = self.is_interrupted();
        if is_interrupted {
            self.answer(Err(Errno::from_raw_os_error(ERESTARTSYS)));
        }
        is_interrupted
    }
}
