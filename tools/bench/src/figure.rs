//! A figure: what was measured again and again of ours, and of its reference in the same rounds.

use crate::row::{Row, Values, Wanted};

pub struct Figure {
    pub what: String,
    pub unit: &'static str,
    /// One value of each round, in order; NaN where a program stood still.
    pub ours: Vec<f64>,
    /// What stands beside it, and its values in the same rounds. No values: there is no reference.
    pub beside: String,
    pub reference: Vec<f64>,
    pub wanted: Option<Wanted>,
}

impl Figure {
    pub fn new(what: &str, unit: &'static str, ours: Vec<f64>) -> Self {
        let (what, beside) = (what.into(), String::new());
        Self { what, unit, ours, beside, reference: Vec::new(), wanted: None }
    }

    pub fn beside(self, beside: &str, reference: Vec<f64>) -> Self {
        Self { beside: beside.into(), reference, ..self }
    }

    pub fn wanted(self, wanted: Wanted) -> Self {
        Self { wanted: Some(wanted), ..self }
    }

    /// What the rounds come to. The ratio is that of single rounds: what was measured within the same seconds.
    pub fn row(&self) -> Row {
        let ratios: Vec<f64> = self.ours.iter().zip(&self.reference).map(|(ours, other)| ours / other).collect();
        Row {
            what: self.what.clone(),
            unit: self.unit.into(),
            ours: values(&self.ours).unwrap_or(Values::one(f64::NAN)),
            beside: self.beside.clone(),
            other: values(&self.reference),
            ratio: values(&ratios),
            wanted: self.wanted,
            repeats: None,
        }
    }
}

fn values(rounds: &[f64]) -> Option<Values> {
    let (median, low, high) = spread(rounds);
    let still = rounds.iter().filter(|value| value.is_nan()).count();
    match rounds {
        [] => None,
        [one] => Some(Values::one(*one)),
        _ => Some(Values { median, spread: Some((low, high)), still }),
    }
}

/// Median, minimum and maximum.
pub fn spread(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
    let (half, last) = (sorted.len() / 2, sorted.len().saturating_sub(1));
    let median = if sorted.len() % 2 == 0 && half > 0 { (at(half - 1) + at(half)) / 2.0 } else { at(half) };
    (median, at(0), at(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_medians_and_spreads_of_the_rounds_that_did_not_stand_still() {
        let figure = Figure::new("x", "µs", vec![3.0, 1.0, 2.0, 9.0]).beside("y", vec![3.0, 2.0, 2.0, f64::NAN]);
        let row = figure.row();
        assert_eq!(row.ours, Values { median: 2.5, spread: Some((1.0, 9.0)), still: 0 });
        assert_eq!(row.other, Some(Values { median: 2.0, spread: Some((2.0, 3.0)), still: 1 }));
        assert_eq!(row.ratio, Some(Values { median: 1.0, spread: Some((0.5, 1.0)), still: 1 }));
        assert_eq!(spread(&[1.0, 2.0, 4.0, 8.0]), (3.0, 1.0, 8.0));
        assert_eq!(Figure::new("x", "", vec![1.0]).row().ours, Values::one(1.0));
    }
}
