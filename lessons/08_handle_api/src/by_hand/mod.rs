//! A connection without the connection manager.

pub mod client;
pub mod connect;

use common::args::Args;
use common::{stage, CompletionQueue, Context, ProtectionDomain, QpCap, QpInitAttr, QueuePair, Result};

use crate::DEVICE;

/// What every queue pair of a side needs. The fields are dropped from the top.
pub struct Desk {
    pub cq: CompletionQueue,
    pub pd: ProtectionDomain,
    pub context: Context,
}

impl Desk {
    /// We open the device by its name, because there's no id that would know it.
    pub fn open(args: &Args) -> Result<Self> {
        let _stage = stage("open");
        let context = Context::open(args.text(&DEVICE))?;
        let pd = context.alloc_pd()?;
        let cq = context.create_cq(16)?;
        Ok(Self { cq, pd, context })
    }

    /// A queue pair in the state RESET, which knows no peer.
    pub fn create_qp(&self) -> Result<QueuePair> {
        let _stage = stage("create_qp");
        let qp = self.pd.create_qp(&QpInitAttr::new(&self.cq, QpCap::SMALL))?;
        qp.dump();
        Ok(qp)
    }
}
