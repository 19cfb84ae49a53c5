//! Ids and their events, in any order.

use std::net::SocketAddr;

use common::cm::*;
use common::*;

use crate::{Random, World};

impl World {
    /// A call that has to do with ids.
    pub fn connect(&mut self, random: &mut Random, server: SocketAddr) -> Option<()> {
        match random.below(5) {
            0 => self.make_id(random, server),
            1 => self.call_id(random),
            2 | 3 => self.take_event(random),
            _ => {
                let moved = random.pick(&self.ids)?.migrate_id(random.pick(&self.event_channels)?);
                self.note(moved)
            }
        }
    }

    /// One that listens, or one that looks for who does.
    fn make_id(&mut self, random: &mut Random, server: SocketAddr) -> Option<()> {
        if self.event_channels.is_empty() || random.one_in(4) {
            let channel = self.note(EventChannel::create())?;
            self.event_channels.push(channel);
        }
        let made = random.pick(&self.event_channels)?.create_id();
        let id = self.note(made)?;
        let mut address = server;
        if random.one_in(3) {
            let bound = id.bind_addr(address).and_then(|()| id.listen(4));
            self.note(bound);
        } else {
            address.set_port(if random.one_in(4) { 9 } else { server.port() });
            let asked = id.resolve_addr(address);
            self.note(asked);
        }
        self.ids.push(id);
        Some(())
    }

    fn call_id(&mut self, random: &mut Random) -> Option<()> {
        let id = random.pick(&self.ids)?;
        let param = ConnParam { private_data: vec![1; random.below(60)], ..ConnParam::default() };
        let called = match random.below(6) {
            0 => id.resolve_route(),
            1 | 2 => id.connect(&param),
            3 => id.accept(&param),
            4 => id.disconnect(),
            _ => id.reject(b"no"),
        };
        self.note(called)
    }

    fn take_event(&mut self, random: &mut Random) -> Option<()> {
        let event = random.pick(&self.event_channels)?.try_get_cm_event();
        let event = self.note(event)??;
        let id = event.id();
        let went_on = match event.event() {
            RDMA_CM_EVENT_ADDR_RESOLVED => id.resolve_route(),
            RDMA_CM_EVENT_ROUTE_RESOLVED => id.connect(&ConnParam::default()),
            RDMA_CM_EVENT_CONNECT_REQUEST if !random.one_in(4) => id.accept(&event.conn_param()),
            _ => Ok(()),
        };
        self.note(went_on);
        if random.one_in(2) {
            self.ids.push(id);
        }
        if random.one_in(3) {
            self.events.push(event);
        }
        Some(())
    }
}
