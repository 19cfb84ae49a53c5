//! What programs have complained of: a run file has their lines between the packets.

use super::names::Names;
use super::report::{ConnectionReport, Printed};
use roce::track::{Connection as Ends, Side};
use run::file::Line;
use run::said::Complaint;

/// So many complaints are remembered.
const MOST: usize = 256;
/// Of one, this many characters are told.
const MOST_CHARACTERS: usize = 200;
/// So many are told of one connection, and of those that belong to none.
const MOST_TOLD: usize = 4;

/// The first characters of a text, with a sign if there are more.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().take(most).collect();
    if shown.len() < text.len() {
        shown += " …";
    }
    shown
}

/// A complaint, before it is known which connection it is about.
#[derive(Debug)]
struct Heard {
    node: String,
    qpn: Option<u64>,
    printed: Printed,
}

/// All complaints, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Complaints(Vec<Heard>);

impl Complaints {
    pub(super) fn hear(&mut self, line: &Line) {
        let Some(Complaint { text, qpn }) = Complaint::of(line).filter(|_| self.0.len() < MOST) else { return };
        let text = shortened(text, MOST_CHARACTERS);
        let printed = Printed { who: format!("a program on {}", line.node), text, line: line.number };
        self.0.push(Heard { node: line.node.clone(), qpn, printed });
    }

    /// Tells each where it belongs; those that remain are returned.
    pub(super) fn tell(
        self,
        sides: &[Sides],
        ends: &[Ends],
        names: &[Names],
        told: &mut [ConnectionReport],
    ) -> Vec<Printed> {
        let mut others = Vec::new();
        for Heard { node, qpn, mut printed } in self.0 {
            match whose(&node, qpn, printed.line, sides, ends, told) {
                Some((at, side)) => {
                    printed.who = names[at][side].to_owned();
                    let known = &mut told[at].printed;
                    // One failed completion stands for all behind it.
                    let is_known = known.iter().any(|known| known.who == printed.who && qpn.is_some());
                    if known.len() < MOST_TOLD && !is_known {
                        known.push(printed);
                    }
                }
                None if qpn.is_none() && others.len() < MOST_TOLD => others.push(printed),
                None => {}
            }
        }
        others
    }
}

/// Of a connection the nodes of a run that are its two sides, and its first frame.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) nodes: [Option<String>; 2],
    pub(super) first: u64,
}

/// The connection of which a complaint speaks, and who complains. A program that has several may mean any, unless only one of them
/// went wrong.
fn whose(
    node: &str,
    qpn: Option<u64>,
    line: u64,
    sides: &[Sides],
    ends: &[Ends],
    told: &[ConnectionReport],
) -> Option<(usize, Side)> {
    let side_of =
        |sides: &Sides| Side::BOTH.into_iter().find(|side| sides.nodes[*side as usize].as_deref() == Some(node));
    let begun = sides.iter().enumerate().filter(|(_, sides)| sides.first < line);
    let own: Vec<(usize, Side)> = begun.filter_map(|(at, sides)| Some((at, side_of(sides)?))).collect();
    if let Some(qpn) = qpn {
        let is_it = |(at, side): &&(usize, Side)| ends[*at].qps[*side as usize].map(u64::from) == Some(qpn);
        return own.iter().rfind(is_it).copied();
    }
    let wrong: Vec<_> = own.iter().copied().filter(|(at, _)| !told[*at].findings.is_empty()).collect();
    match (own.as_slice(), wrong.as_slice()) {
        ([only], _) | (_, [only]) => Some(*only),
        _ => None,
    }
}
