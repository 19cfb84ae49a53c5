//! What the wire between machines is like, if the lab can have it so.

use anyhow::{bail, Result};
use run::switch::{Settings, Switch};
use run::wire::Wire;

/// Reads what it is like, and the rules for it.
///
/// # Errors
/// A word is not understood; or no machine would do its part.
pub fn parse(text: &str, nodes: &[&str]) -> Result<Wire> {
    let wire = Wire::parse(text, nodes)?;
    if let Some((word, why)) = wire.switch().and_then(|Switch { settings, .. }| refused(settings)) {
        bail!("the lab has no `{word}` in its wire, because {why}. It works on the device: add on=device");
    }
    Ok(wire)
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
    #[test]
    fn what_rdma_rxe_has_no_part_in_is_refused_in_words() {
        let parse = |text: &str| super::parse(text, &["server", "client"]).map(|wire| wire.switch().is_some());
        assert!(
            !parse("").unwrap() && parse("link 1 Gbit/s 5 us; ecn 8..32 KB; lose 1 in 9; paths 2; ring 2").unwrap()
        );
        for (more, word) in [("pfc 48 KB", "pause frame"), ("dcqcn", "CNP")] {
            let error = parse(&format!("link 1 Gbit/s 5 us; {more}")).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("on=device"), "{error}");
        }
    }
}
