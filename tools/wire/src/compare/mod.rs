//! Does a capture tell the same story as another one, and if not, why?
//!
//! Two runs of one program never give the same packets: addresses, queue pairs, sequence numbers, keys and IDs are new
//! every time, networks lose packets, and devices differ in how they cut messages and acknowledge them. What must be
//! the same is what the programs did. So a capture is read in steps, each in its own file:
//!
//! 1. [`capture`]: packets become connections; [`quality`]: is the recording good enough to judge by?
//! 2. [`conversation`]: what the connection manager says, and of each side a [`stream`] of [`request`]s: what was
//!    repeated is left out, and an ACK has become an outcome.
//! 3. [`facts`]: a row for each message and request, in words that are the same in every run; a [`descriptor`] tells what a key
//!    is for.
//! 4. [`judge`]: two lists of rows side by side; what explains the rest comes first.
//!    Over TCP all of that is simpler: [`iwarp`].
//! 5. [`hints`]: what that means. [`notes`]: what does not matter. [`report`]: all of it for people and tools.

mod capture;
mod conversation;
mod descriptor;
mod facts;
mod hints;
mod iwarp;
mod judge;
mod notes;
mod quality;
mod report;
mod request;
mod stream;
pub mod variant;

pub use capture::Capture;
pub use report::{Difference, Report, Verdict};

use conversation::Conversation;
use report::{plural, Phase};
use roce::Other;

/// Compares your capture with a reference, for example one of a lesson.
pub fn compare(mine: &Capture, reference: &Capture) -> Report {
    if !mine.iwarp.is_empty() || !reference.iwarp.is_empty() {
        return iwarp::compare(&mine.iwarp, &reference.iwarp);
    }
    let mut report = Report { problems: problems(mine, reference), ..Report::default() };
    if !report.problems.is_empty() {
        return report;
    }
    let model = if reference.commented { "the lesson" } else { "the reference" };
    let pairs = pair_up(&mine.conversations, &reference.conversations, model, &mut report);
    for (mine, reference) in pairs {
        conclude(&mut report, judge::compare(mine, reference, model), model);
        report.notes.extend(notes::about(mine, reference));
    }
    report.summary = summary(&reference.conversations);
    report.notes.extend(left_out(mine));
    report
}

/// What is wrong with the recordings.
fn problems(mine: &Capture, reference: &Capture) -> Vec<String> {
    let mut problems = quality::problems(mine);
    let broken = quality::problems(reference).into_iter();
    problems.extend(broken.map(|problem| format!("the reference can't be used: {problem}")));
    if problems.is_empty() && reference.begins() && !mine.begins() {
        let lacks = "The capture has no connection request (REQ), and the reference has one";
        problems.push(format!("{lacks}: start to record before the client starts"));
    }
    problems
}

/// Which of your connections to compare with which of the reference.
fn pair_up<'c>(
    mine: &'c [Conversation],
    reference: &'c [Conversation],
    model: &'static str,
    report: &mut Report,
) -> Vec<(&'c Conversation, &'c Conversation)> {
    if let ([_, _, ..], [only]) = (mine, reference) {
        // Somebody tried more than once. The best attempt counts; of equally good ones the last.
        let score = |index: &usize| (judge::compare(&mine[*index], only, model).len(), usize::MAX - index);
        let best = (0..mine.len()).min_by_key(score).unwrap_or(0);
        let sentence = format!("of your {} connections, number {} is compared; {model} has one", mine.len(), best + 1);
        report.notes.push(sentence);
        return vec![(&mine[best], only)];
    }
    if mine.len() != reference.len() {
        let [my, its] = [mine, reference].map(|all| plural(all.len() as u64, "connection"));
        let sentence = format!("Your capture has {my}; {model} has {its}");
        let [mine, reference] = [mine, reference].map(|all| all.iter().filter_map(first_frame).collect());
        report.cause = Some(Difference { field: "connections", sentence, mine, reference, ..Difference::default() });
    }
    in_order(mine).into_iter().zip(in_order(reference)).collect()
}

/// Connections as they began. Among peers, where a server is a client, too, many begin at once: there those of one pair of machines
/// stand together, in the order of their addresses.
fn in_order(conversations: &[Conversation]) -> Vec<&Conversation> {
    let ends = || conversations.iter().filter_map(|conversation| conversation.ends);
    let are_peers = ends().any(|(_, server)| ends().any(|(client, _)| client == server));
    let mut all: Vec<&Conversation> = conversations.iter().collect();
    if are_peers {
        all.sort_by_key(|conversation| conversation.ends);
    }
    all
}

fn first_frame(conversation: &Conversation) -> Option<u64> {
    let requests = conversation.streams.iter().filter_map(|stream| Some(stream.requests.first()?.frame));
    conversation.dialogue.first().map(|step| step.frame).or(requests.min())
}

/// Puts what was found into the report: the cause first, then what does not follow from it.
fn conclude(report: &mut Report, found: Vec<Difference>, model: &str) {
    // What is lacking or too much may follow from what went wrong before it, and much follows from it.
    let follows =
        |difference: &Difference| matches!(difference.field, "missing" | "extra" | "operation" | "disconnect");
    let mut found = one_length(found, model).into_iter();
    let Some(first) = found.next() else { return };
    let goes_on = first.rank.0 == Phase::Data && !follows(&first);
    match report.cause {
        None => report.cause = Some(first),
        Some(_) => report.also.push(first),
    }
    if goes_on {
        // The first thing that is lacking or too much may have its own cause; after that nothing is certain.
        let (structure, rest): (Vec<_>, Vec<_>) = found.partition(follows);
        report.also.extend(rest.into_iter().chain(structure.into_iter().take(1)));
    }
}

/// If nothing but the amount of data differs, the same way everywhere, it is one difference: another `--len`.
fn one_length(mut found: Vec<Difference>, model: &str) -> Vec<Difference> {
    let Some(numbers) = found.first().map(|first| first.numbers) else { return found };
    if found.len() > 1 && found.iter().all(|one| one.field == "length" && one.numbers == numbers) {
        for rest in found.split_off(1) {
            found[0].mine.extend(rest.mine);
            found[0].reference.extend(rest.reference);
        }
        found[0].sentence = format!(
            "Your program moves {} bytes and {model} moves {}; everything else is the same (another text after \
             -s, or another --len?)",
            numbers.0, numbers.1
        );
    }
    found
}

fn summary(reference: &[Conversation]) -> String {
    let streams = reference.iter().flat_map(|conversation| &conversation.streams);
    let requests: u64 = streams.map(|stream| stream.requests.len() as u64 + stream.rest.count).sum();
    let messages: usize = reference.iter().map(|conversation| conversation.dialogue.len()).sum();
    let connections = plural(reference.len() as u64, "connection");
    let (messages, requests) = (plural(messages as u64, "message"), plural(requests, "request"));
    format!("{connections}, {messages} of the connection manager, {requests} with their outcomes")
}

/// Packets that were not looked at.
fn left_out(capture: &Capture) -> Option<String> {
    let strays = quality::some(&capture.strays).map(|(packets, first)| {
        format!("{packets} of connections that began before the capture (the first is frame {first})")
    });
    let congestion = (capture.congestion > 0).then(|| plural(capture.congestion, "congestion notification"));
    let others = capture.others.without(|other| other == Other::Arp);
    let others = (!others.is_empty()).then(|| others.to_string());
    let parts: Vec<String> = strays.into_iter().chain(congestion).chain(others).collect();
    (!parts.is_empty()).then(|| format!("left out: {}", parts.join(", ")))
}
