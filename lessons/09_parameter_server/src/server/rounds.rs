//! The server's rounds: who has delivered, who is late, and who can go on.

use std::time::Duration;

use common::deadline::{answer_limit, Deadline};
use common::wc::{IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_SEND};
use common::{say, stage, Error, Result, WorkCompletion};

use super::{Server, TICK};
use crate::house::State;
use crate::layout::{immediate, round_and_worker, STOP};

impl Server {
    pub fn take_completions(&mut self) -> Result<()> {
        let Some(house) = &self.house else { return Ok(()) };
        if house.channel.try_get_cq_event()?.is_some() {
            // Armed again before the poll: what comes after the poll wakes us.
            house.cq.req_notify()?;
        }
        for wc in house.cq.poll()? {
            self.quiet = Deadline::knock("workers");
            // None: a late one, of a worker that has gone.
            let Some(number) = self.house.as_ref().and_then(|house| house.owner_of(&wc)) else { continue };
            if let Err(error) = self.on_completion(number, wc) {
                self.dismiss(number, &error);
            }
        }
        Ok(())
    }

    fn on_completion(&mut self, number: u8, wc: WorkCompletion) -> Result<()> {
        let _stage = stage("on_completion");
        // An echo: the cause comes, or came, with another status, or as an event.
        if wc.is_flush() {
            return Ok(());
        }
        let wc = wc.into_success()?;
        match (wc.opcode(), wc.imm_data()) {
            (Some(IBV_WC_SEND), _) => Ok(()),
            (Some(IBV_WC_RECV_RDMA_WITH_IMM), Some(said)) => self.take_gradient(number, said),
            _ => Err(Error::content("it sent what no worker sends", "Run lesson 09 on both sides")),
        }
    }

    fn take_gradient(&mut self, number: u8, said: u32) -> Result<()> {
        let over = self.training.over;
        let Some(peer) = self.peer(number) else { return Ok(()) };
        let ((round, worker), took) = (round_and_worker(said), peer.since.elapsed());
        if peer.state != State::Working || worker != number {
            let what = format!("it is {:?}, and delivers as worker {worker} for round {round}", peer.state);
            return Err(Error::content(what, "Run lesson 09 on both sides"));
        }
        let gradient = peer.take_gradient()?;
        self.slowest = self.slowest.max((took, number));
        if over {
            Ok(())
        } else {
            self.training.deliver(number, round, gradient)
        }
    }

    pub fn look_at_the_clock(&mut self) -> Result<()> {
        if !self.timer.gone_off()? {
            return Ok(());
        }
        // Half of what a worker waits for a word of ours: none of the others shall be lost with this one.
        let (round, limit) = (self.training.round, answer_limit() / 2);
        for number in self.in_state(&[State::Working, State::Stopped]) {
            let Some((state, age)) = self.peer(number).map(|peer| (peer.state, peer.since.elapsed())) else { continue };
            if age > limit {
                self.dismiss(number, &Error::Deadline { awaited: format!("it, {state:?}"), limit });
            } else if age > TICK {
                say!("round {round}: worker {number} is late, {:.1} s", age.as_secs_f32());
            }
        }
        Ok(())
    }

    /// Whatever has happened: is a round complete, and who can go on? In the mode sync a round is complete when nobody is at
    /// work on it any more, and in the mode async with every gradient.
    pub fn go_on(&mut self) -> Result<()> {
        let present = self.in_state(&[State::Idle, State::Working, State::Delivered]).len();
        self.started |= present >= self.wanted;
        let wait = self.training.in_step && !self.in_state(&[State::Working]).is_empty();
        let Some(house) = self.house.as_mut().filter(|_| self.started && !wait) else { return Ok(()) };
        if let Some(done) = self.training.fold(present) {
            house.publish(self.training.round, &self.training.weights)?;
            let workers = done.workers.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
            let (took, last) = std::mem::replace(&mut self.slowest, (Duration::ZERO, 0));
            let late = format!("worker {last} was the last, after {} ms", took.as_millis());
            say!("round {}: loss {:.6} from workers {workers}; {late}", done.number, done.loss);
        }
        for number in self.in_state(&[State::Idle, State::Delivered]) {
            let round = self.training.round;
            let word = if self.training.over { STOP } else { immediate(round, number) };
            if let Some(Err(error)) = self.peer(number).map(|peer| peer.tell(word)) {
                self.dismiss(number, &error);
            }
        }
        Ok(())
    }

    /// The numbers of the workers in one of these states.
    fn in_state(&self, states: &[State]) -> Vec<u8> {
        let peers = self.house.iter().flat_map(|house| &house.peers);
        peers.filter(|(_, peer)| states.contains(&peer.state)).map(|(number, _)| *number).collect()
    }
}
