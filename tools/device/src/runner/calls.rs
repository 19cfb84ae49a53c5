//! Counts system calls, for the summary of a run with `--log`: how many a program needed before its first RDMA WRITE, and how
//! many for that.

use roce::link::LinkType;
use roce::Frame;

#[derive(Debug, Default)]
pub struct Calls {
    /// Of each node, up to its last one before the first WRITE of the run.
    before: Vec<usize>,
    /// Who has written first, and its calls from the doorbell to the ACK.
    write: Option<(usize, usize)>,
    is_done: bool,
}

impl Calls {
    pub fn new(nodes: usize) -> Calls {
        Calls { before: vec![0; nodes], ..Calls::default() }
    }

    /// A program has called.
    pub fn call(&mut self, node: usize) {
        match &mut self.write {
            Some((writer, calls)) if *writer == node && !self.is_done => *calls += 1,
            Some(_) => {}
            None => self.before[node] += 1,
        }
    }

    /// A packet in an Ethernet frame. Whoever is not in the run has no calls.
    pub fn packet(&mut self, node: usize, frame: &[u8]) {
        let Frame::Roce(packet) = Frame::decode(LinkType::ETHERNET, frame) else { return };
        match self.write {
            // Its doorbell was the last call.
            None if packet.name().starts_with("RC RDMA Write")
                && self.before.get(node).is_some_and(|calls| *calls > 0) =>
            {
                self.before[node] -= 1;
                self.write = Some((node, 1));
            }
            Some((writer, _)) if writer != node && packet.name() == "RC Acknowledge" => self.is_done = true,
            _ => {}
        }
    }

    /// A line of the summary; None if nobody has written.
    pub fn told(&self, names: &[&str]) -> Option<String> {
        let (writer, calls) = self.write.filter(|_| self.is_done)?;
        let (name, before) = (names[writer], self.before[writer]);
        Some(format!(
            "calls:    {name}: {before} system calls before its first RDMA WRITE, {calls} from there to the ACK"
        ))
    }
}
