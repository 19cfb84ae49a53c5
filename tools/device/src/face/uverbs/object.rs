//! What programs make on the device, and its end.

use crate::machine::FileId;
use crate::node::Nic;
use nic::fact::Fact;

#[derive(Clone, Copy, Debug)]
pub enum Object {
    Qp,
    Srq,
    Mw,
    Mr,
    Ah,
    Cq,
    Channel,
    Pd,
}

impl Object {
    /// In the order in which they go if a program leaves them: what is made of other things first.
    const ALL: [(Object, &'static str); 8] = [
        (Object::Qp, "QP"),
        (Object::Srq, "SRQ"),
        // A region that bears a window stays.
        (Object::Mw, "MW"),
        (Object::Mr, "MR"),
        (Object::Ah, "AH"),
        (Object::Cq, "CQ"),
        // Closing its descriptor is its end.
        (Object::Channel, ""),
        (Object::Pd, "PD"),
    ];
}

impl Nic {
    /// The program has closed its device, or has ended: all that it made goes.
    pub fn closed(&mut self, file: FileId) {
        let all = Object::ALL.map(|(object, name)| (object, name, self.of(object, file)));
        let left = all.iter().filter(|(_, name, handles)| !name.is_empty() && !handles.is_empty());
        let left = left.map(|(_, name, handles)| (handles.len(), *name));
        let channels = self.open_channels(file);
        let left = left.chain([(channels, "completion channel")].into_iter().filter(|(count, _)| *count > 0));
        let left: Vec<String> = left.map(|(count, name)| format!("{count} {name}")).collect();
        if !left.is_empty() {
            self.port.tap.say(|| Fact::new("left").with("objects", left.join(", ")));
        }
        for (object, _, handles) in all {
            handles.into_iter().for_each(|handle| self.destroy(object, handle));
        }
        self.contexts.remove(&file);
    }

    /// How many completion channels the program has not closed, if anybody asks.
    fn open_channels(&self, file: FileId) -> usize {
        let Some(closed) = &self.closed_pipes else { return 0 };
        let own = self.of(Object::Channel, file).into_iter().filter_map(|handle| self.channels.any(handle));
        own.filter(|channel| !closed.contains(&channel.inode())).count()
    }

    pub fn of(&self, object: Object, file: FileId) -> Vec<u32> {
        match object {
            Object::Qp => self.qps.of(file),
            Object::Srq => self.srqs.of(file),
            Object::Mr => self.regions.of(file),
            Object::Mw => self.windows.of(file),
            Object::Ah => self.handles.of(file),
            Object::Cq => self.cqs.of(file),
            Object::Channel => self.channels.of(file),
            Object::Pd => self.pds.of(file),
        }
    }

    pub fn destroy(&mut self, object: Object, handle: u32) {
        match object {
            Object::Qp => self.forget_qp(handle),
            Object::Srq => drop(self.srqs.remove(handle)),
            Object::Mr => drop(self.regions.remove(handle).map(|key| self.memory.deregister(key))),
            Object::Mw => drop(self.windows.remove(handle).map(|key| self.memory.deallocate_window(key))),
            Object::Ah => drop(self.handles.remove(handle)),
            Object::Cq => drop(self.cqs.remove(handle)),
            Object::Channel => drop(self.channels.remove(handle)),
            Object::Pd => drop(self.pds.remove(handle)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Process;
    use crate::node::clock::Clock;
    use crate::node::port::Port;
    use crate::node::tap::Tap;
    use nic::memory::{Access, Bind, Region, WindowKind};
    use std::net::UdpSocket;
    use std::sync::Arc;

    #[test]
    fn a_program_that_ends_leaves_no_memory_to_be_reached() {
        const FILE: FileId = 1;
        let (socket, address) = (UdpSocket::bind("127.0.0.1:0").unwrap(), [127, 0, 0, 1].into());
        let mut nic = Nic::new(Port::new(socket, address, true, Vec::new(), Tap::default()), Clock::real(), None);
        let pd = nic.pds.insert(FILE, ());
        let (program, access) = (Arc::new(Process::own()), Access(Access::LOCAL_WRITE.0 | Access::MW_BIND.0));
        let region = nic.memory.register(Region { program, start: 0, va: 0, length: 64, access, pd }, 0);
        let window = nic.memory.allocate_window(WindowKind::One, pd, 0);
        let bind = Bind { window, next: 1, region, address: 0, length: 8, access: Access::REMOTE_READ };
        nic.memory.bind(bind, 17, pd).unwrap();
        nic.regions.insert(FILE, region);
        nic.windows.insert(FILE, window);
        nic.closed(FILE);
        assert!(!nic.memory.is_used(pd) && nic.pds.iter().next().is_none());
    }
}
