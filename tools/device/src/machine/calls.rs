//! The trapped calls: what each is answered. All but a write to one of our devices is answered here; what is not ours the
//! kernel does, as if we were not there.

use super::file::Inode;
use super::filter::{on_path, OnPath, MMAP_DESCRIPTOR, NONE, RESERVED};
use super::kernel;
use super::process::{self, Asker, Process};
use super::sysfs::Destination;
use super::{Asked, Call, FileId, Kind, Machine};
use rustix::fs::{open, readlinkat, statat, Access, AtFlags, Mode, OFlags, StatxFlags, CWD};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// What becomes of a call, if no errno does.
enum Answer {
    /// The kernel does it.
    Pass,
    Value(i64),
    /// It has been answered, with a descriptor.
    Given,
    /// The device must know; it answers a write.
    Asked(Asked),
}

impl Machine {
    /// Answers a call, or says what it asks of the device.
    pub(super) fn serve(&mut self, call: Call) -> Option<Asked> {
        let answer = self.answer(&call);
        let is_strict = self.alone.is_some();
        if is_strict && !matches!(&answer, Ok(Answer::Asked(Asked::Sleeps { time, .. })) if !time.is_zero()) {
            *self.calls.entry(call.thread).or_default() += 1;
        }
        match answer {
            Ok(Answer::Asked(asked)) => return Some(asked),
            Ok(Answer::Pass) => call.pass(),
            Ok(Answer::Given) => {}
            Ok(Answer::Value(value)) => drop(call.answer(Ok(value))),
            Err(errno) => drop(call.answer(Err(errno))),
        }
        None
    }

    fn answer(&mut self, call: &Call) -> Result<Answer, Errno> {
        let [_, second, third, ..] = call.arguments;
        match call.number {
            libc::SYS_write => {
                let Some((file, process)) = self.ours(call) else {
                    self.told.extend((call.arguments[0] as u32 >= NONE).then_some(Asked::WrittenNowhere));
                    return Ok(Answer::Pass);
                };
                let kind = self.files.kind(file).ok_or(Errno::BADF)?;
                let asker = Asker { file, process, address: second, length: third as usize };
                Ok(Answer::Asked(Asked::Written { call: call.clone(), kind, asker }))
            }
            libc::SYS_fstat => match self.opened(call) {
                Some(place) => stat(call, &place, second, AtFlags::empty()).map(Answer::Value),
                None => Ok(Answer::Pass),
            },
            libc::SYS_close => {
                let closes = match self.ours(call) {
                    Some((file, _)) => Some(Asked::Closes { file }),
                    None => self.inode(call).map(|(_, _, inode)| Asked::ClosesOther { inode }),
                };
                self.told.extend(closes);
                Ok(Answer::Pass)
            }
            libc::SYS_mmap => self.map(call),
            libc::SYS_dup => self.duplicate(call, 0, false),
            // The kernel refuses a copy with such a number.
            libc::SYS_fcntl if third as u32 >= NONE => Ok(Answer::Pass),
            libc::SYS_fcntl => match second as i32 {
                libc::F_DUPFD => self.duplicate(call, third as RawFd, false),
                libc::F_DUPFD_CLOEXEC => self.duplicate(call, third as RawFd, true),
                _ => Ok(Answer::Pass),
            },
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => {
                Ok(sleep(call)?.map_or(Answer::Pass, |time| Answer::Asked(Asked::Sleeps { call: call.clone(), time })))
            }
            number if timeout(number).is_some() => {
                Ok(patience(call)?
                    .map_or(Answer::Pass, |time| Answer::Asked(Asked::Sleeps { call: call.clone(), time })))
            }
            // libibverbs and librdmacm then look into sysfs.
            libc::SYS_socket => Err(Errno::PROTONOSUPPORT),
            number => match on_path(number) {
                Some((asked, at)) => self.path(call, asked, at),
                None => Ok(Answer::Pass),
            },
        }
    }

