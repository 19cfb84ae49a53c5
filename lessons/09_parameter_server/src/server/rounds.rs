//! The server's rounds: who has delivered, who is late, and who can go on.

use common::{deadline::answer_limit, wc::*};

use super::*;

impl Server {
    pub fn take_completions(&mut self) -> Result<()> {
        let Some(house) = &self.house else { return Ok(()) };
        if house.channel.try_get_cq_event()?.is_some() {
            // Arm again before the poll, so that what comes after the poll wakes us.
            house.cq.req_notify()?;
        }
        // Take them all, so that none of a worker that has gone is left over. A new QP may get its number.
        while let Some(wc) = self.house.as_ref().map_or(Ok(None), |house| house.cq.poll_one())? {
            self.quiet = Deadline::knock("workers");
            let its = self.connections.iter().find(|(_, connection)| connection.qp.qp_num() == wc.qp_num);
            let Some((&number, _)) = its else { continue };
            if let Err(error) = self.on_completion(number, wc) {
                self.dismiss(number, &error);
            }
        }
        Ok(())
    }

    fn on_completion(&mut self, number: u8, wc: WorkCompletion) -> Result<()> {
        let _stage = stage("on_completion");
        // Only an echo. The cause comes with another status, or as an event.
        if wc.is_flush() {
            return Ok(());
        }
        let wc = wc.into_success()?;
        let said = match (wc.opcode(), wc.imm_data()) {
            (Some(IBV_WC_SEND), _) => return Ok(()),
            (Some(IBV_WC_RECV_RDMA_WITH_IMM), Some(said)) => said,
            _ => return Err(Error::content("it sent what no worker sends", "Run lesson 09 on both sides")),
        };
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        let ((round, worker), took) = (round_and_worker(said), connection.since.elapsed());
        if connection.state != State::Working || worker != number {
            let what = format!("it is {:?}, and delivers as worker {worker} for round {round}", connection.state);
            return Err(Error::content(what, "Run lesson 09 on both sides"));
        }
        let gradient = connection.take_gradient()?;
        connection.loss = Some(gradient.loss);
        self.slowest = self.slowest.max((took, number));
        self.training.deliver(number, round, gradient)
    }

    pub fn look_at_the_clock(&mut self) -> Result<()> {
        if !self.timer.gone_off()? {
            return Ok(());
        }
        // Half of what a worker waits for our word. Otherwise the others would give up on us before we give up on this one.
        let (round, limit) = (self.training.round, answer_limit() / 2);
        for number in self.in_state(&[State::Working, State::Stopped]) {
            let Some(connection) = self.connections.get(&number) else { continue };
            let (state, age) = (connection.state, connection.since.elapsed());
            if age > limit {
                self.dismiss(number, &Error::Deadline { awaited: format!("it, {state:?}"), limit });
            } else if age > TICK {
                say!("round {round}: worker {number} is late, {:.1} s", age.as_secs_f32());
            }
        }
        Ok(())
    }

    /// Is a round complete, and who can go on? In the mode sync a round is complete when nobody is at work on it any more, and
    /// in the mode async with every gradient.
    pub fn go_on(&mut self) -> Result<()> {
        let present = self.in_state(&[State::Idle, State::Working, State::Delivered]).len();
        let wait = self.training.in_step && !self.in_state(&[State::Working]).is_empty();
        let Some(house) = self.house.as_mut().filter(|_| present >= self.wanted && !wait) else { return Ok(()) };
        self.wanted = 0;
        let (round, losses) = (self.training.round, self.connections.values().filter_map(|connection| connection.loss));
        let loss = losses.clone().sum::<f64>() / losses.count() as f64;
        if let Some(workers) = self.training.fold(present, loss) {
            house.publish(self.training.round, &self.training.weights)?;
            let (took, last) = std::mem::take(&mut self.slowest);
            let (took, workers) = (took.as_millis(), workers.iter().map(u8::to_string).collect::<Vec<_>>().join(" "));
            say!("round {round}: loss {loss:.6} from workers {workers}; worker {last} was the last, after {took} ms");
        }
        for number in self.in_state(&[State::Idle, State::Delivered]) {
            let word = if self.training.over { STOP } else { immediate(self.training.round, number) };
            if let Some(Err(error)) = self.connections.get_mut(&number).map(|connection| connection.tell(word)) {
                self.dismiss(number, &error);
            }
        }
        Ok(())
    }

    fn in_state(&self, states: &[State]) -> Vec<u8> {
        self.connections
            .iter()
            .filter(|(_, connection)| states.contains(&connection.state))
            .map(|(number, _)| *number)
            .collect()
    }
}
