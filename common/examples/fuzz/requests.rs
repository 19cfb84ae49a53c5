//! Queue pairs that are moved by hand, what is posted to them, and how that ends.

use common::*;

use crate::{Random, World};

const ACCESS: Access = Access::REMOTE_WRITE;

impl World {
    /// Moves a queue pair, or posts to one.
    pub fn request(&mut self, random: &mut Random) -> Option<()> {
        match random.below(17) {
            0..=3 => self.connect_by_hand(random),
            4 => {
                let to = if random.one_in(2) { ModifyQp::Err } else { ModifyQp::Reset };
                let moved = random.pick(&self.qps)?.modify(&to);
                self.note(moved)
            }
            5..=8 => {
                let region = random.pick(&self.regions)?;
                let posted = random.pick(&self.qps)?.post_recv(region, 0..region.len().min(64));
                self.note(posted).map(drop)
            }
            9 => {
                let region = random.pick(&self.regions)?;
                let posted = random.pick(&self.srqs)?.post_recv(region, 0..region.len().min(64));
                self.note(posted).map(drop)
            }
            10..=14 => self.post(random),
            15 => {
                let region = random.pick(&self.regions)?;
                let batch: Vec<_> = (0..random.below(9)).map(|_| SendWr::send(region, 0..region.len())).collect();
                let (_, posted) = random.pick(&self.qps)?.post_send_all(&batch);
                self.note(posted)
            }
            _ => {
                let posted = random.pick(&self.qps)?.post_send(&SendWr::inline(Operation::Send, b"inline"));
                self.note(posted).map(drop)
            }
        }
    }

    fn connect_by_hand(&mut self, random: &mut Random) -> Option<()> {
        let (one, other) = (random.pick(&self.qps)?, random.pick(&self.qps)?);
        let dgid = random.pick(&self.contexts)?.query_gid(1, 0).ok()?;
        let (path_mtu, dlid, sgid_index, port, rq_psn) = (Mtu::BYTES_1024, 0, 0, 1, 1);
        let (max_dest_rd_atomic, min_rnr_timer) = (1, 1);
        let mut moved = Ok(());
        for (qp, peer) in [(one, other), (other, one)] {
            let dest_qp_num = peer.qp_num();
            #[rustfmt::skip]
            let rtr = ModifyQp::Rtr { path_mtu, dest_qp_num, rq_psn, dgid, dlid, sgid_index, port, max_dest_rd_atomic, min_rnr_timer };
            let rts = ModifyQp::Rts { sq_psn: 1, timeout: 8, retry_cnt: 1, rnr_retry: 1, max_rd_atomic: 1 };
            let access = ACCESS | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
            let steps = [ModifyQp::Reset, ModifyQp::Init { port, access }, rtr, rts];
            let first = random.below(2);
            moved = moved.and_then(|()| steps[first..].iter().try_for_each(|step| qp.modify(step)));
        }
        self.note(moved)
    }

    fn post(&mut self, random: &mut Random) -> Option<()> {
        let (region, at) = (random.pick(&self.regions)?, *random.pick(&self.known)?);
        let operation = match random.below(7) {
            0 => Operation::Send,
            1 => Operation::SendImm(3),
            2 => Operation::Write(at),
            3 => Operation::WriteImm(at, 7),
            4 => Operation::Read(at),
            5 => Operation::FetchAdd(at, 1),
            _ => Operation::CompareSwap { at, compare: 0, swap: 1 },
        };
        let is_atomic = matches!(operation, Operation::FetchAdd(..) | Operation::CompareSwap { .. });
        let len = if is_atomic { 8 } else { random.below(region.len() + 2) };
        let request = SendWr::new(operation, &[(region, 0..len)]);
        let request = if random.one_in(2) { request.unsignaled() } else { request };
        let posted = random.pick(&self.qps)?.post_send(&request);
        self.note(posted).map(drop)
    }

    /// Looks for what is done.
    pub fn complete(&mut self, random: &mut Random) -> Option<()> {
        match random.below(6) {
            0 | 1 => {
                let polled = random.pick(&self.cqs)?.poll_up_to(random.below(5));
                self.note(polled).map(drop)
            }
            2 => {
                let armed = random.pick(&self.cqs)?.req_notify();
                self.note(armed)
            }
            3 => {
                let event = random.pick(&self.channels)?.try_get_cq_event();
                let cq = self.note(event)??;
                self.cqs.push(cq);
                Some(())
            }
            4 => {
                let waited = random.pick(&self.cqs)?.wait_for(random.below(1000) as u64, "anything");
                self.note(waited).map(drop)
            }
            _ => {
                let event = random.pick(&self.contexts)?.try_get_async_event();
                self.note(event).map(drop)
            }
        }
    }
}
