//! Programs that are lists of calls, as verbs have them.

use crate::pair::Carrier;
use crate::{Pair, CLIENT, SERVER};
use nic::completion::Completion;
use nic::work::Work;
use std::collections::VecDeque;

/// A call of a program. Bytes are those of its end's buffer, from an offset on.
#[derive(Clone, Debug)]
pub enum Call {
    /// `ibv_post_recv`: wr_id, offset, length.
    PostReceive(u64, usize, usize),
    /// `ibv_post_send`: wr_id, offset, length.
    PostSend(u64, Work, usize, usize),
    /// `ibv_poll_cq`, until this many completions have come in all.
    Wait(usize),
}

/// A program: the calls that it hasn't made yet.
pub type Script = VecDeque<Call>;

/// Runs both programs, the server's first, until each has made its last call, or waits for what never comes: that is left in it.
pub fn run<C: Carrier>(pair: &mut Pair<C>, scripts: &mut [Script; 2]) -> bool {
    let mut go_on =
        |pair: &mut Pair<C>| [SERVER, CLIENT].into_iter().for_each(|end| make(pair, end, &mut scripts[end]));
    go_on(pair);
    pair.run(go_on)
}

/// Makes the calls of one program, up to one that waits or is refused.
fn make<C: Carrier>(pair: &mut Pair<C>, number: usize, script: &mut Script) {
    while let Some(call) = script.front() {
        let end = pair.end(number);
        let (is_made, says) = match *call {
            Call::PostReceive(wr_id, offset, length) => {
                (end.post_receive(wr_id, offset, length).is_ok(), format!("ibv_post_recv wr_id={wr_id} len={length}"))
            }
            Call::PostSend(wr_id, work, offset, length) => (
                end.post(wr_id, work, offset, length).is_ok(),
                format!("ibv_post_send {work} wr_id={wr_id} len={length}"),
            ),
            Call::Wait(count) => {
                let polled: Vec<String> = end.sent.iter().chain(&end.received).map(polled).collect();
                (polled.len() >= count, polled.join("; "))
            }
        };
        if !is_made {
            return;
        }
        pair.wire.says(number, "program", &says);
        script.pop_front();
    }
}

/// A completion, as `common` prints one.
fn polled(wc: &Completion) -> String {
    format!("WC: wr_id={} status={}", wc.wr_id, wc.status.name())
}
