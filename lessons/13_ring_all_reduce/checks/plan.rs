//! Who sends what, and what is said of it.

use std::collections::VecDeque;

use crate::meeting::Seat;
use crate::plan::*;

fn plan(ranks: usize, elements: usize, slice: usize) -> Plan {
    Plan { ranks, elements, slice }
}

/// All ranks in one process, up to some step. The network is a list for each of them.
fn simulate(plan: &Plan, steps: usize) -> (Vec<Vec<f32>>, Vec<usize>) {
    let mut vectors: Vec<Vec<f32>> = (0..plan.ranks).map(|rank| plan.before(rank)).collect();
    let (mut wires, mut sent) = (vec![VecDeque::new(); plan.ranks], vec![0; plan.ranks]);
    for (step, number) in (0..steps).flat_map(|step| (0..plan.slices()).map(move |number| (step, number))) {
        for rank in 0..plan.ranks {
            if let Some(slice) = plan.sends(rank, step, number) {
                let numbers = vectors[rank][slice.bytes.start / WIDTH..slice.bytes.end / WIDTH].to_vec();
                sent[rank] += slice.bytes.len();
                wires[plan.right_of(rank)].push_back((slice, numbers));
            }
        }
        for rank in 0..plan.ranks {
            let due = plan.sends(plan.left_of(rank), step, number);
            let Some((slice, numbers)) = due.as_ref().and_then(|_| wires[rank].pop_front()) else { continue };
            assert_eq!(Some(&slice), due.as_ref());
            for (at, theirs) in numbers.iter().enumerate() {
                let ours = &mut vectors[rank][slice.bytes.start / WIDTH + at];
                *ours = if step < plan.half() { theirs + *ours } else { *theirs };
            }
        }
    }
    (vectors, sent)
}

#[test]
fn all_have_the_same_sum_to_the_bit_and_have_sent_no_more_than_their_share() {
    for (ranks, elements, slice) in
        (2..=9).flat_map(|ranks| [0, 1, 7, 90, 1001].map(|all| (ranks, all, 64)).into_iter().chain([(ranks, 1001, 4)]))
    {
        let plan = plan(ranks, elements, slice);
        let (vectors, sent) = simulate(&plan, 2 * plan.half());
        let bits = |numbers: &[f32]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        for (rank, vector) in vectors.iter().enumerate() {
            assert_eq!(bits(vector), bits(&in_the_rings_order(&plan)), "rank {rank} in {plan:?}");
            let messages =
                (0..2 * plan.half()).filter(|step| !plan.chunk(plan.sent_by(rank, *step)).is_empty()).count();
            assert!(plan.count(rank) >= messages);
            // A chunk has one element more than its share at most.
            let due = 2 * plan.half() * plan.bytes();
            assert!(sent[rank] * ranks <= due + 2 * plan.half() * WIDTH * ranks, "rank {rank} in {plan:?}");
        }
        assert_eq!(sent.iter().sum::<usize>(), 2 * plan.half() * plan.bytes(), "{plan:?}");
    }
}

/// The tables of the lesson's page, after each of the four steps.
#[test]
fn three_ranks_by_hand() {
    let tables = [
        [[1.1, 2.1, 6.4, 8.4, 5.1, 6.1], [1.2, 2.2, 3.2, 4.2, 10.3, 12.3], [2.5, 4.5, 3.3, 4.3, 5.3, 6.3]],
        [[3.6, 6.6, 6.4, 8.4, 5.1, 6.1], [1.2, 2.2, 9.6, 12.6, 10.3, 12.3], [2.5, 4.5, 3.3, 4.3, 15.6, 18.6]],
        [[3.6, 6.6, 6.4, 8.4, 15.6, 18.6], [3.6, 6.6, 9.6, 12.6, 10.3, 12.3], [2.5, 4.5, 9.6, 12.6, 15.6, 18.6]],
        [[3.6, 6.6, 9.6, 12.6, 15.6, 18.6]; 3],
    ];
    for (step, table) in tables.iter().enumerate() {
        let (vectors, _) = simulate(&plan(3, 6, 64), step + 1);
        let near = |(ours, page): (&f32, &f32)| (ours - page).abs() < 1e-4;
        assert!(vectors.iter().flatten().zip(table.iter().flatten()).all(near), "step {step}: {vectors:?}");
    }
}

#[test]
fn the_order_of_a_sum_is_seen_in_its_bits() {
    let plan = plan(3, 6, 64);
    let by_rank = |element: usize| (0..3).map(|rank| plan.before(rank)[element]).fold(0.0, |sum, next| sum + next);
    let by_rank: Vec<f32> = (0..6).map(by_rank).collect();
    assert_ne!(in_the_rings_order(&plan), by_rank);
    let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4;
    assert!(in_the_rings_order(&plan).iter().zip(&by_rank).all(near));
    assert_eq!(to_numbers(&to_bytes(&plan.before(2))), plan.before(2));
}

#[test]
fn what_cannot_be_done_is_no_plan() {
    for (ranks, elements, slice) in [(1, 6, 64), (10, 6, 64), (2, 6, 0), (2, 6, 3), (2, 1 << 24, 4), (2, 1 << 25, 64)] {
        assert!(!plan(ranks, elements, slice).is_possible(), "{ranks} {elements} {slice}");
    }
    assert!(plan(9, 1 << 24, 65536).is_possible() && plan(2, 0, 4).is_possible());
}

#[test]
fn a_seat_is_told_in_words_that_can_be_read_again() {
    let seat = Seat { rank: 2, plan: plan(4, 6, 64), pause: 20, right: "fd47:91::4".into() };
    let mut padded = seat.encode().into_bytes();
    assert!(padded.len() <= 148, "private data of a ConnectReject");
    padded.resize(148, 0);
    assert_eq!(Seat::decode(&padded), Some(seat.clone()));
    for wrong in
        ["", "RA13 seat", "RA13 seat 4 of 4 elements 6 slice 64 pause 0 right x", "the ring is closed", "\u{0}"]
    {
        assert_eq!(Seat::decode(wrong.as_bytes()), None, "{wrong}");
    }
}
