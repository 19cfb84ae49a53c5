//! The staircase of part three: which lessons run on the learner's NIC after which holes are filled, and that no other one does.

use crate::holes::scratch;
use course::nic::copy::{solution, MineNic};
use course::nic::hole::Hole;
use course::nic::stairs::{lessons, STAIRS};
use course::port::ReservedPort;
use course::project::Project;
use run::story::{bundled, Story};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use testkit::each::each;

/// So many runs go side by side: most of them wait, those that fail until they give up.
const SIDE_BY_SIDE: usize = 16;
/// Longer than a run takes whose NIC has panicked: nobody waits for an answer then.
const MOMENT: Duration = Duration::from_secs(9);

type Names = BTreeSet<String>;

/// The learner's NIC, all holes open.
struct Stairs {
    project: Project,
    mine: MineNic,
    holes: Vec<Hole>,
}

impl Stairs {
    fn new(name: &str) -> Self {
        let project = Project::find().unwrap();
        let (mine, holes) = (scratch(&project, name), Hole::all(&project).unwrap());
        mine.lay_out(&project, &holes).unwrap();
        Self { project, mine, holes }
    }

    fn fill(&self, lesson: &str) {
        for hole in self.holes.iter().filter(|hole| hole.name.number() == lesson) {
            self.mine.fill(hole, &solution(&self.project, hole).unwrap()).unwrap();
        }
    }

    fn device(&self) -> PathBuf {
        self.mine.build_device(&self.project, false).unwrap().unwrap_or_else(|said| panic!("{said}"))
    }

    /// Those of these stories that run to their end.
    fn running(&self, stories: &[Story]) -> Names {
        let (device, running) = (self.device(), Mutex::new(Names::new()));
        each(SIDE_BY_SIDE, stories, |story| {
            if ran(&device, story)["succeeded"] == true {
                running.lock().unwrap().insert(story.short_name());
            }
        });
        running.into_inner().unwrap()
    }
}

/// The stories of parts one and two that end well.
fn stories() -> Vec<Story> {
    bundled().unwrap().into_iter().filter(|story| story.exit == 0 && !story.device).collect()
}

/// Lessons 01 to 07 as they are run without options.
fn part_one() -> Vec<Story> {
    stories().into_iter().filter(|story| ("01"..="07").contains(&&*story.short_name())).collect()
}

fn names(stories: &[Story]) -> Names {
    stories.iter().map(Story::short_name).collect()
}

/// How a story went on the device that a program is.
fn ran(device: &Path, story: &Story) -> Value {
    // Held until the run is over. Other tests run lesson 08, too, which meets on a TCP port of this machine.
    let port = if story.number() == "08" { Some(ReservedPort::hold().unwrap()) } else { None };
    let port = port.as_ref().map_or(String::new(), |port| format!("-p {} ", port.number));
    let output = Command::new(device)
        .args(["run", &format!("lesson-{}", story.number()), &format!("--name={}", story.file_name()), "--json"])
        .args([format!("--server-args={port}{}", story.server), format!("--client-args={port}{}", story.client)])
        .args([format!("--clients={}", story.clients), format!("--wire={}", story.wire)])
        .args(["--grace=1", "--deadline=30"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}: {said}", story.file_name()))
}

/// What must run when the holes of this many lessons are filled.
fn expected(lessons: usize) -> Names {
    STAIRS[..lessons].iter().flat_map(|(_, runs)| runs.split_whitespace()).map(str::to_owned).collect()
}

#[test]
fn the_stairs_lead_from_the_first_lesson_with_holes_to_the_last_one_and_to_every_story() {
    let lessons: BTreeSet<String> =
        Hole::all(&Project::find().unwrap()).unwrap().iter().map(|it| it.name.number()).collect();
    assert!(lessons.iter().eq(STAIRS.map(|(lesson, _)| lesson.to_owned()).iter()), "{lessons:?}");
    assert_eq!(expected(STAIRS.len()), names(&stories()));
}

#[test]
fn the_readme_tells_what_runs_after_which_lesson() {
    let readme = std::fs::read_to_string(Project::find().unwrap().root.join("README.md")).unwrap();
    for (lesson, _) in STAIRS {
        let begins = format!("| [{lesson}_");
        let mut rows = readme.lines().filter(|line| line.starts_with(&begins));
        let row = rows.next().unwrap_or_else(|| panic!("README.md has no row of lesson {lesson}"));
        let runs = lessons(lesson).join(", ");
        assert!(row.contains("/holes)") && row.split('|').nth(3).unwrap().contains(&runs), "{row} has to say: {runs}");
    }
}

#[test]
#[ignore = "takes long: make test-long group=course"]
fn a_story_runs_when_the_holes_that_it_needs_are_filled_and_no_sooner() {
    let stairs = Stairs::new("test-of-stairs");
    assert_eq!(stairs.running(&stories()), Names::new(), "all holes are open");
    let running = |(lesson, _): &(&'static str, _)| {
        stairs.fill(lesson);
        (*lesson, stairs.running(&stories()))
    };
    let running: Vec<_> = STAIRS.iter().map(running).collect();
    let expected: Vec<_> = STAIRS.iter().enumerate().map(|(at, (lesson, _))| (*lesson, expected(at + 1))).collect();
    assert_eq!(running, expected, "what runs when the holes up to a lesson are filled");
}

/// The foot of the stairs and their top; and there somebody slips.
#[test]
fn part_one_runs_on_a_nic_without_holes_and_not_on_one_with_all_of_them_and_a_panic_and_a_circle_are_named() {
    let (stairs, part_one) = (Stairs::new("test-of-foot-and-top"), part_one());
    assert_eq!(stairs.running(&part_one), Names::new(), "all holes are open");
    STAIRS.iter().for_each(|(lesson, _)| stairs.fill(lesson));
    assert_eq!(stairs.running(&part_one), names(&part_one), "all holes are filled");

    let hole = stairs.holes.iter().find(|hole| hole.name.to_string() == "15-1-asked").unwrap();
    stairs.mine.fill(hole, "panic!(\"mine\")").unwrap();
    let (device, begun) = (stairs.device(), Instant::now());
    let report = ran(&device, &part_one[0]);
    let trouble = report["trouble"].as_str().unwrap();
    assert!(trouble.starts_with("the server's device has panicked at nic/src/cm/"), "{report}");
    assert!(trouble.ends_with(" mine") && begun.elapsed() < MOMENT, "{report} after {:?}", begun.elapsed());

    stairs.mine.fill(hole, "loop { std::hint::black_box(1); }").unwrap();
    let report = ran(&stairs.device(), &part_one[0]);
    let trouble = report["trouble"].as_str().unwrap();
    let names_it =
        ["its device was at work in ", "requested", "nic/src/cm/listen.rs:"].iter().all(|it| trouble.contains(it));
    assert!(names_it, "{report}");
}
