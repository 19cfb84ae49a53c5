//! Making what a device has: in any order, of any parts, also of such as do not fit.

use common::*;

use crate::{Random, World};

const ACCESS: [Access; 3] = [Access::LOCAL_WRITE, Access::LOCAL_READ, Access::REMOTE_WRITE];

impl World {
    /// Makes one thing more.
    pub fn make(&mut self, random: &mut Random) -> Option<()> {
        match random.below(18) {
            0 => {
                let context = self.note(Context::open("rxe0"))?;
                self.contexts.push(context);
            }
            1 => {
                let lent = random.pick(&self.ids)?.verbs();
                let context = self.note(lent)?;
                self.contexts.push(context);
            }
            2 | 3 => {
                let made = random.pick(&self.contexts)?.alloc_pd();
                let pd = self.note(made)?;
                self.pds.push(pd);
            }
            4 => {
                let made = random.pick(&self.contexts)?.create_comp_channel();
                let channel = self.note(made)?;
                self.channels.push(channel);
            }
            5 => {
                let made = random.pick(&self.contexts)?.create_cq(random.below(20) as i32);
                let cq = self.note(made)?;
                self.cqs.push(cq);
            }
            6 | 7 => {
                let made = random.pick(&self.channels)?.create_cq(random.below(20) as i32);
                let cq = self.note(made)?;
                self.cqs.push(cq);
            }
            8 => {
                let made = random.pick(&self.pds)?.create_srq(4, 1);
                let srq = self.note(made)?;
                self.srqs.push(srq);
            }
            9..=11 => self.make_qp(random)?,
            12 | 13 => {
                let (id, pd) = (random.pick(&self.ids)?, random.pick(&self.pds)?);
                let attr = QpInitAttr::new(random.pick(&self.cqs)?, QpCap::SMALL);
                let made = id.create_qp(pd, &attr);
                let qp = self.note(made)?;
                self.qps.push(qp);
            }
            14 => self.make_all_of_an_id(random)?,
            15 => {
                let buffer = self.note(Buffer::zeroed(random.below(5000)))?;
                self.buffers.push(buffer);
            }
            _ => self.register(random)?,
        }
        Some(())
    }

    fn make_qp(&mut self, random: &mut Random) -> Option<()> {
        let max_send_wr = 1 + random.below(6) as u32;
        let cap = QpCap { max_send_wr, max_recv_wr: 4, max_inline_data: 32, ..QpCap::SMALL };
        let (send_cq, recv_cq) = (random.pick(&self.cqs)?, random.pick(&self.cqs)?);
        let srq = if random.one_in(3) { random.pick(&self.srqs) } else { None };
        let attr = QpInitAttr { recv_cq, srq, sq_sig_all: random.one_in(2), ..QpInitAttr::new(send_cq, cap) };
        let made = random.pick(&self.pds)?.create_qp(&attr);
        let qp = self.note(made)?;
        self.qps.push(qp);
        Some(())
    }

    /// A QP for an id, and all that it needs, on the id's own device.
    fn make_all_of_an_id(&mut self, random: &mut Random) -> Option<()> {
        let id = random.pick(&self.ids)?.clone();
        let context = self.note(id.verbs())?;
        let pd = self.note(context.alloc_pd())?;
        let channel = self.note(context.create_comp_channel())?;
        let cq = self.note(channel.create_cq(8))?;
        let qp = self.note(id.create_qp(&pd, &QpInitAttr::new(&cq, QpCap::SMALL)))?;
        self.pds.push(pd);
        self.channels.push(channel);
        self.cqs.push(cq);
        self.qps.push(qp);
        Some(())
    }

    fn register(&mut self, random: &mut Random) -> Option<()> {
        let everything = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let access = if random.one_in(4) { *random.pick(&ACCESS)? } else { everything };
        let buffer = random.pick(&self.buffers)?;
        let made = random.pick(&self.pds)?.reg_buffer(buffer, random.below(buffer.len() + 2), access);
        let region = self.note(made)?;
        self.known.push(Metadata::of(&region));
        if self.known.len() > 30 {
            self.known.remove(0);
        }
        self.regions.push(region);
        Some(())
    }
}
