//! Which story of its lesson a run tells. Its options decide.

use super::Story;
use crate::statement::Statement;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Given by whoever runs a lesson, and the same in each variant: the server's address, and how many clients it has.
const GIVEN: [&str; 2] = ["-a", "-n"];

impl Story {
    /// The options that it is run with: the server's, then the client's.
    fn options(&self) -> [Vec<Vec<&str>>; 2] {
        [&self.server, &self.client].map(|text| options(text))
    }
}

/// Of a lesson's stories the one that shares most options with a run, of several the one whose wire is most alike, then one with no
/// other options, then the first; and whether both have the same options. The run's are those of its server and of its clients.
pub fn closest(stories: impl IntoIterator<Item = Story>, run: [&str; 2], wire: &str) -> Option<(Story, bool)> {
    let run = run.map(options);
    let shared = |story: &Story| -> usize {
        let own = story.options();
        own.iter().zip(&run).map(|(own, run)| own.iter().filter(|option| run.contains(option)).count()).sum()
    };
    let is_same = |story: &Story| story.options() == run;
    let rank = |story: &Story| (Reverse(shared(story)), differ(&story.wire, wire), !is_same(story));
    let story = stories.into_iter().min_by_key(rank)?;
    let is_same = is_same(&story);
    Some((story, is_same))
}

/// How many kinds of statements one wire has and the other has not: `queue 8 KB` and `queue 1 MB` are of one kind.
fn differ(one: &str, other: &str) -> usize {
    let [one, other] =
        [one, other].map(|wire| Statement::all(wire).filter_map(|it| it.peek()).collect::<BTreeSet<_>>());
    one.symmetric_difference(&other).count()
}

/// What is given in the options of one side beside what is given in any case.
pub fn own(text: &str) -> String {
    options(text).concat().join(" ")
}

/// Each option with its values.
fn options(text: &str) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = Vec::new();
    for word in text.split_whitespace() {
        match all.last_mut().filter(|_| !word.starts_with('-')) {
            Some(option) => option.push(word),
            None => all.push(vec![word]),
        }
    }
    all.retain(|option| !GIVEN.contains(&option[0]));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::bundled;

    #[test]
    fn a_run_is_told_as_the_story_that_shares_its_options() {
        let private = "--metadata private-data";
        for (lesson, server, client, name, is_same) in [
            ("04", "", "-a 10.47.91.1", "04", true),
            ("04", "", "-s 'other text'", "04", false),
            ("04", "", "--len 2500", "04-multi-packet", true),
            ("04", private, private, "04-private-data", true),
            ("04", private, "-s x --metadata private-data", "04-private-data", false),
            ("09", "", "", "09", false),
            ("09", "--check -n 3", "", "09", true),
            ("10", "", "--count 16", "10", true),
            ("10", "", "--depth 16", "10-depth-16", false),
            ("10", "", "--op send --depth 4", "10-no-credits", false),
        ] {
            let stories = bundled().unwrap().into_iter().filter(|story| story.number() == lesson);
            let (story, same) = closest(stories, [server, client], "").unwrap();
            assert_eq!((&*story.short_name(), same), (name, is_same), "{lesson}: {server}, {client}");
        }
        for (wire, name) in [
            ("", "20"),
            ("link 10 Gbit/s 1 us; queue 1 MB", "20"),
            ("link 1 Gbit/s 5 us; pfc 9 KB; queue 1 MB", "20-pfc"),
            ("link 1 Gbit/s 5 us; queue 1 MB; ecn 8..64 KB at 1 %; dcqcn g 1/16", "20-dcqcn"),
        ] {
            let stories = bundled().unwrap().into_iter().filter(|story| story.number() == "20");
            assert_eq!(closest(stories, ["-n 2", ""], wire).unwrap().0.short_name(), name, "{wire}");
            let stories = bundled().unwrap().into_iter().filter(|story| story.number() == "20");
            assert_eq!(closest(stories, ["-n 2 --messages 64", ""], wire).unwrap().0.short_name(), name, "{wire}");
        }
        assert_eq!(own("-a 10.47.91.1 -s x  -n 2"), "-s x");
    }
}
