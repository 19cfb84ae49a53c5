//! Two flows of DCQCN on a link of 40 Gbit/s, with the parameters of the paper: this NIC's, with a switch between, beside the paper's
//! fluid model. Prints what the picture shows in words, a table, an empty line, and the picture. `make docs` puts them on a page.

#![allow(clippy::unwrap_used)] // It has no input that could be wrong.

use nic::congestion::Parameters;
use pair::fluid::Fluid;
use pair::network::{jain, Network, PAPER};
use run::plot::{self, units, Curve, Panel, Parts, Steps};
use run::switch::{Ecn, Switch};
use std::time::Duration;

/// The second flow begins when the first one has the link for itself.
const BEGINS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(2)];
const END: Duration = Duration::from_millis(60);

/// What came of two flows, in parts of the time.
struct Outcome {
    /// Bits per second.
    rates: Vec<Vec<f64>>,
    /// Bytes.
    queue: Vec<f64>,
}

fn main() {
    let parts = Parts::new((0, END.as_nanos() as u64), 120);
    let settings = Switch::parse(PAPER, &["one"]).unwrap().unwrap().settings;
    let ecn = settings.ecn.unwrap();
    let (rates, queue) = Fluid::new(Parameters::default(), ecn, settings.rate, &BEGINS).run(&parts, END);
    let (ours, model) = (ours(&parts), Outcome { rates, queue });
    let [of_ours, of_model] = [&ours, &model].map(|outcome| outcome.told(&parts, settings.rate as f64));
    println!(
        "Rates of two flows, and the queue between them, over 60 ms. This NIC: {}. The paper's fluid model: {}",
        of_ours.join(", "),
        of_model.join(", ")
    );
    println!("\n| | this NIC and switch | the paper's fluid model |\n|---|---|---|");
    for ((what, ours), model) in WHAT.iter().zip(&of_ours).zip(&of_model) {
        println!("| {what} | {ours} | {model} |");
    }
    println!("\n{}", draw(&ours, &model, ecn));
}

/// The run of this NIC's core, and of the switch's model.
fn ours(parts: &Parts) -> Outcome {
    let mut network = Network::new(PAPER, 1024, &BEGINS).unwrap();
    network.run(END);
    let mut queue = Steps::default();
    network.queue.iter().for_each(|(time, bytes)| queue.push(time.as_nanos() as u64, *bytes as f64));
    Outcome { rates: network.rates(parts), queue: queue.means(parts) }
}

/// What is told of an outcome, in this order.
const WHAT: [&str; 4] = [
    "the two have all of the link again",
    "Jain's index is 0.95 or more",
    "the queue's mean, from 40 to 60 ms",
    "Jain's index, from 40 to 60 ms",
];

impl Outcome {
    fn told(&self, parts: &Parts, line: f64) -> [String; 4] {
        let (one, two) = (&self.rates[0], &self.rates[1]);
        let ms = |part: usize| part as f64 * parts.seconds() * 1e3;
        let pairs = || one.iter().zip(two);
        let begun = two.iter().position(|rate| *rate > 0.0).unwrap_or(0);
        // The first part is the burst with which the second one begins.
        let full =
            pairs().skip(begun + 2).position(|(one, two)| one + two > 0.95 * line).map_or(0, |at| at + begun + 2);
        let unfair = pairs().rposition(|(one, two)| jain(&[*one, *two]) < 0.95).unwrap_or(0);
        let late = one.len() * 2 / 3;
        let mean = |values: &[f64]| values[late..].iter().sum::<f64>() / values[late..].len() as f64;
        let queue = mean(&self.queue);
        [
            format!("at {:.1} ms", ms(full)),
            format!("from {:.1} ms on", ms(unfair + 1)),
            units::with(queue, units::bytes(queue)),
            format!("{:.3}", jain(&[mean(one), mean(two)])),
        ]
    }
}

fn draw(ours: &Outcome, model: &Outcome, ecn: Ecn) -> String {
    let curve = |name: &str, values: &[f64], look| Curve { name: name.into(), values: values.to_vec(), look };
    let rates = Panel {
        title: "The rate of each flow".into(),
        unit: units::rate,
        curves: vec![
            curve("first flow", &ours.rates[0], (0, 0)),
            curve("second flow", &ours.rates[1], (1, 0)),
            curve("model: first", &model.rates[0], (0, 2)),
            curve("model: second", &model.rates[1], (1, 2)),
        ],
        levels: Vec::new(),
    };
    let queue = Panel {
        title: "What waits in the switch".into(),
        unit: units::bytes,
        curves: vec![curve("this switch", &ours.queue, (3, 0)), curve("model", &model.queue, (3, 2))],
        levels: vec![("Kmin".into(), ecn.none as f64), ("Kmax".into(), ecn.all as f64)],
    };
    plot::draw("Two flows of DCQCN", "Two flows share a link of 40 Gbit/s", END.as_nanos() as u64, &[rates, queue])
}
