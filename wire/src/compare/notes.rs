//! What may differ from run to run and still be worth a word.

use super::conversation::{Conversation, Role, Step};
use super::handshake::words;
use super::judge::Matched;
use super::parameters::choices;
use super::plural;
use super::request::{Outcome, Request};
use crate::cm::{Kind, Service};

/// Collected while comparing; one sentence each in the end.
#[derive(Debug, Default)]
pub(super) struct Notes {
    sentences: Vec<String>,
    /// The first WRITE or READ of each name whose bytes differ.
    bytes: Vec<(&'static str, u64)>,
}

impl Notes {
    /// The bytes that are moved are the user's business.
    pub(super) fn other_bytes(&mut self, matched: Matched, same_length: bool) {
        let Matched { mine, reference, .. } = matched;
        if same_length && mine.payload != reference.payload && !self.bytes.iter().any(|(name, _)| *name == mine.name())
        {
            self.bytes.push((mine.name(), mine.frame));
        }
    }

    /// Two rejects for the same reason may give it in other words.
    pub(super) fn reject_text(&mut self, mine: &Step, reference: &Step) {
        if mine.message.private_data() != reference.message.private_data() {
            self.sentences.push(format!("the {} rejects in other words{}", mine.from, words(mine)));
        }
    }

    /// What concerns the connection as a whole.
    pub(super) fn about_conversations(&mut self, mine: &Conversation, reference: &Conversation) {
        self.ports(mine, reference);
        if mine.mtu != reference.mtu {
            let sentence = format!(
                "your path MTU is {} bytes instead of {}, so messages are cut into other packets",
                mine.mtu, reference.mtu
            );
            self.sentences.push(sentence);
        }
        for (name, my, its) in choices(mine, reference) {
            self.sentences.push(format!("your {name} is {my} instead of {its}"));
        }
        for role in Role::BOTH {
            for step in mine.dialogue.iter().filter(|step| step.from == role && step.again > 0) {
                let name = step.message.kind.short();
                self.sentences.push(format!("your {role} sent its {name} {} times", step.again + 1));
            }
            self.repetitions(role, &mine.stream(role).requests);
        }
    }

    fn ports(&mut self, mine: &Conversation, reference: &Conversation) {
        let port =
            |c: &Conversation| c.step(Kind::ConnectRequest).and_then(|s| s.message.service()).and_then(Service::port);
        if let (Some(my), Some(its)) = (port(mine), port(reference)) {
            if my != its {
                self.sentences.push(format!("your port is {my} instead of {its}"));
            }
        }
    }

    /// Requests that needed more than one attempt.
    fn repetitions(&mut self, from: Role, requests: &[Request]) {
        let to = from.peer();
        for request in requests.iter().filter(|request| request.not_ready > 0 && request.outcome == Outcome::Done) {
            let sentence = format!(
                "the {to} was not ready for the {from}'s {} (frame {}) {}, then it worked: post the receive before \
                 connecting",
                request.name(),
                request.frame,
                plural(request.not_ready as usize, "time")
            );
            self.sentences.push(sentence);
        }
        let lost = requests.iter().filter(|request| request.not_ready == 0);
        let (count, first) = lost.fold((0, None), |(count, first), request| {
            (count + request.again, first.or((request.again > 0).then_some(request.frame)))
        });
        if let Some(first) = first {
            let sentence = format!(
                "your {from} sent {} again, the first for the request in frame {first}: a packet or its answer was \
                 lost on the way",
                plural(count as usize, "packet")
            );
            self.sentences.push(sentence);
        }
    }

    pub(super) fn into_sentences(self) -> Vec<String> {
        let bytes = self.bytes.into_iter();
        let bytes =
            bytes.map(|(name, frame)| format!("your {name} (frame {frame}) moves other bytes of the same length"));
        self.sentences.into_iter().chain(bytes).collect()
    }
}
