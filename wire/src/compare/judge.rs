//! Comparing one connection with another: everything that differs is found, then put in the order in which it explains
//! the rest.

use super::align::{align, Pair};
use super::conversation::{Conversation, Role};
use super::descriptor::Descriptor;
use super::explain::announced;
use super::notes::Notes;
use super::report::{Difference, Field};
use super::request::{Outcome, Request};
use super::symbols::Symbols;
use super::{explain, handshake, pair};
use crate::opcode::{Operation, Service};

/// What explains what: the smaller is the cause of the larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Getting connected.
    Connect,
    /// A request that failed: nothing can follow it.
    Failure,
    /// What the requests are.
    Data,
    /// Hanging up.
    Disconnect,
}

/// A difference with its rank.
#[derive(Debug)]
pub(super) struct Finding {
    pub phase: Phase,
    /// Where in the reference, by frame; a second number for what comes after that frame.
    pub order: (u64, usize),
    pub difference: Difference,
    /// Yours and the reference's, if all that differs is how much data there is.
    pub lengths: Option<(u64, u64)>,
}

/// Two connections and what was found so far.
#[derive(Debug)]
pub(super) struct Judge<'c, 'a> {
    pub mine: &'c Conversation<'a>,
    pub reference: &'c Conversation<'a>,
    /// "the lesson" or "the reference".
    pub model: &'static str,
    pub symbols: Symbols,
    pub found: Vec<Finding>,
    pub notes: Notes,
}

/// A pair of requests of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched<'c, 'a> {
    pub from: Role,
    pub mine: &'c Request<'a>,
    pub reference: &'c Request<'a>,
}

impl<'c, 'a> Judge<'c, 'a> {
    /// Compares and returns what was found, the cause first.
    pub(super) fn compare(
        mine: &'c Conversation<'a>,
        reference: &'c Conversation<'a>,
        model: &'static str,
    ) -> (Vec<Finding>, Vec<String>) {
        let symbols = Symbols::default();
        let mut judge = Judge { mine, reference, model, symbols, found: Vec::new(), notes: Notes::default() };
        handshake::connect(&mut judge);
        judge.requests();
        handshake::disconnect(&mut judge);
        judge.notes.about_conversations(mine, reference);
        judge.found.sort_by_key(|finding| (finding.phase, finding.order));
        (judge.found, judge.notes.into_sentences())
    }

    pub(super) fn add(&mut self, phase: Phase, order: (u64, usize), difference: Difference) {
        self.found.push(Finding { phase, order, difference, lengths: None });
    }

    /// All requests in the order of the reference, so that a key is announced before it is used.
    fn requests(&mut self) {
        let mut matched = Vec::new();
        for from in Role::BOTH {
            let (mine, reference) = (&self.mine.stream(from).requests, &self.reference.stream(from).requests);
            let (my, its) = (traits(self.mine, from), traits(self.reference, from));
            let mut before = 0;
            for pair in align(mine.len(), reference.len(), |i, j| unlike(&my[i], &its[j])) {
                match pair {
                    Pair::Both(i, j) => {
                        before = reference[j].frame;
                        matched.push(Matched { from, mine: &mine[i], reference: &reference[j] });
                    }
                    Pair::Extra(i, _) => self.extra(from, i, before),
                    Pair::Missing(_, j) => self.missing(from, j),
                }
            }
        }
        matched.sort_by_key(|matched| matched.reference.frame);
        for matched in matched {
            explain::outcome(self, matched);
            pair::compare(self, matched);
        }
    }

    fn missing(&mut self, from: Role, at: usize) {
        let reference = &self.reference.stream(from).requests[at];
        let (name, model, number) = (reference.name(), self.model, ordinal(at + 1));
        let mut sentence =
            format!("Your {from} never posts the {name} that is {model}'s {number} request of the {from}");
        let mut frames = Vec::new();
        match handshake::goodbye(self.mine) {
            Some(goodbye) => {
                sentence += &format!("; the {} hangs up without it", goodbye.from);
                frames.push(goodbye.frame);
            }
            None => sentence += "; nobody hangs up either, so the capture may have been stopped too early",
        }
        let difference = Difference {
            field: Field::Missing,
            sentence,
            step: step(reference.comment),
            mine: frames,
            reference: vec![reference.frame],
        };
        self.add(Phase::Data, (reference.frame, 0), difference);
    }

