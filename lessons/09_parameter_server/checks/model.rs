//! The arithmetic by itself.

use crate::model::*;

/// So many rounds with these workers, from zero.
fn train(workers: &[u8], rounds: usize) -> (Weights, f64) {
    let shards: Vec<_> = workers.iter().map(|number| examples(*number)).collect();
    let (mut weights, mut loss) = ([0.0; WEIGHTS], 0.0);
    for _ in 0..rounds {
        let gradients: Vec<Gradient> = shards.iter().map(|shard| gradient(shard, &weights)).collect();
        loss = gradients.iter().map(|gradient| gradient.loss).sum::<f64>() / workers.len() as f64;
        step(&mut weights, gradients.iter(), workers.len());
    }
    (weights, loss)
}

#[test]
fn the_descent_finds_what_the_examples_were_made_from() {
    for workers in [&[1][..], &[1, 2, 3], &[1, 2, 3, 4, 5, 6, 7, 8]] {
        let (weights, loss) = train(workers, 50);
        assert!(loss < 0.001, "{workers:?}: {loss}");
        assert!(weights.iter().zip(TRUTH).all(|(found, truth)| (found - truth).abs() < 0.05), "{weights:?}");
    }
}

#[test]
fn the_same_in_the_same_order_is_the_same_to_the_bit() {
    let bits = |workers: &[u8]| train(workers, 1).0.map(f64::to_bits);
    assert_eq!(bits(&[1, 2, 3]), bits(&[1, 2, 3]));
    assert_ne!(bits(&[1, 2, 3]), bits(&[3, 2, 1]), "the order of a sum of floats matters");
    assert_ne!(bits(&[1, 2, 3]), bits(&[1, 2, 4]));
}

#[test]
fn the_slope_is_the_derivative_of_the_loss() {
    let (shard, at) = (examples(5), TRUTH.map(|weight| weight / 2.0));
    let here = gradient(&shard, &at);
    for index in 0..WEIGHTS {
        let mut near = at;
        near[index] += 1e-6;
        let slope = (gradient(&shard, &near).loss - here.loss) / 1e-6;
        assert!((slope - here.slope[index]).abs() < 1e-4, "{index}: {slope}");
    }
}
