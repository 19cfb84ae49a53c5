//! A figure: what was measured again and again of ours, and of its reference in the same rounds.

/// What a figure has to hold.
#[derive(Clone, Copy)]
pub enum Wanted {
    AtMost(f64),
    AtLeast(f64),
}

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

    /// Of each round: what was measured within the same seconds. Median, lowest and highest.
    fn ratio(&self) -> Option<(f64, f64, f64)> {
        let rounds: Vec<f64> = self.ours.iter().zip(&self.reference).map(|(ours, other)| ours / other).collect();
        (!rounds.is_empty()).then(|| spread(&rounds))
    }

    /// A row of the table.
    pub fn row(&self) -> String {
        let values = |values: &[f64]| match values {
            [] => "–".to_owned(),
            [one] => format!("{} (one run)", short(*one)),
            many => {
                let (median, low, high) = spread(many);
                let still = many.iter().filter(|value| value.is_nan()).count();
                let still = if still > 0 { format!(", {still} stood still") } else { String::new() };
                format!("{} ({}–{}{still})", short(median), short(low), short(high))
            }
        };
        let ratio = self.ratio();
        let shown = ratio.map_or("–".into(), |(ratio, low, high)| match self.ours.len() {
            1 => short(ratio),
            _ => format!("**{}** ({}–{})", short(ratio), short(low), short(high)),
        });
        let held = |held: bool| if held { "yes" } else { "**no**" };
        let verdict = match (self.wanted, ratio) {
            (Some(Wanted::AtMost(most)), Some((ratio, ..))) => format!("≤ {most}: {}", held(ratio <= most)),
            (Some(Wanted::AtLeast(least)), Some((ratio, ..))) => format!("≥ {least}: {}", held(ratio >= least)),
            _ => String::new(),
        };
        let (ours, other) = (values(&self.ours), values(&self.reference));
        format!("| {} | {} | {ours} | {} | {other} | {shown} | {verdict} |", self.what, self.unit, self.beside)
    }
}

pub const HEAD: &str = "| what | unit | ours: median (min–max) | beside | the other: median (min–max) | ratio (of single rounds) | wanted |\n\
                        |---|---|---|---|---|---|---|\n";

/// Median, minimum and maximum.
pub fn spread(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
    let (half, last) = (sorted.len() / 2, sorted.len().saturating_sub(1));
    let median = if sorted.len() % 2 == 0 && half > 0 { (at(half - 1) + at(half)) / 2.0 } else { at(half) };
    (median, at(0), at(last))
}

/// Three digits, or all before the point.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_medians_spreads_and_a_verdict() {
        let figure = Figure::new("x", "µs", vec![3.0, 1.0, 2.0, 9.0]).beside("y", vec![3.0, 2.0, 2.0, f64::NAN]);
        let row = figure.wanted(Wanted::AtMost(1.05)).row();
        let other = "2.00 (2.00–3.00, 1 stood still)";
        assert_eq!(row, format!("| x | µs | 2.50 (1.00–9.00) | y | {other} | **1.00** (0.50–1.00) | ≤ 1.05: yes |"));
        assert_eq!(spread(&[1.0, 2.0, 4.0, 8.0]), (3.0, 1.0, 8.0));
        assert_eq!(Figure::new("x", "", vec![1.0]).row(), "| x |  | 1.00 (one run) |  | – | – |  |");
    }
}
