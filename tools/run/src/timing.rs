//! Where a run's time went, stage by stage, for `--timing`.

use std::env;
use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// When `make` began, in seconds since 1970. The Makefile sets it for ARGS=--timing.
const MADE: &str = "MAKE_BEGAN";

/// The stages of a run, one after the other, each with how long it took.
pub struct Timing {
    stages: Vec<(&'static str, Duration)>,
    /// When the last one ended.
    end: Instant,
}

impl Timing {
    /// The first stage begins. What `make` did before, if it says when it began, is one that has ended.
    pub fn begin() -> Timing {
        Timing::after(env::var(MADE).ok().as_deref(), SystemTime::now())
    }

    fn after(made: Option<&str>, now: SystemTime) -> Timing {
        let made = made.and_then(|seconds| Duration::try_from_secs_f64(seconds.parse().ok()?).ok());
        let before = made.and_then(|made| now.duration_since(UNIX_EPOCH).ok()?.checked_sub(made));
        let stages = before.map(|before| ("set-up looks for what's missing, and cargo for what changed", before));
        Timing { stages: stages.into_iter().collect(), end: Instant::now() }
    }

    /// Ends a stage: all the time since the last call, or since the beginning, was spent on it.
    pub fn end(&mut self, stage: &'static str) {
        let began = std::mem::replace(&mut self.end, Instant::now());
        self.stages.push((stage, self.end - began));
    }
}

/// A table, of which the first line begins as what `make` prints at the end of a run does.
impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.stages.iter().map(|(_, took)| *took).sum();
        for (i, (stage, took)) in self.stages.iter().chain([&("in all", all)]).enumerate() {
            let begin = if i == 0 { "timing:  " } else { "\n         " };
            write!(f, "{begin}{:6.2} s  {stage}", took.as_secs_f64())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_make_did_before_is_the_first_stage_and_all_of_them_are_added_up() {
        let now = UNIX_EPOCH + Duration::from_millis(1_000_250);
        let mut timing = Timing::after(Some("1000.0"), now);
        timing.stages.push(("programs", Duration::from_millis(1500)));
        let text = timing.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("timing:    0.25 s  set-up "), "{text}");
        assert_eq!(lines[1..], ["           1.50 s  programs", "           1.75 s  in all"]);
        for made in [None, Some(""), Some("soon"), Some("-1"), Some("2000.0")] {
            assert_eq!(Timing::after(made, now).to_string(), "timing:    0.00 s  in all", "{made:?}");
        }
    }
}
