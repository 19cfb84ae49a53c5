//! Names of calls, statuses, events, states and packets.
//!
//! Each must exist. And on the page of a lesson each must be one that the lesson's code, log or capture has, or stand in a
//! link to the place where it belongs: [`IBV_WC_REM_OP_ERR`](completions.md#ibv_wc_rem_op_err).

use super::headers::is_word;
use super::links;
use super::page::{Page, Problem};
use super::sources::Sources;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use wire::cm;
use wire::opcode::{Service, TABLE};

/// What names stand for. A thing may have several names.
#[derive(Clone, Debug)]
pub struct Names {
    /// The name, its kind, and the thing.
    known: BTreeMap<String, (&'static str, String)>,
}

/// A name on a page.
#[derive(Clone, Debug)]
pub struct Name<'t> {
    /// As it is written.
    pub text: &'t str,
    /// What kind of thing it names.
    pub kind: &'static str,
    /// The thing.
    pub thing: String,
}

impl Names {
    /// All names that the headers and the decoder know.
    ///
    /// # Errors
    /// The headers are not installed.
    pub fn new(sources: &Sources) -> Result<Names> {
        let headers = sources.headers()?;
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
        for state in ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"] {
            add("state", state, state);
        }
        for kind in (0x10..=0x16).map(cm::Kind::from) {
            add("packet", kind.name(), kind.short());
            add("packet", kind.short(), kind.short());
        }
        for name in TABLE.iter().filter(|row| row.service == Service::Rc).map(|row| row.name.trim_start_matches("RC "))
        {
            let spoken = name.replace("Send", "SEND").replace("RDMA Write", "WRITE").replace("RDMA Read", "READ");
            add("packet", name, name);
            add("packet", &spoken, name);
        }
        add("packet", "ACK", "Acknowledge");
        Ok(Names { known })
    }

    /// All names of a text, in order.
    pub fn of<'t>(&self, text: &'t str) -> Vec<Name<'t>> {
        let mut found = Vec::new();
        let mut end = 0;
        for (at, _) in text.char_indices() {
            let begins = !text[..at].ends_with(is_word) && text[at..].starts_with(is_word);
            if at < end || !begins {
                continue;
            }
            if let Some(name) = self.at(text, at) {
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

    /// All known names, for whoever plants errors.
    #[cfg(test)]
    pub fn known(&self) -> impl Iterator<Item = (&str, &'static str, &str)> {
        self.known.iter().map(|(name, (kind, thing))| (name.as_str(), *kind, thing.as_str()))
    }
}

/// Names on the page that do not exist, or do not belong to the lesson that it is about.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let names = match sources.names() {
        Ok(names) => names,
        Err(error) => return vec![Problem::new(&page.path, format!("no name was looked up: {error:#}"))],
    };
    let mut problems = foreign(page, names, sources);
    problems.extend(invented(page, sources));
    problems.extend(rows(page, names, sources));
    problems.extend(synonyms(page, names));
    problems
}

/// Names that begin like those of the headers and are not in them.
fn invented(page: &Page, sources: &Sources) -> Vec<Problem> {
    let Ok(known) = sources.headers().map(|headers| headers.names()) else { return Vec::new() };
    let mut problems = Vec::new();
    for ((at, line), _) in (0..).zip(&page.lines).zip(page.quoted()).filter(|(_, quoted)| !quoted) {
        let line = links::without_targets(line);
        let begins =
            |word: &&str| ["ibv_", "rdma_", "IBV_", "RDMA_CM_EVENT_"].iter().any(|start| word.starts_with(start));
        let words = line.split(|c| !is_word(c)).filter(begins);
        let unknown = words.filter(|word| !known.contains(word) && !ELSEWHERE.contains(word) && !word.ends_with('_'));
        problems.extend(unknown.map(|word| page.problem(at, format!("no installed header knows `{word}`"))));
    }
    problems
}

/// Programs, kernel modules, calls inside the library and our own calls that begin like a name of the headers.
const ELSEWHERE: [&str; 9] = [
    "ibv_devinfo",
    "ibv_rc_pingpong",
    "ibv_cmd_req_notify_cq",
    "rdma_rxe",
    "rdma_ucm",
    "rdma_cm",
    "rdma_write",
    "rdma_read",
    "rdma_t",
];

