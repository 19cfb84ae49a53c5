//! Why a call is refused.

/// As errno(3) names it, with Linux's number on x86-64 and ARM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    ENOMEM = 12,
    EINVAL = 22,
    EADDRINUSE = 98,
    ETIMEDOUT = 110,
}

impl From<Errno> for i32 {
    fn from(errno: Errno) -> i32 {
        errno as i32
    }
}
