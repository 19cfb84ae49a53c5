//! Counts system calls, where the device tells them: how many a program needed before its first RDMA WRITE, and how many for that.

use roce::Packet;
use std::collections::BTreeMap;

/// The system calls of a run. A node is told by its place.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Of each node, up to its last one before the first WRITE of the run.
    before: BTreeMap<usize, usize>,
    /// Who has written first, and its calls from the doorbell to the ACK.
    write: Option<(usize, usize)>,
    is_done: bool,
}

impl Calls {
    /// A program has called.
    pub fn call(&mut self, node: usize) {
        match &mut self.write {
            Some((writer, calls)) if *writer == node && !self.is_done => *calls += 1,
            Some(_) => {}
            None => *self.before.entry(node).or_default() += 1,
        }
    }

    /// A node sends a packet.
    pub fn packet(&mut self, node: usize, packet: &Packet) {
        match (self.write, self.before.get_mut(&node)) {
            // Its doorbell was the last call. Who has made none is not told of, or is not in the run.
            (None, Some(calls)) if packet.name().starts_with("RC RDMA Write") => {
                *calls -= 1;
                self.write = Some((node, 1));
            }
            (Some((writer, _)), _) if writer != node && packet.told() == "RC Acknowledge" => self.is_done = true,
            _ => {}
        }
    }

    /// A line of the summary, with a name for each node; None if nobody has written.
    pub fn told<'a>(&self, name: impl FnOnce(usize) -> &'a str) -> Option<String> {
        let (writer, calls) = self.write.filter(|_| self.is_done)?;
        let (name, before) = (name(writer), self.before.get(&writer).copied().unwrap_or_default());
        Some(format!(
            "calls:    {name}: {before} system calls before its first RDMA WRITE, {calls} from there to the ACK"
        ))
    }
}
