//! What the device does, as a fact with a name and fields. Programs that look at a run match these. People read the sentence, and
//! all sentences are here. If you reword one, only the log changes, and what the workbench's captions recognize
//! (`tools/book/workbench/captions.js`).

use std::fmt;

/// Something that the device has done, or has decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// Its row in [`SENTENCES`]; empty for a NIC that speaks in its own words.
    pub name: &'static str,
    pub fields: Vec<(&'static str, String)>,
}

/// Words that are only for people. Fields of these names aren't recorded. The cause is why, without what it's about.
const WHY: &str = "why";
const CAUSE: &str = "cause";
/// The same reason as a name, for programs.
const REASON: &str = "reason";

/// For each fact its sentence. `{key}` is the field of that name, `[…]` is left out unless all fields in it are there, and `{*}`
/// is every field that the sentence doesn't name.
const SENTENCES: [(&str, &str); 50] = [
    // Requester
    ("sent", "requester: PSN {psn} {packet}[, {again}]"),
    ("unsent", "requester: {work} not sent: its own memory: {why}"),
    ("unposted", "requester: {work} not sent: max_rd_atomic is 0, so none may be under way"),
    ("undone", "requester: {work} not done: {why}"),
    ("complete", "requester: [PSN {psn}: ]{work} complete"),
    ("fails", "requester: {work} fails: {status}"),
    ("late", "requester: no answer to PSN {psn} in time, {left} retries left"),
    ("old", "requester: {packet} of PSN {psn}: an old one"),
    ("lost", "requester: the answer to PSN {psn} was lost"),
    ("nak", "requester: PSN {psn}: {answer}"),
    ("rnr", "requester: PSN {psn}: no receive was posted; again in {wait}, {left} retries left"),
    ("unasked", "requester: PSN {psn}: {packet} doesn't answer it"),
    ("unplaced", "requester: PSN {psn}: its own memory: {why}"),
    ("placed", "requester: PSN {psn}: {bytes} bytes placed at offset {offset}"),
    // Responder
    ("gap", "responder: PSN {psn} came, {expected} expected; NAK, PSN sequence error"),
    ("skipped", "responder: PSN {psn} came, {expected} expected: everything in between is lost"),
    ("duplicate", "responder: PSN {psn}, {packet}: a duplicate, {why}"),
    ("refused", "responder: PSN {psn} expected, {packet}: {why}; {answer}"),
    ("dropped", "responder: PSN {psn}, {packet}: {why}; dropped"),
    (
        "written",
        "responder: PSN {psn} expected, {packet}: rkey {rkey} ok, {arrived} of {length} bytes in bounds and \
         placed[, {answer}][, completes receive wr_id={completes}][, MSN {msn}]",
    ),
    (
        "received",
        "responder: PSN {psn} expected, {packet}: [receive wr_id={wr_id} has room, {arrived} of {room} bytes \
         placed][, {answer}][, completes receive wr_id={completes}][, MSN {msn}]",
    ),
    ("read", "responder: PSN {psn} expected, {packet}: rkey {rkey}, {bytes} bytes, {responses} responses, MSN {msn}"),
    ("atomic", "responder: PSN {psn} expected, {packet}: rkey {rkey} ok, {original} stood there, MSN {msn}"),
    ("replaced", "responder: PSN {psn} expected, {packet}: rkey {rkey} ok, 8 bytes placed at once, MSN {msn}"),
    ("visible", "responder: PSN {psn} expected, {packet}: rkey {rkey} ok, everything is placed, MSN {msn}"),
    ("datagram", "responder: {bytes} bytes of QP {from} placed, completes receive wr_id={completes}"),
    // Queue pair
    ("state", "QP {qp}: {from} to {to}"),
    ("posted", "QP {qp}: a receive is posted, wr_id={wr_id} len={len}[, unusable: {why}]"),
    ("flushed", "QP {qp}: ERR, {sends} sends and {receives} receives are flushed"),
    ("strange", "QP {qp}: {packet} {why}; dropped"),
    ("marked", "QP {qp}: PSN {psn} came marked; a CNP goes back"),
    ("slower", "QP {qp}: a CNP; from now on {rate} Mbit/s"),
    ("unmoved", "QP {qp}: a CNP; dropped, because it doesn't react to congestion"),
    // Connection manager
    ("cm_sidr_refused", "cm: SIDR_REQ for a service nobody listens for; refused"),
    ("cm_sidr_unasked", "cm: SIDR_REP to a question that we haven't asked, or no longer ask; dropped"),
    ("cm_backlog", "cm: REQ, but the backlog is full; dropped, the client will send it again"),
    ("cm_stale", "cm: REQ of QP {qp}, which we still consider connected; REJ, stale connection"),
    ("cm_no_service", "cm: REQ for a service nobody listens for; REJ, invalid service ID"),
    ("cm_unexpected", "cm {connection}: {message} isn't expected in {state}; dropped"),
    ("cm_again", "cm {connection}: no answer to {message}, asks again; {left} attempts left"),
    ("cm_gives_up", "cm {connection}: no answer to {message}, gives up"),
    ("cm_unknown", "cm: {message} for a connection that doesn't exist"),
    // Port, and what programs ask for
    ("no_qp", "port: {packet} from {from} for QP {qp}, which doesn't exist; dropped"),
    ("damaged", "port: {bytes} bytes from {from} aren't a packet, or are damaged; dropped"),
    ("call", "system call: {call}[ {about}]{*}: [{result}][{made} {handle}][{why} (os error {errno})]"),
    ("event", "event {event} of id {id}, status={status}"),
    ("left", "closed, and left there: {objects}"),
    ("opened", "opened by {program}"),
    ("nowhere", "a call writes to a number that isn't a descriptor; perhaps it was given a destroyed object"),
    ("circles", "the program goes in circles while it waits, and never sleeps"),
];

