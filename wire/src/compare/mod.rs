//! Does a capture tell the same story as another one, and if not, why?
//!
//! Two runs of one program never give the same packets: addresses, queue pairs, sequence numbers, keys and IDs are new
//! every time, networks lose packets, and devices differ in how they cut messages and acknowledge them. What must be
//! the same is what the programs did. So a capture is read in steps, each in its own file:
//!
//! 1. [`capture`]: frames become packets; [`quality`]: is the recording good enough to judge by?
//! 2. [`conversation`]: packets become connections, with a client and a server.
//! 3. [`request`]: each direction becomes a list of requests (SEND, WRITE, READ…) with their outcomes.
//! 4. [`handshake`], [`parameters`], [`align`], [`pair`], [`explain`]: two connections side by side. [`symbols`]
//!    renames keys and addresses, [`descriptor`] finds them in messages.
//! 5. [`judge`]: what explains the rest comes first. [`notes`]: what does not matter. [`report`]: in words.

mod align;
mod capture;
mod conversation;
mod descriptor;
mod explain;
mod handshake;
mod judge;
mod notes;
mod pair;
mod parameters;
mod quality;
mod report;
mod request;
mod symbols;

pub use capture::Capture;
pub use report::{Difference, Field, Report, Verdict};

use conversation::{Conversation, Conversations};
use judge::{Finding, Judge, Phase};

/// Compares your capture with a reference, for example one of a lesson.
pub fn compare(mine: &Capture, reference: &Capture) -> Report {
    let (my, its) = (Conversations::of(mine), Conversations::of(reference));
    let mut report = Report { problems: problems((mine, &my), (reference, &its)), ..Report::default() };
    if !report.problems.is_empty() {
        return report;
    }
    // Only bundled captures have comments with the steps of a lesson.
    let lesson = reference.packets().any(|recorded| recorded.comment.is_some());
    let model = if lesson { "the lesson" } else { "the reference" };
    let pairs = pair_up(&my.all, &its.all, model, &mut report);
    for (mine, reference) in pairs {
        let (found, notes) = Judge::compare(mine, reference, model);
        conclude(&mut report, found, model);
        report.notes.extend(notes);
    }
    report.summary = summary(&its.all);
    report.notes.extend(left_out(mine, &my));
    report
}

/// What is wrong with the recordings.
fn problems(mine: (&Capture, &Conversations), reference: (&Capture, &Conversations)) -> Vec<String> {
    let mut problems = quality::problems(mine.0, mine.1);
    let broken = quality::problems(reference.0, reference.1).into_iter();
    problems.extend(broken.map(|problem| format!("the reference is no good: {problem}")));
    let begins = |conversations: &Conversations| conversations.all.iter().any(Conversation::has_request);
    if problems.is_empty() && begins(reference.1) && !begins(mine.1) {
        problems.push(
            "The capture has no connection request (REQ), and the reference has one: start to record before the \
             client starts"
                .into(),
        );
    }
    problems
}

/// Which of your connections to compare with which of the reference.
fn pair_up<'c, 'a>(
    mine: &'c [Conversation<'a>],
    reference: &'c [Conversation<'a>],
    model: &'static str,
    report: &mut Report,
) -> Vec<(&'c Conversation<'a>, &'c Conversation<'a>)> {
    if let ([_, _, ..], [only]) = (mine, reference) {
        // Somebody tried more than once. The best attempt counts; of equally good ones the last.
        let score = |index: &usize| (Judge::compare(&mine[*index], only, model).0.len(), usize::MAX - index);
        let best = (0..mine.len()).min_by_key(score).unwrap_or(0);
        let sentence = format!("of your {} connections, number {} is compared; {model} has one", mine.len(), best + 1);
        report.notes.push(sentence);
        return vec![(&mine[best], only)];
    }
    if mine.len() != reference.len() {
        let sentence = format!(
            "Your capture has {}; {model} has {}",
            plural(mine.len(), "connection"),
            plural(reference.len(), "connection")
        );
        report.cause = Some(Difference {
            field: Field::Connections,
            sentence,
            step: None,
            mine: mine.iter().filter_map(first_frame).collect(),
            reference: reference.iter().filter_map(first_frame).collect(),
        });
    }
    mine.iter().zip(reference).collect()
}

fn first_frame(conversation: &Conversation) -> Option<u64> {
    let requests =
        conversation.streams.iter().filter_map(|stream| stream.requests.first()).map(|request| request.frame);
    conversation.dialogue.first().map(|step| step.frame).or(requests.min())
}

/// `1 packet`, `2 packets`.
fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Puts what was found into the report: the cause first, then what does not follow from it.
fn conclude(report: &mut Report, found: Vec<Finding>, model: &str) {
    let mut found = one_length(found, model).into_iter();
    let Some(first) = found.next() else { return };
    let data = first.phase == Phase::Data && !follows(&first.difference);
    if report.cause.is_none() {
        report.cause = Some(first.difference);
    } else {
        report.also.push(first.difference);
    }
    if data {
        // The first thing that is lacking or too much may have its own cause; after that nothing is certain.
        let (rest, structure): (Vec<_>, Vec<_>) =
            found.map(|finding| finding.difference).partition(|difference| !follows(difference));
        report.also.extend(rest.into_iter().chain(structure.into_iter().take(1)));
    }
}

/// True for what is lacking or too much: it may follow from what went wrong before it, and much follows from it.
fn follows(difference: &Difference) -> bool {
    matches!(difference.field, Field::Missing | Field::Extra | Field::Operation | Field::Disconnect)
}

/// If all that differs is the amount of data, the same way everywhere, it is one difference: another text, another
/// `--len`.
fn one_length(found: Vec<Finding>, model: &str) -> Vec<Finding> {
    let Some((mine, reference)) = found.first().and_then(|finding| finding.lengths) else { return found };
    if found.len() < 2 || found.iter().any(|finding| finding.lengths != Some((mine, reference))) {
        return found;
    }
    let mut found = found.into_iter();
    let Some(mut first) = found.next() else { return Vec::new() };
    for rest in found {
        first.difference.mine.extend(rest.difference.mine);
        first.difference.reference.extend(rest.difference.reference);
    }
    first.difference.sentence = format!(
        "Your program moves {mine} bytes and {model} moves {reference}; all else is the same (another text after -s, \
         or another --len?)"
    );
    vec![first]
}

fn summary(reference: &[Conversation]) -> String {
    let requests: usize = reference.iter().map(Conversation::requests).sum();
    let messages: usize = reference.iter().map(|conversation| conversation.dialogue.len()).sum();
    format!(
        "{}, {} of the connection manager, {} with what became of them",
        plural(reference.len(), "connection"),
        plural(messages, "message"),
        plural(requests, "request")
    )
}

/// Packets that were not looked at.
fn left_out(capture: &Capture, conversations: &Conversations) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(first) = conversations.strays.first() {
        let count = conversations.strays.len();
        parts
            .push(format!("{count} packets of connections that began before the capture (the first is frame {first})"));
    }
    if capture.congestion > 0 {
        parts.push(plural(capture.congestion as usize, "congestion notification"));
    }
    parts.extend(
        capture.others.iter().filter(|(name, _)| **name != "ARP").map(|(name, count)| format!("{count} {name}")),
    );
    (!parts.is_empty()).then(|| format!("left out: {}", parts.join(", ")))
}
