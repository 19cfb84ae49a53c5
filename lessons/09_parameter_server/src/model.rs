//! What is computed: linear regression by gradient descent. Plain arithmetic, without a device.
//!
//! Every operation is an f64's, in a fixed order, and IEEE 754 says what each of them yields. So whoever repeats the
//! computation, on whatever machine, gets the same bits.

/// How many weights there are. The last one stands alone: its feature is always 1.
pub const WEIGHTS: usize = 8;
/// A place in the space that the descent goes through, or a direction in it.
pub type Weights = [f64; WEIGHTS];

/// What the examples were made from. The training finds it, except for the noise, and the server never sees an example.
pub const TRUTH: Weights = [1.5, -2.0, 0.5, 3.0, -1.0, 0.25, 2.0, 0.75];
/// How far an example's target may be off.
const NOISE: f64 = 0.05;
/// How many of them each worker has.
pub const EXAMPLES: usize = 128;
/// How far a step goes down the slope. Twice this would overshoot.
const STEP: f64 = 1.5;

/// How good the weights are, and how they get better: half the mean of the squared errors, and its derivative by each weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    pub loss: f64,
    pub slope: Weights,
}

/// One worker's part of the data, with the features and the target of each example. Its number is a random generator's seed.
pub fn examples(worker: u8) -> Vec<(Weights, f64)> {
    let mut state = u64::from(worker);
    let example = |_| {
        let mut features = [1.0; WEIGHTS];
        features[..WEIGHTS - 1].iter_mut().for_each(|feature| *feature = random(&mut state));
        (features, dot(&TRUTH, &features) + NOISE * random(&mut state))
    };
    (0..EXAMPLES).map(example).collect()
}

pub fn gradient(examples: &[(Weights, f64)], weights: &Weights) -> Gradient {
    let mut sum = Gradient { loss: 0.0, slope: [0.0; WEIGHTS] };
    for (features, target) in examples {
        let error = dot(weights, features) - target;
        sum.loss += error * error / 2.0;
        sum.slope.iter_mut().zip(features).for_each(|(slope, feature)| *slope += error * feature);
    }
    let count = examples.len() as f64;
    Gradient { loss: sum.loss / count, slope: sum.slope.map(|slope| slope / count) }
}

/// One step down: each gradient counts for one of `share`, and they are added in the order given.
pub fn step<'a>(weights: &mut Weights, gradients: impl Iterator<Item = &'a Gradient>, share: usize) {
    let mut sum = [0.0; WEIGHTS];
    for gradient in gradients {
        sum.iter_mut().zip(&gradient.slope).for_each(|(sum, slope)| *sum += slope);
    }
    weights.iter_mut().zip(sum).for_each(|(weight, sum)| *weight -= STEP * (sum / share as f64));
}

fn dot(a: &Weights, b: &Weights) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
}

/// From -1 to 1, by SplitMix64 (Steele, Lea and Flood, 2014): small, and the same everywhere.
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    // The upper 53 bits: as many as an f64 holds.
    (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}
