//! What stands behind the two device files: `/dev/infiniband/uverbs0` (verbs) and `/dev/infiniband/rdma_cm` (connections).
//! Programs write commands there, as the kernel's headers say.

pub mod ucma;
pub mod uverbs;
