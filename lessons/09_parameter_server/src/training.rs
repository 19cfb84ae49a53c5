//! The server's side of the computation: gradients come, are folded into the weights, and the weights get a new version.
//! And the check, which computes everything a second time, here alone. None of it needs a device.

use std::collections::{BTreeMap, BTreeSet};

use common::{Error, Result};

use crate::model::{examples, gradient, step, Gradient, Weights};

/// In the mode async, how far each weight may be from what a computation without any network yields. Both end where the
/// loss is small, but not at the same point.
const TOLERANCE: f64 = 0.1;

/// The weights, and what has come for them.
#[derive(Default)]
pub struct Training {
    /// The training is over when the loss is below the first number, or after as many rounds as the second.
    goal: (f64, u32),
    /// In the mode sync all workers wait for each other in every round.
    pub in_step: bool,
    pub weights: Weights,
    /// The round that's open, which is also the version of the weights.
    pub round: u32,
    pub over: bool,
    /// By worker. They're added in the order of the workers' numbers, because a sum of floats depends on its order.
    delivered: BTreeMap<u8, Gradient>,
    /// With a check, the weights of the same computation without any network, from the examples of those who took part.
    alone: Option<Weights>,
    took_part: BTreeSet<u8>,
    /// The first round whose weights were not the same.
    differs: Option<u32>,
}

impl Training {
    pub fn new(goal: (f64, u32), in_step: bool, check: bool) -> Self {
        Self { goal, in_step, round: 1, alone: check.then(Weights::default), ..Self::default() }
    }

    /// A gradient has come. In the mode sync it must be one for this round; in the mode async it may be older.
    pub fn deliver(&mut self, worker: u8, round: u32, gradient: Gradient) -> Result<()> {
        let fits = if self.in_step { round == self.round } else { round <= self.round };
        if !fits || !gradient.loss.is_finite() || gradient.slope.iter().any(|slope| !slope.is_finite()) {
            let what = format!("a gradient for round {round} in round {}: {gradient:?}", self.round);
            return Err(Error::content(what, "Run lesson 09 on both sides"));
        }
        self.delivered.insert(worker, gradient);
        Ok(())
    }

    /// Folds what has come into the weights, which get the next version, and returns whose it was, or None if nothing has come.
    /// `present` is how many workers there are, because in the mode async one gradient of four is a quarter of a step. `loss`
    /// is the mean of theirs. If a worker has gone, the gradient that it delivered still counts, but its loss doesn't.
    pub fn fold(&mut self, present: usize, loss: f64) -> Option<Vec<u8>> {
        let delivered = std::mem::take(&mut self.delivered);
        if delivered.is_empty() || self.over {
            return None;
        }
        let share = if self.in_step { delivered.len() } else { present.max(delivered.len()) };
        step(&mut self.weights, delivered.values(), share);
        let workers: Vec<u8> = delivered.into_keys().collect();
        self.check(&workers);
        self.over = loss < self.goal.0 || self.round >= self.goal.1;
        self.round += 1;
        Some(workers)
    }

    /// In the mode sync, takes the same step here alone. Are the weights the same?
    fn check(&mut self, workers: &[u8]) {
        self.took_part.extend(workers);
        let Some(alone) = self.alone.as_mut().filter(|_| self.in_step) else { return };
        step_alone(alone, workers);
        if alone.map(f64::to_bits) != self.weights.map(f64::to_bits) {
            self.differs.get_or_insert(self.round);
        }
    }

    /// What the check found, in words. Nothing if nobody asked for one.
    pub fn verdict(&self) -> Result<Option<String>> {
        let (Some(alone), rounds) = (self.alone, self.round - 1) else { return Ok(None) };
        let wrong = |what| Error::content(what, "The log says whose gradients each round was made from");
        match self.differs {
            _ if !self.in_step => self.solve(alone).map(Some),
            None => Ok(Some(format!("the same to the bit as computed here alone, in all {rounds} rounds"))),
            Some(round) => Err(wrong(format!("after round {round} the weights are not those computed here alone"))),
        }
    }

    /// In the mode async, solves the whole problem with all who took part. Are our weights near the solution?
    fn solve(&self, mut alone: Weights) -> Result<String> {
        let workers: Vec<u8> = self.took_part.iter().copied().collect();
        let solved = (0..self.goal.1).any(|_| step_alone(&mut alone, &workers) < self.goal.0);
        let off = alone.iter().zip(&self.weights).map(|(alone, ours)| (alone - ours).abs()).fold(0.0, f64::max);
        let what = format!("each weight within {off:.4} of what is computed here alone; {TOLERANCE} is allowed");
        if !solved || off > TOLERANCE {
            return Err(Error::content(what, "Give more --rounds, until the loss is small"));
        }
        Ok(what)
    }
}

/// One step of all these workers together, whose examples we generate here. Returns their loss before it.
fn step_alone(weights: &mut Weights, workers: &[u8]) -> f64 {
    let gradients: Vec<Gradient> = workers.iter().map(|worker| gradient(&examples(*worker), weights)).collect();
    step(weights, gradients.iter(), gradients.len());
    gradients.iter().map(|gradient| gradient.loss).sum::<f64>() / gradients.len() as f64
}