    /// The open file that the call's descriptor means, and whose call it is.
    fn ours(&mut self, call: &Call) -> Option<(FileId, Process)> {
        self.meant(call, call.arguments[0] as RawFd)
    }

    /// What else the call's descriptor is.
    fn inode(&mut self, call: &Call) -> Option<Inode> {
        self.callers.of(call.thread)?.inode(call.arguments[0] as RawFd)
    }

    /// The same for any descriptor of the caller's.
    pub(super) fn meant(&mut self, call: &Call, descriptor: RawFd) -> Option<(FileId, Process)> {
        for _ in 0..2 {
            let caller = self.callers.of(call.thread)?;
            if let Some(inode) = caller.inode(descriptor) {
                return Some((self.files.with_inode(inode)?, caller.process.clone()));
            }
            // There is no such descriptor, or the thread is another one.
            self.callers.forget(call.thread);
        }
        None
    }

    /// Of an open uverbs0 a program may map its queues, as the device knows; of an rdma_cm nothing.
    fn map(&mut self, call: &Call) -> Result<Answer, Errno> {
        let [_, length, .., offset] = call.arguments;
        let Some((file, _)) = self.meant(call, call.arguments[MMAP_DESCRIPTOR] as RawFd) else {
            return Ok(Answer::Pass);
        };
        match self.files.kind(file) {
            Some(Kind::Uverbs) => Ok(Answer::Asked(Asked::Maps { call: call.clone(), file, offset, length })),
            _ => Err(Errno::NODEV),
        }
    }

    /// What stands for the device that the call's descriptor means.
    fn opened(&mut self, call: &Call) -> Option<Destination> {
        let (file, _) = self.ours(call)?;
        self.sysfs.device(self.files.kind(file)?)
    }

    /// A call with a path, which is at this place of its arguments.
    fn path(&mut self, call: &Call, asked: OnPath, at: usize) -> Result<Answer, Errno> {
        let [a, b, c] = [1, 2, 3].map(|behind| call.arguments[at + behind]);
        let path = process::string(call.thread, call.arguments[at]).unwrap_or_default();
        let place = match asked {
            OnPath::StatAt | OnPath::Statx if path.is_empty() => self.opened(call),
            _ => self.sysfs.place(path.to_bytes()),
        };
        let is_elsewhere = |first| process::is_elsewhere(path.to_bytes(), first);
        // In a sandbox processes have other numbers, and only its own are there.
        if place.is_none() && self.alone.is_some_and(is_elsewhere) && !self.is_shut_in(call) {
            return Err(Errno::NOENT);
        }
        let Some(place) = place else { return Ok(Answer::Pass) };
        let flags = |bits: u64| AtFlags::from_bits_retain(bits as u32) & AtFlags::SYMLINK_NOFOLLOW;
        let value = match asked {
            OnPath::Open => return self.open(call, &place, OFlags::from_bits_retain(a as u32)),
            OnPath::Stat => stat(call, &place, a, AtFlags::empty()),
            OnPath::Lstat => stat(call, &place, a, AtFlags::SYMLINK_NOFOLLOW),
            OnPath::StatAt => stat(call, &place, a, flags(b)),
            OnPath::Statx => statx(call, &place, flags(a), b as u32, c),
            OnPath::Access => access(&place, a as u32),
            OnPath::Readlink => readlink(call, &place, a, b as i32),
            OnPath::Xattr => Err(Errno::OPNOTSUPP),
        };
        value.map(Answer::Value)
    }

