//! What answers the two device files: `/dev/infiniband/uverbs0` (verbs) and `/dev/infiniband/rdma_cm` (connections).
//! Programs write commands there, as the kernel's headers say.

pub mod ucma;
pub mod uverbs;

use nic::fact::Fact;
use rustix::io::Errno;

/// A system call that is refused.
fn failed(call: Fact, errno: Errno) -> Fact {
    let error = std::io::Error::from(errno).to_string();
    call.with("errno", errno.raw_os_error()).with("why", error.split(" (os").next().unwrap_or_default())
}
