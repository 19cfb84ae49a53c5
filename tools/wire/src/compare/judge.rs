//! Comparing two connections: all that differs is found, then put in the order in which it explains the rest.

use super::conversation::Conversation;
use super::facts::{rows, Action, Fact};
use super::hints::{self, Hint};
use super::report::{Difference, Phase};
use run::words::ordinal;
use similar::{capture_diff_slices, Algorithm, DiffTag};

/// Two connections and what was found so far.
struct Judge<'c> {
    mine: &'c Conversation,
    /// "the lesson" or "the reference".
    model: &'static str,
    found: Vec<Difference>,
}

/// Compares and returns what was found, the cause first.
pub(super) fn compare(mine: &Conversation, reference: &Conversation, model: &'static str) -> Vec<Difference> {
    let mut judge = Judge { mine, model, found: Vec::new() };
    let ((mine, my_requests), (reference, its_requests)) = (rows(mine), rows(reference));
    mine.iter().zip(&reference).for_each(|(my, its)| judge.both(my, its));
    for (my, its) in my_requests.into_iter().zip(its_requests) {
        let (mut my, mut its, mut before) = (my.peekable(), its.peekable(), 0);
        // What's the same from the beginning on, which is nearly always all of it, need not be kept.
        while my.peek().zip(its.peek()).is_some_and(|(my, its)| my.facts == its.facts && my.outcome == its.outcome) {
            my.next();
            before = its.next().and_then(|its| its.frame).unwrap_or(0);
        }
        let (my, its): (Vec<_>, Vec<_>) = (my.collect(), its.collect());
        for pair in pairs(&my, &its, &[|row| &row.facts, |row| &row.facts[..1]]) {
            match pair {
                (Some(my), Some(its)) => {
                    before = its.frame.unwrap_or(0);
                    judge.both(my, its);
                }
                (Some(extra), None) => judge.extra(extra, before),
                (None, Some(missing)) => judge.missing(missing),
                (None, None) => {}
            }
        }
    }
    judge.found.sort_by_key(|difference| difference.rank);
    judge.found
}

/// What two rows are compared by.
type Key<'r, 'c> = fn(&'r Action<'c>) -> &'r [Fact];
type Pair<'r, 'c> = (Option<&'r Action<'c>>, Option<&'r Action<'c>>);

/// Which of yours stands for which of the reference: what is equal by the first key, and between those, by the next. Where no key
/// helps, one stands for the other in order.
fn pairs<'r, 'c>(mine: &'r [Action<'c>], reference: &'r [Action<'c>], keys: &[Key<'r, 'c>]) -> Vec<Pair<'r, 'c>> {
    let Some((key, others)) = keys.split_first() else {
        return (0..mine.len().max(reference.len())).map(|i| (mine.get(i), reference.get(i))).collect();
    };
    let [my, its] = [mine, reference].map(|rows| rows.iter().map(key).collect::<Vec<_>>());
    let between = |tag: DiffTag| if tag == DiffTag::Replace { others } else { &[] };
    let parts = capture_diff_slices(Algorithm::Myers, &my, &its).into_iter();
    parts.flat_map(|part| pairs(&mine[part.old_range()], &reference[part.new_range()], between(part.tag()))).collect()
}

impl Judge<'_> {
    /// What differs first in two rows; and apart from that, what became of a request.
    fn both(&mut self, mine: &Action, reference: &Action) {
        let both = (Some(mine), Some(reference));
        if let Some((.., request)) = mine.request.filter(|_| mine.outcome != reference.outcome) {
            let (whose, its) = (mine.subject("outcome"), &reference.outcome);
            let sentence = format!("Your {whose} {}; {}'s {its}", mine.outcome, self.model);
            self.add((Phase::Failure, request.frame), "outcome", sentence, hints::failure(self.mine, mine), both);
        }
        let Some((my, its)) = mine.facts.iter().zip(&reference.facts).find(|(my, its)| my != its) else { return };
        // Getting connected and hanging up are looked at in the order of the wire.
        let order = if mine.phase == Phase::Data { reference.frame.unwrap_or(u64::MAX) } else { 0 };
        // Words may leave out what makes the difference.
        let its_words = if my.words == its.words { "begins the same way and goes on differently" } else { &its.words };
        let sentence = format!("Your {} {}; {}'s {its_words}", mine.subject(my.field), my.words, self.model);
        let hint = hints::about(self.mine, mine, reference, my.field);
        self.add((mine.phase, order), my.field, sentence, hint, both).numbers = (my.exact, its.exact);
    }

    /// A request that the reference has, and you have not.
    fn missing(&mut self, row: &Action) {
        let Some((from, nth, request)) = row.request else { return };
        let what = format!("the {} that is {}'s {} request of the {from}", request.name(), self.model, ordinal(nth));
        let (sentence, hint) = (format!("Your {from} never posts {what}"), hints::missing(self.mine));
        self.add((Phase::Data, request.frame), "missing", sentence, hint, (None, Some(row)));
    }

    /// A request that the reference does not have; it must not fail, either.
    fn extra(&mut self, row: &Action, before: u64) {
        let Some((from, nth, request)) = row.request else { return };
        let (name, nth, model) = (request.name(), ordinal(nth), self.model);
        let sentence = format!("Your {from}'s {nth} request, a {name}, is one that {model} does not have");
        self.add((Phase::Data, before), "extra", sentence, None, (Some(row), None));
        if request.failed() {
            let sentence = format!("Your {from}'s {name} {}; {model} does not have it", row.outcome);
            let hint = hints::failure(self.mine, row);
            self.add((Phase::Failure, request.frame), "outcome", sentence, hint, (Some(row), None));
        }
    }

    fn add(
        &mut self,
        rank: (Phase, u64),
        field: &'static str,
        sentence: String,
        hint: Hint,
        (mine, reference): Pair,
    ) -> &mut Difference {
        let frames = |row: Option<&Action>| {
            let answer = row.and_then(|row| row.request?.2.answer).filter(|_| field == "outcome");
            row.and_then(|row| row.frame).into_iter().chain(answer).collect::<Vec<u64>>()
        };
        let (hint, shown) = hint.unzip();
        let mine = shown.flatten().into_iter().chain(frames(mine)).collect();
        let step = reference.and_then(|row| row.step).map(String::from);
        let reference = frames(reference);
        let last = self.found.len();
        self.found.push(Difference { field, sentence, hint, step, mine, reference, rank, numbers: (0, 0) });
        &mut self.found[last]
    }
}
