//! Which line of a lesson's source acts when a line of the log is printed.
//!
//! A lesson's log names the stage, which is a function that begins with `stage("NAME")`; and the C call, whose wrapper is
//! called much the same. In that function the next line with such a call is the one. Where no line is found, as when a
//! region is dropped at a function's end, the function is what can be told.

use run::file::Line;
use run::story::{Act, Side};
use std::collections::HashMap;

/// The file's place in the list of those that are shown, the line from 1, and whether just this line acts.
pub(super) type Place = (usize, usize, bool);

struct Function {
    file: usize,
    name: String,
    stage: Option<String>,
    /// Lines, from 0: the head, and behind the end.
    lines: std::ops::Range<usize>,
}

pub(super) struct Code {
    sources: Vec<(String, String)>,
    functions: Vec<Function>,
    /// Where each node was last: stage, source, line.
    last: HashMap<String, (String, usize, usize)>,
    /// What each node has said in a stage, and where.
    said: Vec<(String, String, String, Place)>,
    /// The sources that are shown.
    shown: Vec<usize>,
}

impl Code {
    pub(super) fn new(sources: Vec<(String, String)>) -> Code {
        let functions = sources.iter().enumerate().flat_map(|(file, (_, text))| functions(file, text)).collect();
        Code { sources, functions, last: HashMap::new(), said: Vec::new(), shown: Vec::new() }
    }

    /// The sources that places name.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        self.shown.iter().map(|file| self.sources[*file].clone()).collect()
    }

    /// Where a program says this.
    pub(super) fn line(&mut self, line: &Line) -> Option<Place> {
        if [Line::KERNEL, Line::DEVICE, Line::LAB].contains(&line.program.as_str()) {
            return None;
        }
        let said = line.tag().and_then(|tag| line.said().strip_prefix(tag)).unwrap_or(line.said()).trim_start();
        let stage = line.stage().unwrap_or_default();
        let (file, at, exact) = match stage {
            "" => self.literal(&line.node, said).map(|(file, at)| (file, at, true)),
            _ => self.acts(&line.node, stage, said),
        }?;
        if exact {
            self.last.insert(line.node.clone(), (stage.to_owned(), file, at));
        }
        let place = (self.place(file), at + 1, exact);
        self.said.push((line.node.clone(), stage.to_owned(), said.to_owned(), place));
        Some(place)
    }

    /// Where a node last did what a step of the story tells.
    pub(super) fn act(&self, node: &str, act: &Act) -> Option<Place> {
        let is_it = |(of, stage, said, _): &&(String, String, String, Place)| {
            of == node && *stage == act.stage && said.contains(&act.log)
        };
        self.said.iter().rfind(is_it).map(|(.., place)| *place)
    }

    fn place(&mut self, file: usize) -> usize {
        self.shown.iter().position(|shown| *shown == file).unwrap_or_else(|| {
            self.shown.push(file);
            self.shown.len() - 1
        })
    }

    fn acts(&self, node: &str, stage: &str, said: &str) -> Option<(usize, usize, bool)> {
        let last = self.last.get(node).filter(|(of, ..)| of == stage).map(|(_, file, line)| (*file, *line));
        let (needles, again) = match said.split_once([' ', ':']).map_or(said, |(call, _)| call) {
            // Dumps of what the line before has done.
            "MR" | "SGE" | "WR" => (Vec::new(), true),
            "WC" => (needles("ibv_poll_cq", said), true),
            "CM" => (needles("rdma_get_cm_event", said), true),
            "rdma_ack_cm_event" => (needles("rdma_ack_cm_event", said), false),
            call => (needles(call, said), false),
        };
        if let Some((file, line)) = last.filter(|_| again) {
            return Some((file, line, true));
        }
        let mut functions: Vec<&Function> = self.functions.iter().filter(|function| function.is(stage)).collect();
        functions.sort_by_key(|function| !self.is_of(function.file, node));
        let helpers: Vec<&Function> = functions.iter().flat_map(|function| self.helpers(function)).collect();
        // An event is acknowledged where it was taken.
        let same_line = usize::from(!said.starts_with("rdma_ack"));
        for (functions, needle) in
            [&functions, &helpers].iter().flat_map(|all| needles.iter().map(move |needle| (all, needle)))
        {
            for function in functions.iter() {
                let body = function.lines.start + 1..function.lines.end;
                let from = last.filter(|(file, line)| *file == function.file && body.contains(line));
                let from = from.map_or(body.start, |(_, line)| line + same_line);
                let line = self.find(function.file, from..body.end, needle);
                if let Some(line) = line.or_else(|| self.find(function.file, body, needle)) {
                    return Some((function.file, line, true));
                }
            }
        }
        let literal = self.literal(node, said).map(|(file, line)| (file, line, true));
        literal.or_else(|| functions.first().map(|function| (function.file, function.lines.start, false)))
    }

    /// The functions that it calls and that are no stage of their own, and what these call.
    fn helpers(&self, of: &Function) -> Vec<&Function> {
        let called = |by: &Function| {
            let name = |function: &&Function| {
                let body = by.lines.start + 1..by.lines.end;
                function.stage.is_none() && self.find(by.file, body, &format!("{}(", function.name)).is_some()
            };
            self.functions.iter().filter(name).collect::<Vec<_>>()
        };
        let direct = called(of);
        let further: Vec<&Function> = direct.iter().flat_map(|function| called(function)).collect();
        [direct, further].concat()
    }

    fn find(&self, file: usize, mut lines: std::ops::Range<usize>, needle: &str) -> Option<usize> {
        let text: Vec<&str> = self.sources[file].1.lines().collect();
        lines.find(|line| text.get(*line).is_some_and(|line| calls(line, needle)))
    }

    /// The line that prints a text which begins like this, in this node's program first.
    fn literal(&self, node: &str, said: &str) -> Option<(usize, usize)> {
        let mut files: Vec<usize> = (0..self.sources.len()).collect();
        files.sort_by_key(|file| !self.is_of(*file, node));
        let prints = |line: &str| {
            let (_, literal) = line.split_once("!(\"")?;
            let known = literal.split(['{', '"']).next()?;
            (known.len() > 3 && said.starts_with(known)).then_some(())
        };
        files
            .into_iter()
            .find_map(|file| Some((file, self.sources[file].1.lines().position(|line| prints(line).is_some())?)))
    }

    /// Whether a source is only for the side that the node is on.
    fn is_of(&self, file: usize, node: &str) -> bool {
        let names: &[&str] = if Side::Server.is_at(node) { &["server"] } else { &["client", "worker", "program"] };
        names.iter().any(|name| self.sources[file].0.starts_with(name))
    }
}