/// Whether there is a fact of this name with all of these fields. Without a name, any fact will do.
pub fn has(name: Option<&str>, keys: &[&str]) -> bool {
    let names = |sentence: &str, key: &str| sentence.contains(&format!("{{{key}}}"));
    let is_there = |sentence: &str, key: &str| names(sentence, key) || key == REASON && names(sentence, WHY);
    SENTENCES.iter().any(|(one, sentence)| {
        name.map_or(true, |name| name == *one) && (*one == "call" || keys.iter().all(|key| is_there(sentence, key)))
    })
}

impl Fact {
    pub fn new(name: &'static str) -> Fact {
        Fact { name, fields: Vec::new() }
    }

    /// Adds a field.
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Fact {
        self.fields.push((key, value.to_string()));
        self
    }

    /// Adds a refusal, with its name for programs and its words for people.
    pub fn refused(self, reason: &(impl fmt::Debug + fmt::Display)) -> Fact {
        let name = format!("{reason:?}");
        let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned();
        self.with(REASON, name).with(WHY, reason)
    }

    /// Adds a field if there is a value.
    pub fn maybe(self, key: &'static str, value: Option<impl fmt::Display>) -> Fact {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
    }

    /// Why it has refused something, in a few words for people.
    pub fn cause(&self) -> Option<&str> {
        self.get(CAUSE).or_else(|| self.get(WHY))
    }

    /// What is recorded: the sentence, then a line for the name and one for each field.
    pub fn encode(&self) -> String {
        let own = self.fields.iter().filter(|(key, _)| ![WHY, CAUSE].contains(key) && !self.name.is_empty());
        let name = if self.name.is_empty() { String::new() } else { format!("\nfact={}", self.name) };
        own.fold(format!("{self}{name}"), |lines, (key, value)| format!("{lines}\n{key}={value}"))
    }

    /// Fills in the fields of a part of a sentence; None if one is missing.
    fn fill(&self, part: &str, sentence: &str) -> Option<String> {
        let mut pieces = part.split('{');
        let mut filled = pieces.next()?.to_owned();
        for piece in pieces {
            let (key, words) = piece.split_once('}')?;
            if key == "*" {
                let others = self.fields.iter().filter(|(key, _)| !sentence.contains(&format!("{{{key}}}")));
                others.filter(|(key, _)| *key != REASON).for_each(|(key, value)| filled += &format!(" {key}={value}"));
            } else {
                filled += self.get(key)?;
            }
            filled += words;
        }
        Some(filled)
    }
}

/// A learner's NIC may describe what it does in its own words.
impl From<String> for Fact {
    fn from(words: String) -> Fact {
        Fact::new("").with(WHY, words)
    }
}

impl From<&str> for Fact {
    fn from(words: &str) -> Fact {
        words.to_owned().into()
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = SENTENCES.iter().find(|(name, _)| *name == self.name).map_or("{why}", |(_, sentence)| sentence);
        for part in sentence.split('[') {
            let (optional, rest) = part.split_once(']').unwrap_or(("", part));
            f.write_str(&self.fill(optional, sentence).unwrap_or_default())?;
            f.write_str(&self.fill(rest, sentence).unwrap_or_else(|| rest.to_owned()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_what_the_fact_has() {
        let complete = Fact::new("complete").with("work", "WRITE");
        assert_eq!(complete.to_string(), "requester: WRITE complete");
        assert_eq!(complete.clone().with("psn", 7).to_string(), "requester: PSN 7: WRITE complete");
        let call = Fact::new("call").with("call", "REG_MR").with("len", 16);
        assert_eq!(call.clone().with("result", 0).to_string(), "system call: REG_MR len=16: 0");
        let failed = call.with("errno", 22).with("why", "Invalid argument");
        assert_eq!(failed.to_string(), "system call: REG_MR len=16: Invalid argument (os error 22)");
        assert_eq!(failed.encode().split_once('\n').unwrap().1, "fact=call\ncall=REG_MR\nlen=16\nerrno=22");
        assert_eq!(Fact::from("my words".to_owned()).encode(), "my words");
    }

    #[test]
    fn no_name_stands_twice() {
        let names: std::collections::BTreeSet<_> = SENTENCES.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), SENTENCES.len());
    }
}
