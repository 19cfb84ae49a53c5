//! The server's side of the computation: gradients come, are folded into the weights, and the weights get a new version.
//! And the check: the same computation again, here alone. Without a device, too.

use std::collections::BTreeMap;

use common::{Error, Result};

use crate::model::{step, Gradient, Shard, Weights, WEIGHTS};

/// In the mode async: how far each weight may be from what a computation without any network yields. Both end where the
/// loss is small, but not at the same point.
const TOLERANCE: f64 = 0.1;

/// When the training is over.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// The loss is below this.
    pub loss: f64,
    /// Or so many rounds are over.
    pub rounds: u32,
}

/// One round, folded: its number, from 1; the workers' loss before the step; whose gradients it was made from.
#[derive(Debug, PartialEq)]
pub struct Round {
    pub number: u32,
    pub loss: f64,
    pub workers: Vec<u8>,
}

/// The weights, and what has come for them.
pub struct Training {
    /// The mode sync: all workers wait for each other in every round.
    pub in_step: bool,
    pub weights: Weights,
    /// The round that is open. It is the weights' version, too.
    pub round: u32,
    pub over: bool,
    goal: Goal,
    /// By worker, so that they are added in the order of the numbers, whoever came first: what a sum of floats yields
    /// depends on its order.
    delivered: BTreeMap<u8, Gradient>,
    /// The last loss of each worker that is there.
    losses: BTreeMap<u8, f64>,
    mirror: Option<Mirror>,
}

impl Training {
    /// From weights of zero. With `check`, everything is computed a second time.
    pub fn new(goal: Goal, in_step: bool, check: bool) -> Self {
        let (weights, delivered, losses) = ([0.0; WEIGHTS], BTreeMap::new(), BTreeMap::new());
        let mirror = check.then(Mirror::default);
        Self { in_step, weights, round: 1, over: false, goal, delivered, losses, mirror }
    }

    /// A gradient has come. In the mode sync it must be one for this round; in the mode async it may be older.
    pub fn deliver(&mut self, worker: u8, round: u32, gradient: Gradient) -> Result<()> {
        let fits = if self.in_step { round == self.round } else { round <= self.round };
        if !fits || !gradient.loss.is_finite() || gradient.slope.iter().any(|slope| !slope.is_finite()) {
            let what = format!("a gradient for round {round} in round {}: {gradient:?}", self.round);
            return Err(Error::content(what, "Run lesson 09 on both sides"));
        }
        self.losses.insert(worker, gradient.loss);
        self.delivered.insert(worker, gradient);
        Ok(())
    }

    /// A worker has gone. What it has delivered counts, but its loss is of the past.
    pub fn forget(&mut self, worker: u8) {
        self.losses.remove(&worker);
    }

    /// Folds what has come into the weights, which get the next version. None if nothing has come. `present` is how many
    /// workers there are: in the mode async one gradient of four is a quarter of a step.
    pub fn fold(&mut self, present: usize) -> Option<Round> {
        let delivered = std::mem::take(&mut self.delivered);
        if delivered.is_empty() || self.over {
            return None;
        }
        let share = if self.in_step { delivered.len() } else { present.max(delivered.len()) };
        step(&mut self.weights, delivered.values(), share);
        let loss = match self.losses.len() {
            0 => f64::INFINITY,
            count => self.losses.values().sum::<f64>() / count as f64,
        };
        let round = Round { number: self.round, loss, workers: delivered.into_keys().collect() };
        if let Some(mirror) = &mut self.mirror {
            mirror.follow(&round, self.in_step.then_some(&self.weights));
        }
        self.over = loss < self.goal.loss || self.round >= self.goal.rounds;
        self.round += 1;
        Some(round)
    }

    /// What the check found, in words. Nothing if nobody asked for one.
    pub fn verdict(&mut self) -> Result<Option<String>> {
        let Some(mirror) = &mut self.mirror else { return Ok(None) };
        let rounds = self.round - 1;
        let (equal, what) = match (self.in_step, mirror.differs) {
            (true, None) => (true, format!("the same to the bit as computed here alone, in all {rounds} rounds")),
            (true, Some(round)) => {
                (false, format!("after round {round} the weights are not those computed here alone"))
            }
            (false, _) => mirror.compare(self.goal, &self.weights),
        };
        let next =
            "The log says whose gradients each round was made from; async needs --rounds until the loss is small";
        if equal {
            Ok(Some(what))
        } else {
            Err(Error::content(what, next))
        }
    }
}

/// The same computation without any network: the examples of all workers are generated here.
#[derive(Default)]
struct Mirror {
    weights: Weights,
    shards: BTreeMap<u8, Shard>,
    /// The first round whose weights were not the same.
    differs: Option<u32>,
}

impl Mirror {
    /// Remembers who took part; and, to compare with `theirs`, repeats the round with the same workers.
    fn follow(&mut self, round: &Round, theirs: Option<&Weights>) {
        for worker in &round.workers {
            self.shards.entry(*worker).or_insert_with(|| Shard::generate(*worker));
        }
        let Some(theirs) = theirs else { return };
        self.step(&round.workers);
        if self.weights.map(f64::to_bits) != theirs.map(f64::to_bits) {
            self.differs.get_or_insert(round.number);
        }
    }

    /// One step of all these together; and their loss before it.
    fn step(&mut self, workers: &[u8]) -> f64 {
        let shards = workers.iter().filter_map(|worker| self.shards.get(worker));
        let gradients: Vec<Gradient> = shards.map(|shard| shard.gradient(&self.weights)).collect();
        step(&mut self.weights, gradients.iter(), gradients.len());
        gradients.iter().map(|gradient| gradient.loss).sum::<f64>() / gradients.len() as f64
    }

    /// Solves the whole problem with all who took part, and looks how far `theirs` are from the solution.
    fn compare(&mut self, goal: Goal, theirs: &Weights) -> (bool, String) {
        let workers: Vec<u8> = self.shards.keys().copied().collect();
        let solved = (0..goal.rounds).any(|_| self.step(&workers) < goal.loss);
        let off = self.weights.iter().zip(theirs).map(|(ours, theirs)| (ours - theirs).abs()).fold(0.0, f64::max);
        let what = format!("each weight within {off:.4} of what is computed here alone; {TOLERANCE} is allowed");
        (solved && off <= TOLERANCE, what)
    }
}

#[cfg(test)]
#[path = "../checks/training.rs"]
mod tests;
