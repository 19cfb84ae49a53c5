//! The fluid model of DCQCN (Zhu et al., SIGCOMM 2015, section 5.1, equations 5 to 9): rates, α and the queue as quantities that
//! change without steps, with what a packet is marked by only in the mean. The paper shows that its NICs come close to it, and chooses
//! the parameters by it. So it is here for the paper's own NICs and switches.
//!
//! It leaves out what is rare with these parameters: the hyper increase. It takes time in steps of a microsecond (Euler).

use nic::congestion::Parameters;
use run::plot::{Parts, Steps};
use run::switch::Ecn;
use std::collections::VecDeque;
use std::time::Duration;

/// Seconds of a step.
const STEP: f64 = 1e-6;
/// τ*: after so long a mark has an effect at the sender, in steps. The paper takes 50 µs.
const DELAY: usize = 50;
/// Bytes of a packet with 1,024 of payload, in a queue, and on the cable with preamble, checksum and gap.
const SIZE: f64 = 1082.0;
const ON_CABLE: f64 = SIZE + 24.0;

/// A flow's reaction point. Rates are in packets per second.
#[derive(Clone, Debug)]
struct Flow {
    begins: f64,
    current: f64,
    target: f64,
    alpha: f64,
}

/// Flows that share a link.
pub struct Fluid {
    parameters: Parameters,
    ecn: Ecn,
    /// The link, in packets per second.
    line: f64,
    flows: Vec<Flow>,
    /// Packets that wait.
    queue: f64,
    /// Queue and rates, step by step, the oldest first.
    past: VecDeque<(f64, Vec<f64>)>,
    now: f64,
}

impl Fluid {
    /// A link in bits per second, and flows that begin with all of it.
    pub fn new(parameters: Parameters, ecn: Ecn, rate: u64, begins: &[Duration]) -> Fluid {
        let line = rate as f64 / 8.0 / ON_CABLE;
        let flow = |begins: &Duration| Flow { begins: begins.as_secs_f64(), current: line, target: line, alpha: 1.0 };
        let flows: Vec<Flow> = begins.iter().map(flow).collect();
        let past = std::iter::repeat((0.0, vec![line; flows.len()])).take(DELAY).collect();
        Fluid { parameters, ecn, line, flows, queue: 0.0, past, now: 0.0 }
    }

    /// Until then: each flow's rate in bits per second, and the bytes that wait, in parts of the time.
    pub fn run(&mut self, parts: &Parts, until: Duration) -> (Vec<Vec<f64>>, Vec<f64>) {
        let (mut rates, mut queue) = (vec![Steps::default(); self.flows.len()], Steps::default());
        for us in 0..until.as_micros() as u64 {
            let (all, waits) = self.step();
            rates.iter_mut().zip(all).for_each(|(steps, rate)| steps.push(us * 1000, rate));
            queue.push(us * 1000, waits);
        }
        (rates.iter().map(|steps| steps.means(parts)).collect(), queue.means(parts))
    }

    /// One step on. Gives each flow's rate in bits per second, and the bytes that wait.
    fn step(&mut self) -> (Vec<f64>, f64) {
        let (queue, rates) = self.past.pop_front().unwrap_or_default();
        // Equation 5.
        let p = self.ecn.share((queue * SIZE) as u64);
        let (parameters, line, now) = (self.parameters, self.line, self.now);
        let packets = parameters.bytes as f64 / ON_CABLE;
        let sends = |flow: &Flow| flow.begins <= now;
        for (flow, rate) in self.flows.iter_mut().zip(rates).filter(|(flow, _)| sends(flow)) {
            flow.step(p, rate, packets, &parameters, line);
        }
        // Equation 6.
        let rates: Vec<f64> = self.flows.iter().map(|flow| if sends(flow) { flow.current } else { 0.0 }).collect();
        self.queue = (self.queue + (rates.iter().sum::<f64>() - line) * STEP).max(0.0);
        self.past.push_back((self.queue, self.flows.iter().map(|flow| flow.current).collect()));
        self.now += STEP;
        (rates.iter().map(|rate| rate * ON_CABLE * 8.0).collect(), self.queue * SIZE)
    }
}

impl Flow {
    /// Equations 7 to 9, with the share that was marked a delay ago, and the rate of then.
    fn step(&mut self, p: f64, rate: f64, packets: f64, parameters: &Parameters, line: f64) {
        let seconds = |duration: Duration| duration.as_secs_f64();
        // That at least one of this many packets is marked.
        let any = |count: f64| 1.0 - (1.0 - p).powf(count);
        // How often this many packets pass without a mark, for each packet.
        let passes = |count: f64| match p {
            p if p <= 0.0 => 1.0 / count,
            p if p >= 1.0 => 0.0,
            p => p / ((1.0 - p).powf(-count) - 1.0),
        };
        let (told, often) =
            (any(seconds(parameters.interval) * rate) / seconds(parameters.interval), parameters.recoveries);
        let by_time = seconds(parameters.timer) * rate;
        let rises = [packets, by_time].map(passes);
        let later = [packets, by_time].map(|count| (1.0 - p).powf(f64::from(often) * count));
        let additive = parameters.additive / 8.0 / ON_CABLE;
        let alpha =
            (any(seconds(parameters.alpha_timer) * rate) - self.alpha) * parameters.g / seconds(parameters.alpha_timer);
        let target = (self.current - self.target) * told
            + additive * rate * rises.iter().zip(later).map(|(rise, later)| rise * later).sum::<f64>();
        let current = -self.current * self.alpha / 2.0 * told
            + (self.target - self.current) / 2.0 * rate * rises.iter().sum::<f64>();
        self.alpha += alpha * STEP;
        self.target = (self.target + target * STEP).min(line);
        self.current = (self.current + current * STEP).min(line);
    }
}
