//! The numbers of DCQCN, and how they are written.

use std::time::Duration;

/// The settings for the two ends of DCQCN. The defaults are the paper's (sections 3 and 5.2, for links of 40 Gbit/s).
///
/// Mellanox's NICs have other defaults (mlxconfig: `RPG_TIME_RESET` 300 µs, `RPG_BYTE_RESET` 32767, `RPG_AI_RATE` 5 Mbit/s,
/// `RPG_HAI_RATE` 50 Mbit/s, `RPG_THRESHOLD` 1, `DCE_TCP_G` 1019/1024), which also shows how little agreement there is on these
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// N: how long the receiver stays silent after a CNP.
    pub interval: Duration,
    /// g: how much a single CNP, or its absence, counts for α.
    pub g: f64,
    /// K: after this time without a CNP, α gets smaller.
    pub alpha_timer: Duration,
    /// T's period. The rate rises once in each.
    pub timer: Duration,
    /// B: the rate also rises each time this many bytes were sent.
    pub bytes: u64,
    /// F: this many rises only lead back to the earlier rate. After that, it looks for more.
    pub recoveries: u32,
    /// R_AI, bit/s: how much more it tries.
    pub additive: f64,
    /// R_HAI, bit/s: how much more it tries when timer and bytes both say that it's been quiet for long. The paper gives no
    /// number; ten times R_AI is the proportion of Mellanox's.
    pub hyper: f64,
    /// The lowest rate, bit/s, like Mellanox's `RPG_MIN_RATE`.
    pub least: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            interval: Duration::from_micros(50),
            g: 1.0 / 256.0,
            alpha_timer: Duration::from_micros(55),
            timer: Duration::from_micros(55),
            bytes: 10_000_000,
            recoveries: 5,
            additive: 40e6,
            hyper: 400e6,
            least: 1e6,
        }
    }
}

/// How people write them, each with its unit.
pub const GRAMMAR: &str =
    "g 1/256, interval 50 us, alpha 55 us, timer 55 us, bytes 10000 KB, recoveries 5, additive 40 Mbit/s, \
                           hyper 400 Mbit/s, least 1 Mbit/s";

impl Parameters {
    /// Reads the ones that are named; the others keep their defaults.
    ///
    /// # Errors
    /// A sentence that says which word it doesn't understand, and what's possible there.
    pub fn parse(text: &str) -> Result<Parameters, String> {
        let mut parameters = Parameters::default();
        let mut words = text.split([' ', ',']).filter(|word| !word.is_empty());
        while let Some(name) = words.next() {
            parameters
                .set(name, &mut words)
                .ok_or_else(|| format!("dcqcn: `{name}` is not understood; known are: {GRAMMAR}"))?;
        }
        Ok(parameters)
    }

    fn set<'a>(&mut self, name: &str, words: &mut impl Iterator<Item = &'a str>) -> Option<()> {
        let value = words.next()?;
        let mut number = |unit: &str| {
            let number: u32 = value.parse().ok()?;
            (words.next()? == unit && number > 0).then_some(number)
        };
        match name {
            "g" => {
                let n: u32 = value.strip_prefix("1/")?.parse().ok()?;
                self.g = (n > 0).then(|| 1.0 / f64::from(n))?;
            }
            "interval" => self.interval = Duration::from_micros(number("us")?.into()),
            "alpha" => self.alpha_timer = Duration::from_micros(number("us")?.into()),
            "timer" => self.timer = Duration::from_micros(number("us")?.into()),
            "bytes" => self.bytes = u64::from(number("KB")?) * 1000,
            "recoveries" => self.recoveries = value.parse().ok()?,
            "additive" => self.additive = f64::from(number("Mbit/s")?) * 1e6,
            "hyper" => self.hyper = f64::from(number("Mbit/s")?) * 1e6,
            "least" => self.least = f64::from(number("Mbit/s")?) * 1e6,
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_changed_and_nothing_else_is_understood() {
        assert_eq!(Parameters::parse(GRAMMAR), Ok(Parameters::default()));
        assert_eq!(Parameters::parse(""), Ok(Parameters::default()));
        let other = Parameters::parse("g 1/16 timer 300 us").unwrap();
        assert_eq!((other.g, other.timer.as_micros(), other.bytes), (1.0 / 16.0, 300, 10_000_000));
        for wrong in ["g 2", "g 1/0", "timer 55", "timer 0 us", "timer 55 ms", "speed 3", "bytes x KB", "g"] {
            let why = Parameters::parse(wrong).unwrap_err();
            assert!(why.contains("interval 50 us"), "{why}");
        }
    }
}
