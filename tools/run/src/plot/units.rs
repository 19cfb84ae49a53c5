//! Numbers for people: three digits and a unit.

/// A unit, and how much of the base it is.
pub type Unit = (&'static str, f64);

const BYTES: [Unit; 4] = [("B", 1.0), ("KB", 1024.0), ("MB", 1_048_576.0), ("GB", 1_073_741_824.0)];
const RATES: [Unit; 4] = [("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
const TIMES: [Unit; 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// The unit for this many bytes; a KB is 1,024 of them, as in the wire's grammar.
pub fn bytes(most: f64) -> Unit {
    fitting(&BYTES, most)
}

/// The unit for this many bits per second.
pub fn rate(most: f64) -> Unit {
    fitting(&RATES, most)
}

/// The unit for this many nanoseconds.
pub fn time(most: f64) -> Unit {
    fitting(&TIMES, most)
}

/// The largest one of which it is at least 1.
fn fitting(units: &[Unit], most: f64) -> Unit {
    units.iter().rev().find(|(_, of)| most >= *of).copied().unwrap_or(units[0])
}

/// In this unit, with three digits.
pub fn number(value: f64, (_, of): Unit) -> String {
    match value / of {
        0.0 => "0".into(),
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// With this unit behind it.
pub fn with(value: f64, unit: Unit) -> String {
    format!("{} {}", number(value, unit), unit.0)
}
