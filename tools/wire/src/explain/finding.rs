//! What was found, with the frames that show it.

use super::cause::{Blame, Cause};
use super::names::Names;
use roce::track::Side;
use serde::Serialize;

/// So many frames of one finding are named.
const MOST_FRAMES: usize = 12;

/// One thing that went wrong on a connection.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What it is.
    pub cause: Cause,
    /// In a sentence, without its full stop.
    pub text: String,
    /// Frames that show it, counted from 1.
    pub frames: Vec<u64>,
    /// How often it was seen; `text` is about the first time.
    pub count: u64,
    /// Whose fault it looks like.
    pub blame: Blame,
    /// The same in words.
    pub fault: String,
    /// The protocol mends it by itself: it costs time.
    pub is_mended: bool,
    /// What to look at, or to change.
    pub look: &'static str,
    /// The page that teaches it.
    pub page: &'static str,
    /// Who sent what it is about.
    #[serde(skip)]
    pub(super) side: Side,
}

impl Finding {
    /// The capture knows better than the cause's row whose fault it looks like. The text is about the first time, and so is this.
    pub(super) fn blame(&mut self, blame: Blame) -> &mut Finding {
        if self.count == 1 {
            self.blame = blame;
        }
        self
    }

    /// The capture doesn't show that it was mended.
    pub(super) fn is_not_mended(&mut self) {
        self.is_mended = false;
    }

    pub(super) fn look(&mut self, look: &'static str) -> &mut Finding {
        self.look = look;
        self
    }
}

/// The findings of a connection: one for each cause and side.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// Something was seen once more. `side` is the one that sent what it is about. What the cause's row says of the fault may be
    /// changed in what is returned, where the capture knows more.
    pub(super) fn add(&mut self, cause: Cause, side: Side, text: String, frames: &[u64]) -> &mut Finding {
        if let Some(at) = self.0.iter().position(|known| (known.cause, known.side) == (cause, side)) {
            self.0[at].count += 1;
            return &mut self.0[at];
        }
        let mut frames: Vec<u64> = frames.iter().copied().take(MOST_FRAMES).collect();
        frames.sort_unstable();
        frames.dedup();
        let (blame, is_mended, look, page) = (cause.blame(), cause.is_mended(), cause.look(), cause.page());
        let at = self.0.len();
        self.0.push(Finding {
            cause,
            text,
            frames,
            count: 1,
            blame,
            fault: String::new(),
            is_mended,
            look,
            page,
            side,
        });
        &mut self.0[at]
    }

    pub(super) fn has(&self, cause: Cause) -> bool {
        self.0.iter().any(|finding| finding.cause == cause)
    }

    /// How often it was seen.
    pub(super) fn count(&self, cause: Cause) -> u64 {
        self.0.iter().filter(|finding| finding.cause == cause).map(|finding| finding.count).sum()
    }

    pub(super) fn forget(&mut self, cause: Cause) {
        self.0.retain(|finding| finding.cause != cause);
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Finding> {
        self.0.iter_mut()
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(Cause) -> bool) {
        self.0.retain(|finding| is_kept(finding.cause));
    }

    /// The gravest first.
    pub(super) fn sorted(mut self, names: &Names) -> Vec<Finding> {
        self.0.sort_by_key(|finding| finding.cause);
        for finding in &mut self.0 {
            finding.fault = match finding.blame {
                Blame::Program => "a program".to_owned(),
                Blame::Peer => names[finding.side.other()].to_owned(),
                Blame::Network => "the network".to_owned(),
                Blame::Device => "a device".to_owned(),
                Blame::Unknown => "unclear from this capture".to_owned(),
            };
        }
        self.0
    }
}
