//! Requests that need no packet, because they bind a memory window or make a key invalid (specification, volume 1, 10.6.7 and
//! 11.4.1.1), and those that no packet exists for.

use super::requester::Requester;
use super::{Broken, State, View};
use crate::completion::Status;
use crate::fact::Fact;
use crate::outside::Ctx;
use crate::work::Work;

impl Requester {
    /// Does what needs no packet, and fails what the service can't do. Such a request waits until everything before it is done,
    /// and everything after it waits for it.
    pub(super) fn do_local(&mut self, qp: &View, ctx: &mut Ctx) -> Result<(), Broken> {
        while qp.state == State::Rts && self.begun.is_empty() {
            let Some(request) = self.posted.front() else { break };
            if !request.work.is_offered_by(qp.service) {
                return Err(self.fail(Status::LocQpOpErr, qp, ctx));
            }
            let (done, status) = match request.work {
                Work::Bind(bind) => (ctx.memory.bind(bind, qp.number, qp.pd), Status::MwBindErr),
                Work::LocalInvalidate(key) => (ctx.memory.invalidate(key, qp.number), Status::LocQpOpErr),
                _ => break,
            };
            if let Err(refusal) = done {
                ctx.say(|| Fact::new("undone").with("work", request.work).refused(&refusal));
                return Err(self.fail(status, qp, ctx));
            }
            ctx.say(|| Fact::new("complete").with("work", request.work));
            qp.complete_send(request, Status::Success, ctx);
            self.posted.pop_front();
        }
        Ok(())
    }
}