impl Function {
    fn is(&self, stage: &str) -> bool {
        self.stage.as_deref() == Some(stage) || (stage == "main" && self.name == "run")
    }
}

/// What a call in the log is called in a lesson's source, the best first.
fn needles(call: &str, said: &str) -> Vec<String> {
    let names: &[&str] = match call {
        "getaddrinfo" => &["try_each", "connect("],
        "rdma_create_event_channel" => &["EventChannel::create"],
        "rdma_get_cm_event" => &["wait_for", "get_cm_event"],
        "rdma_ack_cm_event" => &[".ack()", "wait_for", "get_cm_event"],
        "rdma_set_option" => &["set_ack_timeout"],
        "rdma_create_qp" | "ibv_create_qp" => &["create_qp("],
        "ibv_alloc_pd" => &["alloc_pd("],
        "ibv_create_comp_channel" => &["create_comp_channel("],
        "ibv_create_cq" => &["create_cq(", "create_qp("],
        "ibv_query_gid" => &["find_gid("],
        "ibv_open_device" => &["open("],
        "ibv_post_send" if said.contains("RDMA_WRITE") => &["post_write(", "post_send("],
        "ibv_post_send" if said.contains("RDMA_READ") => &["post_read(", "post_send("],
        "ibv_reg_mr" => &["reg_mr(", "register("],
        "ibv_post_recv" => &["post_recv(", "post_recv_pieces("],
        "ibv_poll_cq" => &["wait_for", "poll_cq(", "poll(", "poll_up_to(", "wait("],
        "ibv_req_notify_cq" => &["req_notify(", "wait_for_or_cm_event("],
        "ibv_get_cq_event" => &["get_cq_event", "wait("],
        "ibv_modify_qp" => &["modify(", "move_to("],
        "QP" => &["dump()", "modify(", "move_to("],
        "rdma_destroy_qp" | "ibv_destroy_qp" => &["drop(resources.qp", "destroy_qp("],
        "ibv_dereg_mr" => &["drop(buffers", "dereg_mr("],
        "ibv_destroy_cq" => &["drop(resources.cq", "destroy_qp("],
        "ibv_destroy_comp_channel" => &["drop(resources.channel"],
        "ibv_dealloc_pd" => &["drop(resources.pd"],
        "rdma_destroy_id" => &["drop(id", "drop(listener"],
        "rdma_destroy_event_channel" => &["drop(channel", "drop(listening"],
        _ => &[],
    };
    let events = said.split([' ', ',']).filter(|word| call == "rdma_get_cm_event" && word.len() > 5);
    let events = events.filter(|word| word.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    let method = call.strip_prefix("rdma_").or_else(|| call.strip_prefix("ibv_"));
    events
        .map(|event| format!("RDMA_CM_EVENT_{event}"))
        .chain(names.iter().map(|name| (*name).to_owned()))
        .chain(method.map(|method| format!("{method}(")))
        .collect()
}

/// Whether a line of a program has a needle in it, not as the end of a longer name.
fn calls(line: &str, needle: &str) -> bool {
    let begins =
        |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') || needle.starts_with('.');
    !line.trim_start().starts_with("//") && line.match_indices(needle).any(|(at, _)| begins(at))
}

fn functions(file: usize, text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let head = line.trim_start();
        let Some((before, after)) = head.split_once("fn ") else { continue };
        if !["", "pub ", "pub(crate) ", "pub(super) "].contains(&before) {
            continue;
        }
        let indent = &line[..line.len() - head.len()];
        let ends = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| rest.starts_with('}'));
        let end = lines[start..].iter().position(ends).map_or(lines.len(), |length| start + length);
        let stage = lines[start..end].iter().find_map(|line| line.split_once("stage(\"")?.1.split_once('"'));
        let name = after.split(['(', '<']).next().unwrap_or_default().to_owned();
        functions.push(Function { file, name, stage: stage.map(|(stage, _)| stage.to_owned()), lines: start..end });
    }
    functions
}
