//! Comparing two connections: all that differs is found, then put in the order in which it explains the rest.

use super::conversation::Conversation;
use super::facts::{Fact, Row, Rows};
use super::hints::{self, Hint};
use super::report::{ordinal, Difference};
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
    order: u64,
    pub difference: Difference,
    /// Yours and the reference's, if it is a number that differs.
    pub numbers: (u64, u64),
}

/// Two connections and what was found so far.
struct Judge<'c> {
    mine: &'c Conversation,
    /// "the lesson" or "the reference".
    model: &'static str,
    found: Vec<Finding>,
}

/// Compares and returns what was found, the cause first.
pub(super) fn compare(mine: &Conversation, reference: &Conversation, model: &'static str) -> Vec<Finding> {
    let mut judge = Judge { mine, model, found: Vec::new() };
    let (my, its) = (Rows::of(mine), Rows::of(reference));
    for (my, its) in my.connect.iter().zip(&its.connect) {
        judge.row(Phase::Connect, my, its);
    }
    for from in Side::BOTH {
        judge.requests(from, &my.requests[from as usize], &its.requests[from as usize]);
        judge.row(Phase::Data, &my.rests[from as usize], &its.rests[from as usize]);
    }
    judge.row(Phase::Disconnect, &my.end, &its.end);
    judge.found.sort_by_key(|finding| (finding.phase, finding.order));
    judge.found
}

impl Judge<'_> {
    /// The requests of one side.
    fn requests(&mut self, from: Side, mine: &[Row], reference: &[Row]) {
        let mut before = 0;
        for pair in align(mine, reference) {
            match pair {
                (Some(i), Some(j)) => {
                    before = reference[j].frame.unwrap_or(0);
                    self.row(Phase::Data, &mine[i], &reference[j]);
                }
                (Some(i), None) => self.extra(from, i, &mine[i], before),
                (None, Some(j)) => {
                    let (lacking, nth) = (&reference[j], ordinal(j + 1));
                    let name = lacking.request.map_or("request", |(.., request)| request.name());
                    let what = format!("the {name} that is {}'s {nth} request of the {from}", self.model);
                    let (sentence, hint) = (format!("Your {from} never posts {what}"), hints::missing(self.mine));
                    let order = lacking.frame.unwrap_or(0);
                    self.add(Phase::Data, order, "missing", sentence, hint, (None, Some(lacking)));
                }
                (None, None) => {}
            }
        }
    }

    /// A request that the reference does not have; it must not fail, either.
    fn extra(&mut self, from: Side, at: usize, row: &Row, before: u64) {
        let Some((.., request)) = row.request else { return };
        let (name, nth, model) = (request.name(), ordinal(at + 1), self.model);
        let sentence = format!("Your {from}'s {nth} request, a {name}, is one that {model} does not have");
        self.add(Phase::Data, before, "extra", sentence, Hint::default(), (Some(row), None));
        if request.failed() {
            let sentence = format!("Your {from}'s {name} {}; {model} does not have it", row.facts[1].words);
            let hint = hints::failure(self.mine, from, request);
            self.add(Phase::Failure, request.frame, "outcome", sentence, hint, (Some(row), None));
        }
    }

    /// What differs first in two rows; and apart from that, what became of a request.
    fn row(&mut self, phase: Phase, mine: &Row, reference: &Row) {
        let differ: Vec<(&Fact, &Fact)> =
            mine.facts.iter().zip(&reference.facts).filter(|(my, its)| my != its).collect();
        let (outcome, other): (Vec<_>, Vec<_>) = differ.into_iter().partition(|(my, _)| my.field == "outcome");
        for (my, its) in outcome.into_iter().take(1).chain(other.into_iter().take(1)) {
            let (phase, order) = match (my.field, phase) {
                ("outcome", _) => (Phase::Failure, mine.frame.unwrap_or(0)),
                (_, Phase::Data) => (phase, reference.frame.unwrap_or(u64::MAX)),
                // Getting connected and hanging up are looked at in the order of the wire.
                _ => (phase, 0),
            };
            // Words may leave out what makes the difference.
            let its_words = if my.words == its.words { "begins alike and goes on otherwise" } else { &its.words };
            let sentence = format!("Your {} {}; {}'s {its_words}", mine.subject(my), my.words, self.model);
            let hint = hints::about(self.mine, mine, reference, my);
            let found = self.add(phase, order, my.field, sentence, hint, (Some(mine), Some(reference)));
            found.numbers = (my.exact, its.exact);
        }
    }

    fn add(
        &mut self,
        phase: Phase,
        order: u64,
        field: &'static str,
        sentence: String,
        hint: Hint,
        (mine, reference): (Option<&Row>, Option<&Row>),
    ) -> &mut Finding {
        let frames = |row: Option<&Row>| {
            let answer = row.and_then(|row| row.request?.2.answer).filter(|_| field == "outcome");
            row.and_then(|row| row.frame).into_iter().chain(answer).collect::<Vec<u64>>()
        };
        let difference = Difference {
            field,
            sentence,
            hint: hint.text,
            step: reference.and_then(|row| row.step).map(String::from),
            mine: hint.frame.into_iter().chain(frames(mine)).collect(),
            reference: frames(reference),
        };
        let last = self.found.len();
        self.found.push(Finding { phase, order, difference, numbers: (0, 0) });
        &mut self.found[last]
    }
}

