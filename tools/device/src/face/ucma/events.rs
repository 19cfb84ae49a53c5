//! Events (rdma_get_cm_event(3)): each open of rdma_cm has a queue of them. A program fetches one with GET_EVENT, which waits
//! for it unless the descriptor says O_NONBLOCK; and poll(2) finds the descriptor readable as long as there is one.
//!
//! A call that waits is answered later, so its caller may meanwhile be gone, or be sent a signal. An event is out of the queue
//! once its caller has heard of it, never before.

use super::abi::EventResp;
use super::Ids;
use crate::machine::{Asker, Call, FileId, Machine};
use nic::cm::Cm;
use nic::fact::Fact;
use rustix::io::Errno;
use std::collections::VecDeque;

/// Two of `rdma_cm_event_type`. With the first comes an id, the second is no business of [`nic::cm::EventKind`].
pub(super) const CONNECT_REQUEST: u32 = 4;
pub(super) const MULTICAST_JOIN: u32 = 12;

/// An open rdma_cm.
#[derive(Debug, Default)]
pub(super) struct File {
    events: VecDeque<Event>,
    /// Bytes in the pipe that makes it readable: one for each event, once [`Ids::settle`] has been there.
    bytes: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    /// The id whose program counts it: of a CONNECT_REQUEST that is the listener, and `response.id` is new.
    pub about: u32,
    pub response: EventResp,
}

impl Event {
    /// Its name without RDMA_CM_EVENT_, and what goes with it.
    fn told(&self) -> Fact {
        const NAMES: [&str; 16] = [
            "ADDR_RESOLVED",
            "ADDR_ERROR",
            "ROUTE_RESOLVED",
            "ROUTE_ERROR",
            "CONNECT_REQUEST",
            "CONNECT_RESPONSE",
            "CONNECT_ERROR",
            "UNREACHABLE",
            "REJECTED",
            "ESTABLISHED",
            "DISCONNECTED",
            "DEVICE_REMOVAL",
            "MULTICAST_JOIN",
            "MULTICAST_ERROR",
            "ADDR_CHANGE",
            "TIMEWAIT_EXIT",
        ];
        let EventResp { id, event, status, .. } = self.response;
        let name = NAMES.get(event as usize).unwrap_or(&"?");
        Fact::new("event").with("event", name).with("id", id).with("status", status)
    }
}

impl File {
    /// Makes the descriptor as readable as there are events.
    fn level(&mut self, number: FileId, machine: &mut Machine) {
        while self.bytes < self.events.len() {
            machine.files.ring(number);
            self.bytes += 1;
        }
        while self.bytes > self.events.len() {
            machine.files.hush(number);
            self.bytes -= 1;
        }
    }

    #[cfg(test)]
    pub fn next(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

/// A call of GET_EVENT.
#[derive(Debug)]
pub(super) struct Waiting {
    call: Call,
    asker: Asker,
    to: u64,
    room: usize,
}

impl Ids {
    /// Puts an event in the queue of its id's file.
    pub(super) fn post(&mut self, event: Event) {
        let Some(file) = self.ids.get(&event.about).map(|id| id.file) else { return };
        self.files.entry(file).or_default().events.push_back(event);
        self.touched.push(file);
    }

    /// Takes events out of a file's queue. Gives them.
    pub(super) fn take_out(&mut self, number: FileId, is_meant: impl Fn(&Event) -> bool) -> Vec<Event> {
        let Some(file) = self.files.get_mut(&number) else { return Vec::new() };
        let (meant, others) = std::mem::take(&mut file.events).into_iter().partition(|event| is_meant(event));
        file.events = others;
        self.touched.push(number);
        meant.into()
    }

    /// GET_EVENT, of which the rest is done in [`Ids::settle`].
    pub(super) fn fetch(&mut self, call: Call, asker: Asker, to: u64, room: usize) {
        let file = self.files.entry(asker.file).or_default();
        if file.events.is_empty() && call.must_not_wait(call.arguments[0] as i32) {
            call.answer(Err(Errno::AGAIN));
            return;
        }
        self.touched.push(asker.file);
        file.waiting.push_back(Waiting { call, asker, to, room });
    }

    /// Hands events to those who wait for them, and lets the descriptors be readable as long as there are more. To be called
    /// whenever something was done here.
    pub fn settle(&mut self, cm: &mut Cm, machine: &mut Machine) {
        for number in std::mem::take(&mut self.touched) {
            while self.serve(number, cm, machine) {}
            if let Some(file) = self.files.get_mut(&number) {
                file.level(number, machine);
            }
        }
    }

    /// Hands one event over. False if there is none, or nobody who waits.
    fn serve(&mut self, number: FileId, cm: &mut Cm, machine: &mut Machine) -> bool {
        let Some(file) = self.files.get_mut(&number) else { return false };
        if file.events.is_empty() {
            return false;
        }
        let Some(Waiting { call, asker, to, room }) = file.waiting.pop_front() else { return false };
        if call.is_gone() {
            return true;
        }
        let Some(event) = file.events.pop_front() else { return false };
        // Before the caller goes on: it may ask at once whether there is another.
        file.level(number, machine);
        self.tap.say(|| event.told());
        let bytes = bytemuck::bytes_of(&event.response);
        let written = asker.process.write(to, &bytes[..room.min(bytes.len())]);
        let is_heard = call.answer(written.map(|()| asker.length as i64));
        if is_heard && written.is_ok() {
            self.fetched(&event, cm);
        } else {
            file.events.push_front(event);
        }
        true
    }

    /// The program has an event: it will wait for this many acknowledgements before it lets the id go.
    pub(super) fn fetched(&mut self, event: &Event, cm: &mut Cm) {
        if let Some(id) = self.ids.get_mut(&event.about) {
            id.reported += 1;
        }
        match event.response.event {
            // Another may knock.
            CONNECT_REQUEST => cm.fetched(event.about.into()),
            MULTICAST_JOIN => {
                if let Some(group) = self.groups.get_mut(&event.response.id) {
                    group.reported += 1;
                }
            }
            _ => {}
        }
    }

    /// Whether a call waits: then [`Ids::tick`] is to be called now and then.
    pub fn is_waited_for(&self) -> bool {
        !self.lost.is_empty() || self.files.values().any(|file| !file.waiting.is_empty())
    }

    /// Lets go who waits for an event and is gone, or has a signal to attend to.
    pub fn tick(&mut self) {
        let files = self.files.values_mut().map(|file| &mut file.waiting);
        files.chain([&mut self.lost]).for_each(|calls| calls.retain(|waiting| !waiting.call.is_over()));
    }

    /// Forgets a file. Whoever waits there waits on, as with Linux, where the call itself keeps the file: rping(1) closes its
    /// channel while a thread of its own waits, and an error would be its exit status.
    pub(super) fn forget_file(&mut self, number: FileId) {
        self.lost.extend(self.files.remove(&number).into_iter().flat_map(|file| file.waiting));
    }
}
