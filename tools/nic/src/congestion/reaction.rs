//! The reaction point: the sender of marked packets slows down, and then finds out how fast it may go (DCQCN, section 3.1,
//! equations 1 to 4 and figure 7).
//!
//! ```text
//!   rate  ──┐ CNP: to (1 - α/2) of it           R_T ─────────────────────────  the target: the rate before
//!           └──╮                                       ╭──────────────╯
//!              │     ╭─────╯   fast recovery: each time half of the way back to the target
//!              ╰─────╯         then: the target itself rises, by R_AI, and at last by R_HAI
//! ```
//!
//! α says how bad it is: near 1 while CNPs keep coming, near 0 long after the last. Timers are looked at when somebody asks for
//! the rate, which comes to the same as being woken by them, since a rate does nothing between two packets.

use super::Parameters;
use crate::time::Time;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Reaction {
    /// R_C in bit/s, the rate at which we send.
    current: f64,
    /// R_T, the rate that we're heading for.
    target: f64,
    alpha: f64,
    /// When α is reduced next, and when the rate rises next.
    alpha_due: Time,
    time_due: Time,
    /// How many bytes were sent since their counter was last full.
    bytes: u64,
    /// T and BC: how often the rate has risen since the last CNP, because of the timer and because of the bytes.
    by_time: u32,
    by_bytes: u32,
}

impl Reaction {
    /// The state before the first CNP: the link's rate in bit/s, and α = 1.
    pub fn new(parameters: &Parameters, line: u64, now: Time) -> Reaction {
        let line = line as f64;
        let (alpha_due, time_due) = (now + parameters.alpha_timer, now + parameters.timer);
        let (bytes, by_time, by_bytes) = (0, 0, 0);
        Reaction { current: line, target: line, alpha: 1.0, alpha_due, time_due, bytes, by_time, by_bytes }
    }

    /// A CNP has come (equation 1).
    pub fn cut(&mut self, parameters: &Parameters, line: u64, now: Time) {
        self.rate(parameters, line, now);
        self.target = self.current;
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(parameters.least);
        self.alpha = (1.0 - parameters.g) * self.alpha + parameters.g;
        (self.by_time, self.by_bytes, self.bytes) = (0, 0, 0);
        (self.alpha_due, self.time_due) = (now + parameters.alpha_timer, now + parameters.timer);
    }

    /// The rate now, in bit/s.
    pub fn rate(&mut self, parameters: &Parameters, line: u64, now: Time) -> u64 {
        // Equation 2: some time has passed without CNPs.
        let quiet = periods(&mut self.alpha_due, parameters.alpha_timer, now);
        self.alpha *= (1.0 - parameters.g).powi(quiet as i32);
        for _ in 0..periods(&mut self.time_due, parameters.timer, now) {
            if self.current >= line as f64 {
                break;
            }
            self.by_time += 1;
            self.rise(parameters, line);
        }
        self.current as u64
    }

    /// This many bytes were sent.
    pub fn sent(&mut self, bytes: u64, parameters: &Parameters, line: u64) {
        self.bytes += bytes;
        if self.bytes >= parameters.bytes {
            self.bytes = 0;
            self.by_bytes += 1;
            self.rise(parameters, line);
        }
    }

    /// Fast recovery, additive increase, hyper increase (equations 3 and 4, figure 7).
    fn rise(&mut self, parameters: &Parameters, line: u64) {
        let (most, least) = (self.by_time.max(self.by_bytes), self.by_time.min(self.by_bytes));
        let often = parameters.recoveries;
        self.target += match () {
            () if most < often => 0.0,
            () if least > often => f64::from(least - often) * parameters.hyper,
            () => parameters.additive,
        };
        self.target = self.target.min(line as f64);
        self.current = (self.target + self.current) / 2.0;
        // Going half of the way again and again never arrives.
        if line as f64 - self.current < 1.0 {
            self.current = line as f64;
        }
    }
}

/// How many periods have ended. Afterwards, the next one ends at `due`.
fn periods(due: &mut Time, period: Duration, now: Time) -> u32 {
    if now < *due {
        return 0;
    }
    let late = now.since(*due).as_nanos() / period.as_nanos().max(1);
    let ended = (late + 1).min(i32::MAX as u128) as u32;
    *due += period * ended;
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 40_000_000_000;

    fn after(begin: Time, us: u64) -> Time {
        begin + Duration::from_micros(us)
    }

    /// With α = 1 the first CNP halves the rate. Then it goes half of the way back five times, and after that the target rises.
    #[test]
    fn the_rate_falls_and_rises_as_in_the_paper() {
        let (begin, parameters) = (Time::START, Parameters { additive: 1e9, ..Parameters::default() });
        let mut point = Reaction::new(&parameters, LINE, begin);
        // Two CNPs at almost the same moment, so that the target is 20 Gbit/s.
        point.cut(&parameters, LINE, begin);
        point.cut(&parameters, LINE, begin);
        let mut rate = |us| point.rate(&parameters, LINE, after(begin, us)) as f64 / 1e9;
        assert_eq!(rate(54), 10.0);
        let recovery: Vec<f64> = (1..5).map(|step| rate(55 * step)).collect();
        assert_eq!(recovery, [15.0, 17.5, 18.75, 19.375]);
        assert_eq!(rate(5 * 55), (19.375 + 21.0) / 2.0, "the fifth raises the target");
    }

    /// α is what distinguishes a single CNP from many.
    #[test]
    fn after_a_long_quiet_time_a_cnp_costs_little() {
        let (begin, parameters) = (Time::START, Parameters::default());
        let mut point = Reaction::new(&parameters, LINE, begin);
        point.cut(&parameters, LINE, begin);
        let later = after(begin, 1_000_000);
        assert_eq!(point.rate(&parameters, LINE, later), LINE);
        point.cut(&parameters, LINE, later);
        assert!(point.rate(&parameters, LINE, later) > LINE * 99 / 100);
    }

    /// Both counters must have passed F before it hurries.
    #[test]
    fn bytes_and_time_together_make_it_hurry() {
        let (begin, parameters) = (Time::START, Parameters { bytes: 1000, ..Parameters::default() });
        let risen = |bytes_sent: u64| {
            let mut point = Reaction::new(&parameters, LINE, begin);
            (0..6).for_each(|_| point.cut(&parameters, LINE, begin));
            (0..bytes_sent).for_each(|_| point.sent(1000, &parameters, LINE));
            point.rate(&parameters, LINE, after(begin, 10 * 55))
        };
        let (slow, hurried) = (risen(0), risen(10));
        assert!(hurried > slow * 3 / 2, "{slow} {hurried}");
    }
}