/// Two requests may be as different as this costs: a pair of different kinds is cheaper than one missing and one too many.
const ALONE: u32 = 3;
const OTHER_KIND: u32 = 4;

/// Tables larger than this are not worth their memory: the rest is paired in order.
const LARGEST: usize = 4_000_000;

/// How little two requests have in common, whatever became of them.
fn unlike(mine: &Row, reference: &Row) -> u32 {
    if mine.facts[0] != reference.facts[0] {
        return OTHER_KIND;
    }
    let differ = mine.facts.iter().zip(&reference.facts).filter(|(my, its)| my.field != "outcome" && my != its);
    differ.take(OTHER_KIND as usize - 1).count() as u32
}

/// Which of yours stands for which of the reference: the pairing that leaves the least to explain. Positions.
fn align(mine: &[Row], reference: &[Row]) -> Vec<(Option<usize>, Option<usize>)> {
    let both = |i| (Some(i), Some(i));
    let head = mine.iter().zip(reference).take_while(|(my, its)| unlike(my, its) == 0).count();
    let (rows, columns) = (mine.len() - head, reference.len() - head);
    let mut pairs: Vec<_> = (0..head).map(both).collect();
    if (rows + 1).saturating_mul(columns + 1) > LARGEST {
        let end = mine.len().min(reference.len());
        pairs.extend((head..end).map(both));
        pairs.extend((end..mine.len()).map(|i| (Some(i), None)));
        pairs.extend((end..reference.len()).map(|j| (None, Some(j))));
        return pairs;
    }
    // The classical table: `best[i][j]` is the least cost of the rest from row `i` and column `j` on.
    let mut best = vec![vec![0; columns + 1]; rows + 1];
    let pair = |i: usize, j: usize| unlike(&mine[head + i], &reference[head + j]);
    for (i, j) in (0..=rows).rev().flat_map(|i| (0..=columns).rev().map(move |j| (i, j))) {
        let both = if i < rows && j < columns { best[i + 1][j + 1] + pair(i, j) } else { u32::MAX };
        let extra = if i < rows { best[i + 1][j] + ALONE } else { u32::MAX };
        let missing = if j < columns { best[i][j + 1] + ALONE } else { u32::MAX };
        best[i][j] = if (i, j) == (rows, columns) { 0 } else { both.min(extra).min(missing) };
    }
    let (mut i, mut j) = (0, 0);
    while i < rows || j < columns {
        let here = best[i][j];
        if i < rows && j < columns && here == best[i + 1][j + 1] + pair(i, j) {
            pairs.push((Some(head + i), Some(head + j)));
            (i, j) = (i + 1, j + 1);
        } else if j < columns && here == best[i][j + 1] + ALONE {
            pairs.push((None, Some(head + j)));
            j += 1;
        } else {
            pairs.push((Some(head + i), None));
            i += 1;
        }
    }
    pairs
}