/// Names on a lesson's page that the lesson does not have.
fn foreign(page: &Page, names: &Names, sources: &Sources) -> Vec<Problem> {
    let Some(lesson) = page.lesson() else { return Vec::new() };
    let quoted = page.quoted();
    let text: String =
        page.lines.iter().zip(&quoted).filter(|(_, is)| **is).map(|(line, _)| format!("{line}\n")).collect();
    let mut own: BTreeSet<String> = names.of(&text).into_iter().map(|name| name.thing).collect();
    own.extend(sources.things(lesson).iter().flat_map(|things| things.iter().cloned()));
    own.extend(linked(page, names, sources));
    let mut problems = Vec::new();
    for (at, line) in page.lines.iter().enumerate().filter(|(at, _)| !quoted[*at]) {
        let line = links::without_targets(line);
        let man_page = |name: &Name| line.contains(&format!("{}(3)", name.text));
        for name in names.of(&line).into_iter().filter(|name| !own.contains(&name.thing) && !man_page(name)) {
            let what = format!(
                "lesson {lesson} has no `{}` in its code, log or captures: name another, or link it to where it belongs",
                name.text
            );
            problems.push(page.problem(at, what));
        }
    }
    problems
}

/// Names in a row that links to lessons by their numbers, which none of those lessons has.
fn rows(page: &Page, names: &Names, sources: &Sources) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, line) in page.lines.iter().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let numbers = links::labelled(line).filter_map(|(label, _)| label.get(..2));
        let lessons: Vec<&str> = numbers.filter(|number| number.bytes().all(|c| c.is_ascii_digit())).collect();
        if lessons.is_empty() {
            continue;
        }
        let has = |thing: &str| lessons.iter().any(|of| sources.things(of).is_ok_and(|things| things.contains(thing)));
        let text = links::without_targets(line);
        let foreign = names.of(&text).into_iter().find(|name| !has(&name.thing));
        problems.extend(
            foreign.map(|name| page.problem(at, format!("lesson {} has no {}", lessons.join(" or "), name.text))),
        );
    }
    problems
}

/// Two names of a packet, one of them in parentheses, that name two packets: ConnectReply (REQ).
fn synonyms(page: &Page, names: &Names) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, line) in page.lines.iter().enumerate() {
        let line = line.replace('`', "");
        let found = names.of(&line);
        let places = found.windows(2).filter(|pair| line.contains(&format!("{} ({})", pair[0].text, pair[1].text)));
        let wrong =
            places.filter(|pair| pair.iter().all(|name| name.kind == "packet") && pair[0].thing != pair[1].thing);
        problems.extend(wrong.map(|pair| page.problem(at, format!("{} is not {}", pair[0].text, pair[1].text))));
    }
    problems
}

/// The things that a page links to a place where they are named.
fn linked(page: &Page, names: &Names, sources: &Sources) -> Vec<String> {
    let text = page.text();
    let mut found = Vec::new();
    for (label, target) in links::labelled(&text) {
        let Some(section) = links::section(page, target, sources) else { continue };
        let there: BTreeSet<String> = names.of(&section).into_iter().map(|name| name.thing).collect();
        found.extend(names.of(label).into_iter().map(|name| name.thing).filter(|thing| there.contains(thing)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        problems(&Page::new(path, text), &repository()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_found_with_all_their_words() {
        let sources = repository();
        let found =
            |text| -> Vec<String> { sources.names().unwrap().of(text).into_iter().map(|name| name.thing).collect() };
        assert_eq!(found("`WRITE Only`, REJ; `rdma_accept`"), ["RDMA Write Only", "REJ", "rdma_accept"]);
        assert_eq!(found("ESTABLISHED or RDMA_CM_EVENT_ESTABLISHED"), ["RDMA_CM_EVENT_ESTABLISHED"; 2]);
        assert_eq!(found("rdma_accepted INITIAL"), [""; 0]);
    }

    #[test]
    fn a_lesson_names_what_it_has_or_says_where_it_belongs() {
        let page = "docs/04_rdma_write.md";
        assert_eq!(check(page, "The ConnectReply comes from `rdma_accept`, RTS from ESTABLISHED."), [""; 0]);
        assert!(check(page, "Reject it: `rdma_reject`.")[0]
            .starts_with("docs/04_rdma_write.md:1: lesson 04 has no `rdma_reject`"));
        let link = "It says [`IBV_WC_REM_ACCESS_ERR`](completions.md#ibv_wc_rem_access_err).";
        assert_eq!(check(page, link), [""; 0]);
        assert_eq!(check(page, &link.replace("ACCESS_ERR`", "OP_ERR`")).len(), 1, "another section");
        assert_eq!(check(page, "and `rdma_notify(3)`"), [""; 0]);
        assert_eq!(check("docs/p.md", "Reject it: `rdma_reject`."), [""; 0], "no lesson's page");
    }

    #[test]
    fn what_does_not_exist_or_is_called_otherwise_is_found() {
        assert!(check("docs/p.md", "`ibv_post_sent`")[0].contains("no installed header knows `ibv_post_sent`"));
        assert!(check("docs/p.md", "ConnectReply (REQ)")[0].ends_with("ConnectReply is not REQ"));
        assert!(check("docs/p.md", "| [02](02_resources.md) | REJ |")[0].ends_with("lesson 02 has no REJ"));
    }
}
