//! A wire with a rate, queues and marks: the model of a switch that [`run::switch`] is, in this machine's time.

use anyhow::{bail, Result};
use run::switch::{Out, Settings, Switch};
use std::time::{Duration, Instant};

/// What lies between the machines, if not only a wire.
pub struct Link {
    switch: Switch,
    begin: Instant,
}

impl Link {
    /// Reads what it is like; None if the text says nothing.
    ///
    /// # Errors
    /// A word is not understood; or no machine would do its part.
    pub fn parse(text: &str, nodes: &[&str]) -> Result<Option<Link>> {
        let Some(switch) = Switch::parse(text, nodes)? else { return Ok(None) };
        if let Some((word, why)) = refused(&switch.settings) {
            bail!("the wire's `{word}` is not for the lab: {why}. On the device it works: on=device");
        }
        Ok(Some(Link { switch, begin: Instant::now() }))
    }

    /// A machine has sent a frame to another one, or to all.
    pub fn send(&mut self, from: usize, to: Option<usize>, frame: Vec<u8>) {
        self.switch.send(self.now(), from, to, frame);
    }

    /// When something happens next.
    pub fn due(&self) -> Option<Instant> {
        self.switch.next().map(|next| self.begin + next)
    }

    /// All that has happened.
    pub fn advance(&mut self) -> Vec<Out> {
        let now = self.now();
        self.switch.advance(now).into_iter().map(|(_, out)| out).collect()
    }

    fn now(&self) -> Duration {
        self.begin.elapsed()
    }
}

/// What the kernel's driver takes no part in, and why.
fn refused(settings: &Settings) -> Option<(&'static str, &'static str)> {
    if settings.pfc.is_some() {
        Some(("pfc", "a machine's virtual network card obeys no pause frame"))
    } else if settings.dcqcn.is_some() {
        Some(("dcqcn", "rdma_rxe knows no CNP"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rdma_rxe_has_no_part_in_is_refused_in_words() {
        let parse = |text: &str| Link::parse(text, &["server", "client"]).map(|link| link.is_some());
        assert!(
            !parse("").unwrap() && parse("link 1 Gbit/s 5 us; ecn 8..32 KB; lose 1 in 9; paths 2; ring 2").unwrap()
        );
        for (more, word) in [("pfc 48 KB", "pause frame"), ("dcqcn", "CNP")] {
            let error = parse(&format!("link 1 Gbit/s 5 us; {more}")).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("on=device"), "{error}");
        }
    }
}
