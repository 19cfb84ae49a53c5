//! What one side sends, counted: messages, bytes, and how fast it goes.

use roce::opcode::Operation;
use roce::packet::Packet;

/// From this many answers on their times tell something.
const ENOUGH: u64 = 16;

/// All that is counted.
#[derive(Clone, Debug, Default)]
pub(in crate::explain) struct Traffic {
    /// Messages that began, by their names.
    messages: Vec<(&'static str, u64)>,
    bytes: u64,
    /// How long packets waited for their answers at the recorder, of those that were sent once: how many, the sum, the longest.
    answered: u64,
    sum_ns: u64,
    longest_ns: u64,
    /// So many packets had no answer yet, at the most.
    most_open: usize,
}

impl Traffic {
    /// A packet that is sent for the first time.
    pub(super) fn count(&mut self, packet: &Packet) {
        if packet.opcode.is_first() {
            let name = verb(packet.opcode.operation);
            match self.messages.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => self.messages.push((name, 1)),
            }
        }
        let asked = packet.dma_length().filter(|_| packet.opcode.operation == Operation::ReadRequest);
        self.bytes += asked.map_or(packet.payload_length() as u64, u64::from);
    }

    /// So many packets wait for an answer.
    pub(super) fn waits(&mut self, open: usize) {
        self.most_open = self.most_open.max(open);
    }

    /// An answer came after so long.
    pub(super) fn answered(&mut self, ns: u64) {
        self.answered += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.longest_ns = self.longest_ns.max(ns);
    }

    /// What was sent, if anything was.
    pub(in crate::explain) fn sent(&self, who: &str) -> String {
        if self.messages.is_empty() {
            return String::new();
        }
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let messages = self.messages.iter().map(|(name, count)| format!("{count} {name}{}", plural(*count)));
        let messages: Vec<String> = messages.collect();
        format!("; {who} sends {} ({} bytes in all)", messages.join(", "), self.bytes)
    }

    /// How fast it goes, if there is enough to tell: how long answers took, and how many packets waited for one at a time.
    pub(in crate::explain) fn pace(&self, who: &str) -> String {
        let mean = self.sum_ns.checked_div(self.answered).filter(|_| self.answered >= ENOUGH);
        let Some(mean) = mean.map(milliseconds) else { return String::new() };
        let (longest, open) = (milliseconds(self.longest_ns), self.most_open);
        let took = format!("after {mean}, {longest} at the most, and up to {open} waited at a time");
        format!("; {who}'s packets had an answer {took}")
    }
}

/// As `342.299 ms`.
pub(in crate::explain) fn milliseconds(ns: u64) -> String {
    format!("{}.{:03} ms", ns / 1_000_000, ns / 1000 % 1000)
}

/// The verb's name for what a request does.
fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Send => "SEND",
        Operation::Write => "WRITE",
        Operation::ReadRequest => "READ",
        Operation::CompareSwap => "compare-and-swap",
        Operation::FetchAdd => "fetch-and-add",
        Operation::Flush => "FLUSH",
        Operation::AtomicWrite => "atomic WRITE",
        _ => "request",
    }
}
