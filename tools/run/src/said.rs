//! What a line of the log says: the one place that knows the words which `common` prints, and a device its decisions.
//!
//! If a word changes in `common`, change it here as well; the device's test `said` prints every kind of line, and tells which one is
//! not understood any more.

use crate::file::Line;

/// What a line says. Numbers of bytes are decimal, addresses and keys hexadecimal, as `common` prints them.
#[allow(missing_docs)] // The fields have the log's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// A region is asked for: `ibv_reg_mr len=16 access=LOCAL_WRITE|REMOTE_WRITE`.
    RegMr { access: &'a str },
    /// A request is posted: `ibv_post_send RDMA_WRITE wr_id=1 len=60`. A receive has no opcode: `ibv_post_recv wr_id=2 len=16`.
    Post { opcode: Option<&'a str>, wr_id: u64, len: u64 },
    /// Another call of C, which is about to be made: `rdma_connect responder_resources=1 …`.
    Call { name: &'a str, with: &'a str },
    /// A region that has been registered: `MR: addr=0x… len=16 lkey=0x… rkey=0x…`.
    Mr { addr: u64, len: u64, lkey: u64, rkey: u64 },
    /// A queue pair's state, and of its attributes those that have changed: `QP: qpn=17 state=RTS mtu=1024 B …`.
    Qp { qpn: u64, state: &'a str, attributes: &'a str },
    /// A piece of a request that is posted: `SGE: addr=0x… len=16 lkey=0x…`.
    Sge { addr: u64, len: u64 },
    /// A request that is posted for sending: `WR: wr_id=1 opcode=RDMA_WRITE signaled=1 num_sge=1 remote_addr=0x… rkey=0x…`.
    Wr { wr_id: u64, remote: Option<u64> },
    /// A completion: `WC: wr_id=1 status=IBV_WC_SUCCESS opcode=IBV_WC_RDMA_WRITE qp_num=17`. One that failed has no opcode.
    Wc { wr_id: u64, status: &'a str, opcode: Option<&'a str>, qp_num: u64 },
    /// An event of the connection manager: `CM event: ESTABLISHED status=0`.
    CmEvent { event: &'a str, status: &'a str },
    /// How a failure came: `the stages so far: main → listen`.
    StagesSoFar,
    /// What a device has decided: `QP 17: INIT to RTR`.
    Moved { qpn: u64, state: &'a str },
    /// A lesson's own words, or somebody else's.
    Other(&'a str),
}

impl<'a> Said<'a> {
    /// What a line of a run file says.
    pub fn of(line: &'a Line) -> Said<'a> {
        let words = line.words();
        let known = match line.program.as_str() {
            Line::DEVICE => moved(line),
            Line::KERNEL | Line::LAB => None,
            _ => dump(words).or_else(|| call(words)),
        };
        known.unwrap_or(Said::Other(words))
    }

    /// The name of a call that ends a queue pair.
    pub fn destroys_qp(self) -> bool {
        matches!(self, Said::Call { name: "rdma_destroy_qp" | "ibv_destroy_qp", .. })
    }
}

/// Whether a line's words begin with the call of an act's `log`, and have the names and values that it asks for, in this order.
/// All other words are for people.
pub fn is_act(words: &str, log: &str) -> bool {
    let mut values = split(words);
    split(log).zip([true].into_iter().chain(std::iter::repeat(false))).all(|(wanted, is_call)| match is_call {
        true => values.next() == Some(wanted),
        false => values.any(|value| value == wanted),
    })
}

/// Whether a line's words are about a call that waits: it causes nothing.
pub fn waits(words: &str) -> bool {
    let call = split(words).next().unwrap_or_default();
    ["rdma_get_", "ibv_get_"].iter().any(|waits| call.starts_with(waits))
}

/// The first word of a line, and of the others those that aren't a word of English: names and values.
fn split(words: &str) -> impl Iterator<Item = &str> {
    let is_english = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    let words = words.split([' ', ',', ':']).enumerate();
    words.filter(move |(at, word)| *at == 0 || !is_english(word)).map(|(_, word)| word)
}

/// What a program complains of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complaint<'a> {
    /// In its words, without what to do next.
    pub text: &'a str,
    /// The number of the queue pair whose completion failed.
    pub qpn: Option<u64>,
}

impl<'a> Complaint<'a> {
    /// A line with the tag ERR, a completion that failed, or what another program writes to standard error. A completion that
    /// was flushed only follows another failure.
    pub fn of(line: &'a Line) -> Option<Complaint<'a>> {
        if [Line::KERNEL, Line::DEVICE, Line::LAB].contains(&line.program.as_str()) {
            return None;
        }
        match Said::of(line) {
            Said::StagesSoFar => None,
            Said::Wc { status: "IBV_WC_SUCCESS" | "IBV_WC_WR_FLUSH_ERR", .. } => None,
            Said::Wc { qp_num, .. } => Some(Complaint { text: line.words(), qpn: Some(qp_num) }),
            _ if line.tag() == Some("ERR") || line.tag().is_none() && line.error => {
                let text = line.words();
                Some(Complaint { text: text.split_once(". Next: ").map_or(text, |(text, _)| text), qpn: None })
            }
            _ => None,
        }
    }
}

/// What has been made, or has come: a word, a colon, and fields.
fn dump(words: &str) -> Option<Said<'_>> {
    let (kind, fields) = words.split_once(": ")?;
    Some(match kind {
        "MR" => Said::Mr {
            addr: number(fields, "addr")?,
            len: number(fields, "len")?,
            lkey: number(fields, "lkey")?,
            rkey: number(fields, "rkey")?,
        },
        "QP" => {
            let (qpn, state) = (number(fields, "qpn")?, value(fields, "state")?);
            let (_, attributes) = fields.split_once("state=")?;
            Said::Qp { qpn, state, attributes: attributes[state.len()..].trim_start() }
        }
        "SGE" => Said::Sge { addr: number(fields, "addr")?, len: number(fields, "len")? },
        "WR" => Said::Wr { wr_id: number(fields, "wr_id")?, remote: number(fields, "remote_addr") },
        "WC" => Said::Wc {
            wr_id: number(fields, "wr_id")?,
            status: value(fields, "status")?,
            opcode: value(fields, "opcode"),
            qp_num: number(fields, "qp_num")?,
        },
        "CM event" => {
            let (event, status) = fields.split_once(" status=")?;
            Said::CmEvent { event, status }
        }
        "the stages so far" => Said::StagesSoFar,
        _ => return None,
    })
}

/// A call: its name begins the line.
fn call(words: &str) -> Option<Said<'_>> {
    let (name, with) = words.split_once([' ', ':']).unwrap_or((words, ""));
    let with = with.trim_start();
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let (library, _) = name.split_once('_').filter(|_| is_name(name))?;
    Some(match name {
        "ibv_reg_mr" => Said::RegMr { access: value(with, "access")? },
        "ibv_post_send" => {
            let (wr_id, len) = (number(with, "wr_id")?, number(with, "len")?);
            Said::Post { opcode: with.split(' ').next(), wr_id, len }
        }
        "ibv_post_recv" | "ibv_post_srq_recv" => {
            Said::Post { opcode: None, wr_id: number(with, "wr_id")?, len: number(with, "len")? }
        }
        _ if ["rdma", "ibv"].contains(&library) => Said::Call { name, with },
        _ => return None,
    })
}

fn moved(line: &Line) -> Option<Said<'_>> {
    let qpn = line.field("qp").filter(|_| line.fact() == Some("state"))?;
    Some(Said::Moved { qpn: qpn.parse().ok()?, state: line.field("to")? })
}

/// The value of `key=` in a line.
pub fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

/// A number as the log has it, decimal or with 0x.
pub fn number(text: &str, key: &str) -> Option<u64> {
    let digits = value(text, key)?;
    digits.strip_prefix("0x").map_or_else(|| digits.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(program: &str, text: &str) -> Line {
        Line::of_program(program, text.into(), true)
    }

    #[test]
    fn other_words_say_nothing_of_this() {
        let hostile =
            ["QP ", "QP x: to", "QP 1: to ", "QP: qpn= state=", "QP: state=QP: ", "MR: addr=0x len=-1", "WC: ", ": "];
        for words in
            hostile.into_iter().chain(["", "ibv_post_send", "ibv_reg_mr", "rdma", "rdma_Connect", "é_x", "CM event: x"])
        {
            for program in ["lesson-04", Line::DEVICE, Line::KERNEL, Line::LAB] {
                assert_eq!(Said::of(&line(program, words)), Said::Other(words), "{program}: {words}");
            }
        }
    }
}