    fn open(&mut self, call: &Call, place: &Destination, flags: OFlags) -> Result<Answer, Errno> {
        match place.device {
            Some(_) if flags.contains(OFlags::DIRECTORY) => Err(Errno::NOTDIR),
            Some(kind) => {
                let file = self.files.open(kind, &self.poll)?;
                let opened = self.open_device(call, file, flags);
                if opened.is_err() {
                    self.files.close(file);
                }
                opened.map(|process| Answer::Asked(Asked::Opened { file, kind, process }))
            }
            // From a folder that is opened here `..` leads to all of this machine's files, and the program is shut in.
            None if self.is_shut_in(call) && !is_missing_gid(&place.real) => Ok(Answer::Pass),
            None if flags.intersects(OFlags::WRONLY | OFlags::RDWR) => Err(Errno::ACCESS),
            None => {
                let kept = flags & (OFlags::DIRECTORY | OFlags::NOFOLLOW) | OFlags::CLOEXEC;
                let file = open(&*place.real, kept, Mode::empty()).map_err(|errno| match errno {
                    // So libibverbs reads the table of GIDs; the kernel itself would say this of an index that is none.
                    Errno::NOENT if is_of_gids(&place.real) => Errno::INVAL,
                    errno => errno,
                })?;
                call.open(file, None, flags.contains(OFlags::CLOEXEC)).map(|_| Answer::Given)
            }
        }
    }

    /// Whether the program is in a sandbox in which it finds our files by itself. Once it is, it stays there.
    fn is_shut_in(&mut self, call: &Call) -> bool {
        self.is_shut_in |= self.sysfs.is_in_root_of(call.thread);
        self.is_shut_in
    }

    fn open_device(&mut self, call: &Call, file: FileId, flags: OFlags) -> Result<Process, Errno> {
        let theirs = self.files.descriptor(file, flags)?;
        self.files.watch(file)?;
        self.hand_out(call, &theirs, 0, flags)
    }

    /// A copy must also have one of our numbers, and the kernel would give it the first free one.
    fn duplicate(&mut self, call: &Call, least: RawFd, cloexec: bool) -> Result<Answer, Errno> {
        let Some((file, _)) = self.ours(call) else { return Ok(Answer::Pass) };
        let mut flags = OFlags::empty();
        flags.set(OFlags::CLOEXEC, cloexec);
        flags.set(OFlags::NONBLOCK, call.must_not_wait(call.arguments[0] as RawFd));
        let theirs = self.files.descriptor(file, flags)?;
        self.hand_out(call, &theirs, least, flags).map(|_| Answer::Given)
    }

    /// Answers with this descriptor, which gets a free one of our numbers there; whose process that is.
    fn hand_out(&mut self, call: &Call, theirs: &OwnedFd, least: RawFd, flags: OFlags) -> Result<Process, Errno> {
        // Of a thread that has ended all numbers look free.
        self.callers.forget(call.thread);
        let caller = self.callers.of(call.thread).ok_or(Errno::MFILE)?;
        for range in RESERVED {
            let free = (range.start.max(least)..range.end).find(|number| caller.is_free(*number));
            let Some(number) = free else { continue };
            match call.open(theirs, Some(number), flags.contains(OFlags::CLOEXEC)) {
                // The process may have no such number, nor a higher one.
                Err(Errno::BADF) => {}
                opened => return opened.map(|_| caller.process.clone()),
            }
        }
        Err(Errno::MFILE)
    }
}

/// How long a call wants to sleep (clock_nanosleep(2)); None if by a clock that does not go on by itself.
fn sleep(call: &Call) -> Result<Option<Duration>, Errno> {
    let [first, second, third, ..] = call.arguments;
    let (clock, is_end, at) = match call.number {
        libc::SYS_nanosleep => (libc::CLOCK_MONOTONIC, false, first),
        _ => (first as i32, second as i32 & libc::TIMER_ABSTIME != 0, third),
    };
    let clock = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC => clock,
        _ => return Ok(None),
    };
    let mut bytes = [0; 16];
    kernel::read_memory(call.thread, at, &mut bytes)?;
    let [seconds, nanoseconds]: [i64; 2] = bytemuck::cast(bytes);
    let seconds = u64::try_from(seconds).map_err(|_| Errno::INVAL)?;
    let nanoseconds = u32::try_from(nanoseconds).ok().filter(|part| *part < 1_000_000_000).ok_or(Errno::INVAL)?;
    // A program's clocks are not ours: until an end by one of them it is so long now.
    let passed = if is_end { kernel::clock(clock).unwrap_or_default() } else { Duration::ZERO };
    Ok(Some(Duration::new(seconds, nanoseconds).saturating_sub(passed)))
}

