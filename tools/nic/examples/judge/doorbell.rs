//! Lesson 16: from a work request to a packet, from its ACK to a completion, from there to the program's bell. The recorded
//! conversations of queue pairs are played, once with ours as the server and once as the client.

use crate::came;
use crate::recorded::Recorded;
use crate::side::Side;
use crate::talk::talks;
use crate::Verdict;
use nic::completion::{Alarm, Armed, Completion, Status, WcOpcode};

/// The holes in their order, lesson 16's and 17's: what a difference is a fault of.
pub type Hole = usize;
pub const MOVES: Hole = 1;
pub const SEND: Hole = 2;
pub const PACKET: Hole = 3;
pub const RECEIVE: Hole = 4;
pub const PLACE: Hole = 5;
pub const ACK: Hole = 6;
/// Lesson 17's: a WRITE, the answer to a READ, and what that brings.
pub const WRITE: Hole = 10;
pub const READ: Hole = 11;
pub const BYTES: Hole = 12;
/// What comes of a loss, and which NAK a refusal is: that is lesson 18's, and 19's.
pub const LATER: Hole = 99;

/// Plays all conversations; then come the situations that no capture has.
pub fn played(frames: &[Recorded], hole: Hole, situations: fn() -> Verdict) -> Verdict {
    let seen = replay(frames, hole)?;
    situations().map(|own| format!("{own}; {seen}"))
}

/// Plays all conversations, and says the first difference that a hole up to this one has to answer for. With later holes open
/// a conversation ends early.
pub fn replay(frames: &[Recorded], hole: Hole) -> Verdict {
    let (mut same, mut whole) = (0, 0);
    // So many go on with what a hole of this lesson does, or of the next one, or of a later one.
    let mut waiting = [0; 3];
    let talks = talks(frames);
    for talk in &talks {
        for me in [talk.server, talk.client] {
            let mut side = match Side::new(talk, me) {
                Err((cause, said)) if cause <= hole => return Err(said),
                Err(_) => continue,
                Ok(side) => side,
            };
            match side.replay(hole) {
                Ok(()) => whole += 1,
                Err((cause, said)) if cause <= hole => return Err(said),
                Err((cause, _)) => waiting[usize::from(cause > ACK) + usize::from(cause > BYTES)] += 1,
            }
            same += side.same;
        }
    }
    let all = talks.len() * 2;
    let names = ["later in lesson 16", "in lesson 17", "in lessons 18 and 19"];
    let others = names.iter().zip(waiting).filter(|(_, count)| *count > 0);
    let others: Vec<String> = others.map(|(name, count)| format!("{count} {name}")).collect();
    let others = if others.is_empty() { String::new() } else { format!("; the others go on: {}", others.join(", ")) };
    Ok(format!("{same} packets are as rdma_rxe sent them; {whole} of {all} conversations come to their end{others}."))
}

/// Which completion wakes a program that has asked for it.
pub fn bell() -> Verdict {
    let mut looked = 0;
    for armed in [Armed::No, Armed::Solicited, Armed::Any] {
        for (status, solicited) in
            [Status::Success, Status::WrFlushErr].into_iter().flat_map(|s| [(s, false), (s, true)])
        {
            let completion = completion(status, solicited);
            let is_error = status != Status::Success;
            let has_to = armed == Armed::Any || armed == Armed::Solicited && (solicited || is_error);
            let mut alarm = Alarm::default();
            alarm.arm(armed);
            let asked = match armed {
                Armed::No => "has not asked",
                Armed::Solicited => "has asked for solicited completions",
                Armed::Any => "has asked for any completion",
            };
            let mark = if solicited { "solicited" } else { "not solicited" };
            let what = format!("The program {asked}; one comes, {}, {mark}", status.name());
            came::now(&*what);
            let word = |rings: bool| if rings { "the bell rings" } else { "it is silent" };
            let yours = alarm.rings(&completion);
            if yours != has_to {
                return Err(format!("{what}: {}. Yours: {}.", word(has_to), word(yours)));
            }
            if has_to && alarm.rings(&completion) {
                return Err(format!("{what}: the bell rings. Then a second one: it is silent. Yours rings again."));
            }
            if !has_to && armed == Armed::Solicited && !alarm.rings(&self::completion(Status::Success, true)) {
                return Err(format!("{what}: it is silent. Then a solicited one: the bell rings. Yours is silent."));
            }
            looked += 1;
        }
    }
    Ok(format!("{looked} times the bell rang when it should, and only once."))
}

fn completion(status: Status, solicited: bool) -> Completion {
    let (opcode, immediate, invalidated) = (WcOpcode::Recv, None, None);
    let (wr_id, length, qp, src_qp, grh) = (1, 0, 17, 18, false);
    Completion { wr_id, status, opcode, length, immediate, invalidated, qp, src_qp, grh, solicited }
}