    fn extra(&mut self, from: Role, at: usize, before: u64) {
        let mine = &self.mine.stream(from).requests[at];
        if mine.outcome != Outcome::Done && explain::failed(mine) {
            explain::extra_failure(self, from, mine);
        }
        let (name, model, number) = (mine.name(), self.model, ordinal(at + 1));
        let difference = Difference {
            field: Field::Extra,
            sentence: format!("Your {from}'s {number} request, a {name}, is one that {model} does not have"),
            step: None,
            mine: vec![mine.frame],
            reference: Vec::new(),
        };
        self.add(Phase::Data, (before, at + 1), difference);
    }
}

/// What identifies a request within its own capture, without the numbers that are new in every run.
#[derive(Debug, PartialEq)]
struct Traits<'c> {
    kind: (&'static str, Service),
    length: u64,
    values: (Option<u32>, Option<(u64, u64)>, bool),
    /// Which of the announced buffers, and where in it.
    place: Option<(usize, u64)>,
    /// What a SEND says, unless it announces a buffer.
    says: Option<&'c [u8]>,
}

fn traits<'c>(conversation: &'c Conversation, from: Role) -> Vec<Traits<'c>> {
    let buffers = announced(conversation, from.peer(), u64::MAX);
    let of = |request: &'c Request| {
        let place = request.remote.and_then(|remote| {
            let index = buffers.iter().position(|(_, buffer)| buffer.key == remote.r_key)?;
            Some((index, remote.va.wrapping_sub(buffers[index].1.address)))
        });
        let plain = request.operation == Operation::Send && Descriptor::of_message(&request.payload).is_none();
        Traits {
            kind: (request.name(), request.service),
            length: request.length(),
            values: (request.immediate, request.operands, request.solicited),
            place,
            says: plain.then(|| said(&request.payload)),
        }
    };
    conversation.stream(from).requests.iter().map(of).collect()
}

/// What a message says, but for the number of the process that says it: a text that ends in " pid " and digits.
pub(super) fn said(payload: &[u8]) -> &[u8] {
    const MARK: &[u8] = b" pid ";
    let end = payload.windows(MARK.len()).rposition(|part| part == MARK).map_or(payload.len(), |at| at + MARK.len());
    let (text, number) = payload.split_at(end);
    if number.iter().all(|byte| byte.is_ascii_digit() || *byte == b' ') {
        text
    } else {
        payload
    }
}

/// How little two requests have in common, for pairing them.
fn unlike(mine: &Traits, reference: &Traits) -> u32 {
    if mine.kind != reference.kind {
        return 4;
    }
    let differs = [
        mine.length != reference.length,
        mine.values != reference.values,
        mine.place != reference.place || mine.says != reference.says,
    ];
    differs.into_iter().map(u32::from).sum()
}

/// The step of the lesson, from the comment in a bundled capture: its first line.
pub(super) fn step(comment: Option<&str>) -> Option<String> {
    comment.and_then(|comment| comment.lines().next()).filter(|line| !line.is_empty()).map(str::to_owned)
}

/// 1st, 2nd, 3rd…
pub(super) fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals() {
        let said: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].into_iter().map(ordinal).collect();
        assert_eq!(said, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]);
    }

    #[test]
    fn the_step_is_the_first_line_of_a_comment() {
        assert_eq!(step(Some("step 3\nclient")), Some("step 3".into()));
        assert_eq!(step(Some("")), None);
        assert_eq!(step(None), None);
    }

    #[test]
    fn the_number_of_a_process_is_not_what_it_says() {
        assert_eq!(said(b"from the server, pid     121"), said(b"from the server, pid 4000000"));
        assert_ne!(said(b"from the server, pid 1"), said(b"from the client, pid 1"));
        assert_ne!(said(b"a pid 1 of text"), said(b"a pid 2 of text"));
        assert_eq!(said(b"12"), b"12");
    }
}
