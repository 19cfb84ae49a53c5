//! Which request of yours stands for which of the reference: the pairing that leaves the least to explain.

/// A pair, or one that has no partner. Positions in the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pair {
    /// Both have it, though perhaps not equal.
    Both(usize, usize),
    /// Only yours has it; the second number is where it would stand in the reference.
    Extra(usize, usize),
    /// Only the reference has it; the first number is where it would stand in yours.
    Missing(usize, usize),
}

/// Two steps may be as different as this costs: a pair of different kinds is cheaper than one missing and one too many.
const ALONE: u32 = 3;

/// Tables larger than this are not worth their memory: the rest is paired in order.
const LARGEST: usize = 4_000_000;

/// Pairs the positions of two lists. `cost(i, j)` is 0 if the two are alike, and larger the less they are.
pub(super) fn align(mine: usize, reference: usize, cost: impl Fn(usize, usize) -> u32) -> Vec<Pair> {
    let shorter = mine.min(reference);
    let head = (0..shorter).take_while(|i| cost(*i, *i) == 0).count();
    let tail = (1..=shorter - head).take_while(|i| cost(mine - i, reference - i) == 0).count();
    let (rows, columns) = (mine - head - tail, reference - head - tail);
    let mut pairs: Vec<Pair> = (0..head).map(|i| Pair::Both(i, i)).collect();
    if (rows + 1).saturating_mul(columns + 1) <= LARGEST {
        pairs.extend(middle(head, rows, columns, cost));
    } else {
        let both = rows.min(columns);
        pairs.extend((head..head + both).map(|i| Pair::Both(i, i)));
        pairs.extend((head + both..head + rows).map(|i| Pair::Extra(i, head + both)));
        pairs.extend((head + both..head + columns).map(|j| Pair::Missing(head + both, j)));
    }
    pairs.extend((1..=tail).rev().map(|i| Pair::Both(mine - i, reference - i)));
    pairs
}

/// The classical table: `best[i][j]` is the least cost of the rest from row `i` and column `j` on.
fn middle(head: usize, rows: usize, columns: usize, cost: impl Fn(usize, usize) -> u32) -> Vec<Pair> {
    let width = columns + 1;
    let mut best = vec![0; (rows + 1) * width];
    let pair = |i: usize, j: usize| cost(head + i, head + j);
    for i in (0..=rows).rev() {
        for j in (0..=columns).rev() {
            let both = if i < rows && j < columns { best[(i + 1) * width + j + 1] + pair(i, j) } else { u32::MAX };
            let extra = if i < rows { best[(i + 1) * width + j] + ALONE } else { u32::MAX };
            let missing = if j < columns { best[i * width + j + 1] + ALONE } else { u32::MAX };
            best[i * width + j] = if i == rows && j == columns { 0 } else { both.min(extra).min(missing) };
        }
    }
    let mut pairs = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < rows || j < columns {
        let here = best[i * width + j];
        if i < rows && j < columns && here == best[(i + 1) * width + j + 1] + pair(i, j) {
            pairs.push(Pair::Both(head + i, head + j));
            (i, j) = (i + 1, j + 1);
        } else if j < columns && here == best[i * width + j + 1] + ALONE {
            pairs.push(Pair::Missing(head + i, head + j));
            j += 1;
        } else {
            pairs.push(Pair::Extra(head + i, head + j));
            i += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use Pair::{Both, Extra, Missing};

    fn aligned(mine: &str, reference: &str) -> Vec<Pair> {
        let (mine, reference) = (mine.as_bytes(), reference.as_bytes());
        align(mine.len(), reference.len(), |i, j| if mine[i] == reference[j] { 0 } else { 4 })
    }

    #[test]
    fn finds_what_is_missing_or_too_much() {
        assert_eq!(aligned("swr", "swr"), [Both(0, 0), Both(1, 1), Both(2, 2)]);
        assert_eq!(aligned("sr", "swr"), [Both(0, 0), Missing(1, 1), Both(1, 2)]);
        assert_eq!(aligned("swwr", "swr").iter().filter(|pair| matches!(pair, Extra(..))).count(), 1);
        assert_eq!(aligned("", "s"), [Missing(0, 0)]);
        assert_eq!(aligned("s", ""), [Extra(0, 0)]);
        assert_eq!(aligned("", ""), []);
    }

    #[test]
    fn one_of_another_kind_is_a_pair() {
        assert_eq!(aligned("sxr", "swr"), [Both(0, 0), Both(1, 1), Both(2, 2)]);
    }

    #[test]
    fn long_lists_need_no_large_table() {
        let pairs = align(10_000, 9_000, |_, _| 4);
        assert_eq!(pairs.len(), 10_000);
    }
}