/// Of an index that is none the kernel says something else than of a file that is not there.
fn is_missing_gid(path: &CStr) -> bool {
    is_of_gids(path) && statat(CWD, path, AtFlags::empty()).is_err()
}

/// Which argument of a call that waits for descriptors is its time-out, and the parts of a second that this counts; none if it's a
/// number of milliseconds itself.
fn timeout(number: libc::c_long) -> Option<(usize, Option<u32>)> {
    match number {
        libc::SYS_ppoll => Some((2, Some(1_000_000_000))),
        libc::SYS_pselect6 => Some((4, Some(1_000_000_000))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => Some((2, None)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => Some((4, Some(1_000_000))),
        _ => None,
    }
}

/// How long a call waits for no descriptor; None if for ever, or not at all.
fn patience(call: &Call) -> Result<Option<Duration>, Errno> {
    let Some((at, parts)) = timeout(call.number) else { return Ok(None) };
    let value = call.arguments[at];
    let Some(parts) = parts else { return Ok(u64::try_from(value as i32).ok().map(Duration::from_millis)) };
    if value == 0 {
        return Ok(None);
    }
    let mut bytes = [0; 16];
    kernel::read_memory(call.thread, value, &mut bytes)?;
    let [seconds, rest]: [i64; 2] = bytemuck::cast(bytes);
    let (Ok(seconds), Ok(rest)) = (u64::try_from(seconds), u32::try_from(rest)) else { return Ok(None) };
    Ok((rest < parts).then(|| Duration::new(seconds, rest * (1_000_000_000 / parts))))
}

fn is_of_gids(path: &CStr) -> bool {
    let folder = Path::new(OsStr::from_bytes(path.to_bytes())).parent();
    folder.is_some_and(|folder| folder.ends_with("ports/1/gids"))
}

fn stat(call: &Call, place: &Destination, buffer: u64, flags: AtFlags) -> Result<i64, Errno> {
    let mut stat = statat(CWD, &*place.real, flags)?;
    if let Some(kind) = place.device {
        let (major, minor) = kind.numbers();
        stat.st_mode = libc::S_IFCHR | 0o666;
        stat.st_rdev = rustix::fs::makedev(major, minor);
    }
    kernel::write_memory(call.thread, buffer, kernel::bytes(&stat)).map(|()| 0)
}

fn statx(call: &Call, place: &Destination, flags: AtFlags, mask: u32, buffer: u64) -> Result<i64, Errno> {
    let mut stat = rustix::fs::statx(CWD, &*place.real, flags, StatxFlags::from_bits_retain(mask))?;
    if let Some(kind) = place.device {
        stat.stx_mode = (libc::S_IFCHR | 0o666) as u16;
        (stat.stx_rdev_major, stat.stx_rdev_minor) = kind.numbers();
    }
    kernel::write_memory(call.thread, buffer, kernel::bytes(&stat)).map(|()| 0)
}

fn access(place: &Destination, mode: u32) -> Result<i64, Errno> {
    rustix::fs::accessat(CWD, &*place.real, Access::from_bits_retain(mode), AtFlags::empty()).map(|()| 0)
}

fn readlink(call: &Call, place: &Destination, buffer: u64, size: i32) -> Result<i64, Errno> {
    let size = usize::try_from(size).ok().filter(|size| *size > 0).ok_or(Errno::INVAL)?;
    let target = readlinkat(CWD, &*place.real, Vec::new())?;
    let target = &target.to_bytes()[..size.min(target.to_bytes().len())];
    kernel::write_memory(call.thread, buffer, target).map(|()| target.len() as i64)
}
