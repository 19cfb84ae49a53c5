//! Names of calls, statuses, events, states and packets.
//!
//! Each must exist. And on the page of a lesson each must be one that the lesson's code, log or capture has, or be in a
//! link to the place where it belongs: [`IBV_WC_REM_OP_ERR`](completions.md#ibv_wc_rem_op_err).

use super::headers::{is_word, Headers};
use super::links;
use super::page::{Page, Wrong};
use super::sources::{Lesson, Sources};
use roce::cm;
use roce::opcode::{Service, TABLE};
use std::collections::{BTreeMap, BTreeSet};

/// The states of a queue pair, in the order of its life.
pub const STATES: [&str; 7] = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];

/// What names stand for. A thing may have several names.
#[derive(Clone, Debug)]
pub struct Names {
    /// The name, its kind, and the thing.
    pub known: BTreeMap<String, (&'static str, String)>,
}

#[derive(Clone, Debug)]
pub struct Name<'t> {
    pub text: &'t str,
    pub kind: &'static str,
    pub thing: String,
}

impl Names {
    /// All names that the headers and the decoder know.
    pub fn new(headers: &Headers) -> Names {
        let mut known = BTreeMap::new();
        let mut add = |kind, name: &str, thing: &str| drop(known.insert(name.to_string(), (kind, thing.to_string())));
        for call in headers.calls() {
            add("call", call, call);
        }
        for (status, _) in headers.values("ibv_wc_status") {
            add("status", status, status);
        }
        for (event, _) in headers.values("rdma_cm_event_type") {
            add("event", event, event);
            add("event", event.trim_start_matches("RDMA_CM_EVENT_"), event);
        }
        for state in STATES {
            add("state", state, state);
        }
        for kind in (0x10..=0x16).map(cm::Kind::from) {
            add("packet", kind.name(), kind.short());
            add("packet", kind.short(), kind.short());
        }
        for row in TABLE.iter().filter(|row| row.service == Service::Rc) {
            let name = row.name.trim_start_matches("RC ");
            let spoken = name.replace("Send", "SEND").replace("RDMA Write", "WRITE").replace("RDMA Read", "READ");
            add("packet", name, name);
            add("packet", &spoken, name);
        }
        add("packet", "ACK", "Acknowledge");
        Names { known }
    }

    /// All names of a text, in order.
    pub fn of<'t>(&self, text: &'t str) -> Vec<Name<'t>> {
        let mut found = Vec::new();
        let mut end = 0;
        let begins = |at: usize| !text[..at].ends_with(is_word) && text[at..].starts_with(is_word);
        for at in text.char_indices().map(|(at, _)| at).filter(|at| begins(*at)) {
            if let Some(name) = self.at(text, at).filter(|_| at >= end) {
                end = at + name.text.len();
                found.push(name);
            }
        }
        found
    }

    /// The longest name that begins here: some have several words.
    fn at<'t>(&self, text: &'t str, at: usize) -> Option<Name<'t>> {
        let words = text[at..].char_indices().chain([(text.len() - at, ' ')]);
        let ends = words.filter(|(_, c)| !is_word(*c)).map(|(end, _)| end).take(4);
        let names = ends.filter_map(|end| Some((&text[at..at + end], self.known.get(&text[at..at + end])?)));
        names.last().map(|(text, (kind, thing))| Name { text, kind, thing: thing.clone() })
    }
}

/// Names on the page that do not exist, do not belong to the lesson that it is about, or name something else.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let names = &sources.names;
    let lesson = page.lesson().and_then(|number| sources.lesson(number));
    let own = lesson.map(|lesson| (lesson.number(), own(page, lesson, sources)));
    let mut wrong = Wrong::new();
    for (at, line) in page.prose() {
        let unknown = invented(&line).filter(|word| !sources.headers.names.contains(*word));
        wrong.extend(unknown.map(|word| (at, format!("no installed header knows `{word}`"))));
        let Some((lesson, own)) = &own else { continue };
        let is_man_page = |name: &Name| line.contains(&format!("{}(3)", name.text));
        let foreign = names.of(&line).into_iter().filter(|name| !own.contains(&name.thing) && !is_man_page(name));
        let what = |name: Name| format!("lesson {lesson} has no `{}` in its code, log or captures", name.text);
        wrong.extend(foreign.map(|name| (at, what(name) + ": name another, or link it to where it belongs")));
    }
    for (at, line) in page.lines.iter().enumerate() {
        let found = [of_row(line, sources), synonym(line, names), mislabelled(line, names), man_page(line, names)];
        wrong.extend(found.into_iter().flatten().map(|what| (at, what)));
    }
    wrong
}

