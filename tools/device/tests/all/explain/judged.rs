//! Whether what is said of a capture is right.

use super::made::{Class, Cut, Fault, ACTS};
use wire::explain::{Cause, Explanation};

/// How it came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Came {
    Right,
    CannotTell,
    Wrong,
}

/// What may be said of a fault. Nothing at all is always allowed: it is counted as "cannot tell".
fn allowed(act: &str, class: Class) -> &'static [Cause] {
    use Cause::*;
    match (act, class) {
        ("corrupt", _) => &[Damaged],
        ("drop" | "delay" | "swap", Class::Message) => &[MessageLost],
        ("drop" | "delay" | "swap", Class::Request) => &[Lost, Overtaken],
        // A response that was not seen by its requester: which of the two was lost, only the answer's frame tells.
        ("drop" | "delay" | "swap", Class::Answer) => &[AnswerLost, Overtaken],
        ("duplicate", _) => &[Doubled],
        _ => &[],
    }
}

/// What there is to be seen of a fault in a capture, and how that was cut.
pub struct Seen<'a> {
    /// What was hit in the run: it may be cut away here, while its consequences are still there.
    pub hits: &'a [(Class, String)],
    pub is_to_be_seen: bool,
    pub cut: Cut,
}

impl Seen<'_> {
    /// How this explanation of the fault came out.
    pub fn judge(&self, told: &Explanation, fault: Fault) -> Came {
        // A capture of two places is known as such, and that's no double.
        if self.cut == Cut::Twice && told.packets > 8 && !told.notes.iter().any(|note| note.contains("recorded twice"))
        {
            return Came::Wrong;
        }
        let mut causes: Vec<Cause> = told.findings().map(|finding| finding.cause).collect();
        causes.retain(|cause| *cause != Cause::Unfinished);
        let gravest = causes.iter().min().copied();
        match fault {
            Fault::Never(never) => self.never(gravest, never),
            Fault::Refused(refused) => self.refused(&causes, refused),
            Fault::Act(_) => self.act(gravest),
        }
    }

    fn never(&self, gravest: Option<Cause>, never: &[Cause]) -> Came {
        // Who is there alone, and gave up, had no answer. Without the end, nobody has given up yet.
        let also = [Cause::NoAnswer, Cause::SentAgain, Cause::SilentPeer];
        match gravest {
            None => Came::CannotTell,
            Some(cause) if never.contains(&cause) => Came::Right,
            Some(cause) if self.cut.is_blind() && also.contains(&cause) => Came::Right,
            Some(Cause::MessageLost | Cause::AnswerLost | Cause::Lost) if self.cut == Cut::End => Came::Right,
            Some(_) => Came::Wrong,
        }
    }

    /// What fails with the refused request was neither lost nor left unanswered: only the refusal may be named.
    fn refused(&self, causes: &[Cause], refused: Cause) -> Came {
        match causes {
            [] if self.is_to_be_seen => Came::CannotTell,
            _ if causes.iter().all(|cause| *cause == refused) => Came::Right,
            _ => Came::Wrong,
        }
    }

    fn act(&self, gravest: Option<Cause>) -> Came {
        let Some(cause) = gravest else {
            return if self.is_to_be_seen { Came::CannotTell } else { Came::Right };
        };
        let is_right = self.hits.iter().any(|(class, act)| {
            let act = ACTS.iter().find(|known| act.starts_with(&known[..4])).copied().unwrap_or_default();
            // Without its end a damaged packet looks like any other that did not arrive.
            let is_short = [Cut::Short, Cut::NoAeth].contains(&self.cut);
            let looks_lost = act == "corrupt" && is_short && allowed("drop", *class).contains(&cause);
            // One side alone, or answers that can't be read, show that something was sent again, and not why.
            let is_again = self.cut.is_blind() && cause == Cause::SentAgain;
            let is_asked = self.cut == Cut::OneWay && cause == Cause::Lost;
            looks_lost || is_again || is_asked || allowed(act, *class).contains(&cause)
        });
        if is_right {
            Came::Right
        } else {
            Came::Wrong
        }
    }
}
