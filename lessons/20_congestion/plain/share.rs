//! How fairly something is shared.

/// Jain's index: 1 if all have the same, 1/n if one has everything (Jain, Chiu, Hawe: DEC-TR-301, 1984).
pub fn jain(shares: &[usize]) -> f64 {
    let (sum, squares) = shares
        .iter()
        .map(|share| *share as f64)
        .fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_for_all_alike_and_one_nth_for_one_alone() {
        assert_eq!([jain(&[7, 7, 7, 7]), jain(&[9, 0, 0, 0]), jain(&[0, 0])], [1.0, 0.25, 1.0]);
    }
}