/// Words that begin like names of the headers.
fn invented(line: &str) -> impl Iterator<Item = &str> {
    let begins = |word: &str| ["ibv_", "rdma_", "IBV_", "RDMA_CM_EVENT_"].iter().any(|start| word.starts_with(start));
    let words = line.split(|c| !is_word(c)).filter(move |word| begins(word));
    words.filter(|word| !ELSEWHERE.split(' ').any(|known| known == *word) && !word.ends_with('_'))
}

/// Programs, kernel modules, calls inside the library and our own calls that begin like a name of the headers.
const ELSEWHERE: &str =
    "ibv_devinfo ibv_devices ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ibv_xsrq_pingpong \
     rdma_client rdma_xclient ibv_cmd_req_notify_cq rdma_rxe rdma_ucm rdma_cm rdma_write rdma_read rdma_t";

/// What may be named on a lesson's page: what the lesson has, what the page quotes, and what it links to a place where that is
/// named.
fn own(page: &Page, lesson: &Lesson, sources: &Sources) -> BTreeSet<String> {
    let things = |text: &str| sources.names.of(text).into_iter().map(|name| name.thing).collect::<BTreeSet<_>>();
    let mut own = &lesson.things | &things(&page.quotes());
    for (label, target) in links::labelled(&page.text()) {
        if let Some(section) = links::section(page, target) {
            own.extend(&things(label) & &things(&section));
        }
    }
    own
}

/// What is wrong with a row that links to lessons by their numbers: a name that none of them has.
fn of_row(line: &str, sources: &Sources) -> Option<String> {
    let numbers = links::labelled(line).filter_map(|(label, _)| label.get(..2));
    let lessons: Vec<&Lesson> = numbers.filter_map(|number| sources.lesson(number)).collect();
    let has = |thing: &str| lessons.is_empty() || lessons.iter().any(|lesson| lesson.things.contains(thing));
    let text = Some(links::without_targets(line)).filter(|line| line.starts_with('|'))?;
    let foreign = sources.names.of(&text).into_iter().find(|name| !has(&name.thing))?.text;
    let numbers: Vec<&str> = lessons.iter().map(|lesson| lesson.number()).collect();
    Some(format!("lesson {} has no {foreign}", numbers.join(" or ")))
}

/// Two names of a packet, one of them in parentheses, that name two packets: ConnectReply (REQ).
fn synonym(line: &str, names: &Names) -> Option<String> {
    let line = line.replace('`', "");
    let found = names.of(&line);
    let wrong = found.windows(2).find(|pair| {
        pair.iter().all(|name| name.kind == "packet")
            && pair[0].thing != pair[1].thing
            && line.contains(&format!("{} ({})", pair[0].text, pair[1].text))
    })?;
    Some(format!("{} is not {}", wrong[0].text, wrong[1].text))
}

/// A man page of a call that isn't in section 3: `ibv_fork_init(2)`.
fn man_page(line: &str, names: &Names) -> Option<String> {
    names.of(line).into_iter().filter(|name| name.kind == "call").find_map(|name| {
        let end = name.text.as_ptr() as usize - line.as_ptr() as usize + name.text.len();
        let (section, _) = line[end..].strip_prefix('(')?.split_once(')')?;
        let is_other = section.len() == 1 && section != "3" && section.starts_with(|c: char| c.is_ascii_digit());
        is_other.then(|| format!("the man page of `{}` is in section 3", name.text))
    })
}

/// A link that names one thing and leads to the heading of another.
fn mislabelled(line: &str, names: &Names) -> Option<String> {
    links::labelled(line).find_map(|(label, target)| {
        let (_, anchor) = target.split_once('#')?;
        let (_, thing) = names.known.get(label.trim_matches('`'))?;
        let (name, _) =
            names.known.iter().find(|(name, (_, other))| name.to_lowercase() == anchor && other != thing)?;
        Some(format!("this link names {label} and leads to {name}"))
    })
}
