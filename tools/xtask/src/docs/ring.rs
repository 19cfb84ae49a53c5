//! Lesson 13's ring by hand: three ranks, and what each has after a step, by the lesson's own plan.

#[allow(dead_code)]
#[path = "../../../../lessons/13_ring_all_reduce/plain/plan.rs"]
mod plan;

use anyhow::{Context, Result};
use plan::Plan;

/// As on the page: chunks of two numbers.
const PLAN: Plan = Plan { ranks: 3, elements: 6, slice: 8 };

/// The vectors at the `start`, after a step (`0`, `1`), or at the `end`, when all ranks have the same.
pub fn drawn(what: &str) -> Result<Vec<String>> {
    let head: String = (0..PLAN.ranks).map(|chunk| format!("{:<16}", format!("chunk {chunk}"))).collect();
    let mut lines = vec![format!("{:12}{}", "", head.trim_end())];
    let nothing = |_| ' ';
    match what {
        "start" => lines.extend((0..PLAN.ranks).map(|rank| row(&format!("rank {rank}"), &PLAN.before(rank), nothing))),
        "end" => lines.push(row("all ranks", &plan::in_the_rings_order(&PLAN), nothing)),
        step => {
            let step = step.parse().context("a ring is drawn at its `start`, after a step, or at its `end`")?;
            let (before, after) = (after(step), after(step + 1));
            lines.extend((0..PLAN.ranks).map(|rank| {
                let left = PLAN.left_of(rank);
                let chunk = PLAN.sent_by(left, step);
                let arrow = if step + 1 == PLAN.half() { '■' } else { '▶' };
                let row = row(&format!("rank {rank}"), &after[rank], |at| if at == chunk { arrow } else { ' ' });
                let two = |vectors: &[Vec<f32>], rank: usize| {
                    let numbers: Vec<String> =
                        vectors[rank][PLAN.chunk(chunk)].iter().map(|it| format!("{it:.1}")).collect();
                    numbers.join(" and ")
                };
                format!("{row}      {} from rank {left}, plus {}", two(&before, left), two(&before, rank))
            }));
        }
    }
    Ok(lines)
}

/// The ranks' vectors before this step: in each one a rank adds its own numbers to what comes from the left.
fn after(steps: usize) -> Vec<Vec<f32>> {
    let mut vectors: Vec<Vec<f32>> = (0..PLAN.ranks).map(|rank| PLAN.before(rank)).collect();
    for step in 0..steps {
        let sent = vectors.clone();
        for (rank, vector) in vectors.iter_mut().enumerate() {
            let left = PLAN.left_of(rank);
            PLAN.chunk(PLAN.sent_by(left, step)).for_each(|element| vector[element] += sent[left][element]);
        }
    }
    vectors
}

fn row(name: &str, vector: &[f32], mark: impl Fn(usize) -> char) -> String {
    let chunk = |chunk: usize| {
        let numbers: Vec<String> = vector[PLAN.chunk(chunk)].iter().map(|number| format!("{number:.1}")).collect();
        format!("{}{:>4}{:>6}", mark(chunk), numbers[0], numbers[1])
    };
    let chunks: Vec<String> = (0..PLAN.ranks).map(chunk).collect();
    format!("{name:<10}{}", chunks.join("     "))
}
