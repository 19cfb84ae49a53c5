//! Rounds without a network: workers in every order, and old, missing and wrong gradients.

use crate::model::{examples, gradient, Gradient, WEIGHTS};
use crate::training::Training;

const GOAL: (f64, u32) = (0.001, 50);

/// A right gradient; and its loss.
fn deliver(training: &mut Training, worker: u8) -> f64 {
    let gradient = gradient(&examples(worker), &training.weights);
    let loss = gradient.loss;
    training.deliver(worker, training.round, gradient).unwrap();
    loss
}

#[test]
fn whoever_comes_first_the_bits_are_the_same() {
    let mut bits = Vec::new();
    for order in [[1, 2, 3], [3, 1, 2], [2, 3, 1]] {
        let mut training = Training::new(GOAL, true, true);
        while !training.over {
            let losses = order.map(|worker| deliver(&mut training, worker));
            assert_eq!(training.fold(3, losses.iter().sum::<f64>() / 3.0), Some(vec![1, 2, 3]));
        }
        assert!(training.round < 30, "the loss was to be small by now");
        assert!(training.verdict().unwrap().unwrap().starts_with("the same to the bit"));
        bits.push(training.weights.map(f64::to_bits));
    }
    assert!(bits.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_worker_may_leave_and_come_and_the_check_knows_who_took_part() {
    let mut training = Training::new((0.0, 4), true, true);
    for workers in [&[1, 2][..], &[1], &[1, 7, 8], &[8]] {
        for worker in workers {
            deliver(&mut training, *worker);
        }
        // All may have gone meanwhile: then there is no loss, and what they delivered counts.
        assert_eq!(training.fold(8, f64::NAN), Some(workers.to_vec()));
    }
    assert!(training.over && training.fold(1, 1.0).is_none() && training.verdict().is_ok());
}

#[test]
fn one_wrong_bit_is_found() {
    let mut training = Training::new((0.0, 2), true, true);
    let mut gradient = gradient(&examples(1), &training.weights);
    gradient.slope[3] = f64::from_bits(gradient.slope[3].to_bits() ^ 1 << 8);
    training.deliver(1, 1, gradient).unwrap();
    training.fold(1, 1.0);
    let error = training.verdict().unwrap_err().to_string();
    assert!(error.starts_with("after round 1 the weights are not those"), "{error}");
}

#[test]
fn out_of_step_all_arrive_near_the_same_point() {
    let mut training = Training::new((0.001, 500), false, true);
    // The third one always answers for weights that are two versions old.
    let (mut old, mut losses) = (Vec::new(), [1.0; 3]);
    while !training.over {
        old.push((training.round, gradient(&examples(3), &training.weights)));
        for worker in [1, 2] {
            losses[usize::from(worker) - 1] = deliver(&mut training, worker);
            training.fold(3, losses.iter().sum::<f64>() / 3.0);
        }
        let (round, gradient) = old.remove(0);
        losses[2] = gradient.loss;
        training.deliver(3, round, gradient).unwrap();
        training.fold(3, losses.iter().sum::<f64>() / 3.0);
    }
    assert!(training.verdict().unwrap().unwrap().contains("0.1 is allowed"));
    training.weights[0] += 0.2;
    assert!(training.verdict().is_err());
}

#[test]
fn nobody_delivers_for_another_round_or_no_number() {
    let gradient = gradient(&examples(1), &[0.0; WEIGHTS]);
    let mut training = Training::new(GOAL, true, false);
    assert!(training.deliver(1, 0, gradient.clone()).is_err() && training.deliver(1, 2, gradient.clone()).is_err());
    assert!(training.deliver(1, 1, Gradient { loss: f64::NAN, ..gradient.clone() }).is_err());
    assert_eq!(training.fold(1, 1.0), None, "what was refused does not count");
    let mut training = Training::new(GOAL, false, false);
    assert!(training.deliver(1, 0, gradient.clone()).is_ok() && training.deliver(1, 2, gradient).is_err());
    assert_eq!(training.verdict(), Ok(None));
}
