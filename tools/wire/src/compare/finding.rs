//! What the parts of a comparison share: the two connections, and what was found so far.

use super::conversation::Conversation;
use super::memory::Symbols;
use super::report::{Difference, Field};
use super::request::Request;
use super::words::Place;
use roce::track::Side;

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
    /// Where it stands within its phase; of equal ones the first that was found comes first.
    pub order: u64,
    pub difference: Difference,
    /// Yours and the reference's, if all that differs is how much data there is.
    pub lengths: Option<(u64, u64)>,
}

/// Two connections and what was found so far.
#[derive(Debug)]
pub(super) struct Judge<'c> {
    pub mine: &'c Conversation,
    pub reference: &'c Conversation,
    /// "the lesson" or "the reference".
    pub model: &'static str,
    pub symbols: Symbols,
    pub found: Vec<Finding>,
    /// What differs without changing the story, in sentences.
    pub notes: Vec<String>,
}

/// A pair of requests of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched<'c> {
    pub from: Side,
    pub mine: &'c Request,
    pub reference: &'c Request,
}

impl Judge<'_> {
    /// Adds a difference, with the frames of yours that show it, and its place in the reference if it has one.
    pub(super) fn add(
        &mut self,
        phase: Phase,
        field: Field,
        sentence: String,
        mine: Vec<u64>,
        reference: Option<Place>,
    ) -> &mut Finding {
        let (frames, step) = (reference.iter().map(|place| place.0).collect(), reference.and_then(|place| place.1));
        let difference = Difference { field, sentence, step: step.map(String::from), mine, reference: frames };
        // Getting connected and hanging up are looked at in the order of the wire.
        let order = reference.filter(|_| phase == Phase::Data).map_or(0, |place| place.0);
        let last = self.found.len();
        self.found.push(Finding { phase, order, difference, lengths: None });
        &mut self.found[last]
    }

    /// The bytes that are moved are the user's business: worth a note, once for each kind of request.
    pub(super) fn other_bytes(&mut self, Matched { mine, reference, .. }: Matched, same_length: bool) {
        let note = format!("your {} moves other bytes of the same length", mine.name());
        if same_length && mine.payload != reference.payload && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
