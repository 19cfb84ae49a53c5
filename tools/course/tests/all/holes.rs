//! The holes of part three: they fit the source of today, and the judge knows a stub, a wrong body and the project's own.

use course::edit::Edit;
use course::nic::blame::{culprit, Culprit};
use course::nic::copy::{solution, MineNic};
use course::nic::hole::Hole;
use course::nic::judge::{judge, HoleVerdict};
use course::page::Solution;
use course::project::Project;
use run::files::{read, write};
use std::fs;

/// A NIC in a folder that is no learner's.
pub fn scratch(project: &Project, name: &str) -> MineNic {
    let folder = project.target.join("course").join(name);
    let _ = fs::remove_dir_all(&folder);
    MineNic::new(folder)
}

pub fn verdict(project: &Project, mine: &MineNic, hole: &Hole) -> HoleVerdict {
    let program = mine.build_judge(project, false).unwrap().unwrap_or_else(|said| panic!("{}: {said}", hole.name));
    judge(project, &program, hole).unwrap()
}

/// Lesson by lesson: all holes are judged wrong as long as they are open, the first one in its page's words; and right when they are
/// filled.
#[test]
fn a_lessons_holes_are_filled_by_the_projects_own_bodies_and_not_by_their_stubs() {
    let project = Project::find().unwrap();
    let (mine, holes) = (scratch(&project, "test-of-holes"), Hole::all(&project).unwrap());
    mine.lay_out(&project, &holes).unwrap();
    let judged = |lesson: &[Hole]| -> Vec<HoleVerdict> {
        let program = mine.build_judge(&project, false).unwrap().unwrap();
        lesson.iter().map(|hole| judge(&project, &program, hole).unwrap()).collect()
    };
    for lesson in holes.chunk_by(|one, next| one.name.number() == next.name.number()) {
        let open = judged(lesson);
        assert!(open[0].seen.contains(&lesson[0].says) && open.iter().all(|verdict| !verdict.is_right), "{open:#?}");
        for hole in lesson {
            mine.fill(hole, &solution(&project, hole).unwrap()).unwrap();
        }
        let filled = judged(lesson);
        assert!(filled.iter().all(|verdict| verdict.is_right), "{filled:#?}");
    }
}

/// Whoever changes the NIC notices at once that a hole's page has to follow, and not only when somebody runs the long tests.
#[test]
fn a_holes_wrong_bodies_are_edits_of_the_projects_own_body_of_today() {
    let project = Project::find().unwrap();
    for hole in Hole::all(&project).unwrap() {
        let right = solution(&project, &hole).unwrap();
        for wrong in &hole.wrong {
            let made = Edit::apply(&wrong.edits, &hole.place.file, &right);
            made.unwrap_or_else(|error| panic!("{}: {error:#}", hole.name));
        }
    }
}

/// Hole by hole: its stub, wrong bodies and one that panics are told as what they are; the right one is right.
#[test]
#[ignore = "takes long: make test-long group=course"]
fn a_hole_is_not_filled_by_its_stub_nor_by_a_body_that_is_wrong_or_panics() {
    let project = Project::find().unwrap();
    let (mine, holes) = (scratch(&project, "test-of-wrong-holes"), Hole::all(&project).unwrap());
    mine.lay_out(&project, &holes).unwrap();
    let mut otherwise = Vec::new();
    for hole in &holes {
        let right = solution(&project, hole).unwrap();
        let panics = (String::from("panic!(\"mine\")"), format!("panicked at {}", hole.place.file));
        // One of each lesson whose packets it gets is enough: each takes until the deadline.
        let spins = |last: &str| (String::from("loop {}"), format!("What it was given last: {last}"));
        let spins = match hole.name.to_string().as_str() {
            "16-4-receive" => Some(spins("03_metadata_exchange, frame 74: RC Send Only")),
            "17-3-write" => Some(spins("RDMA Write First, PSN 0 came.")),
            "18-6-gap" => Some(spins("Send Only, PSN 2 came.")),
            "19-5-once" => Some(spins("Fetch Add, PSN")),
            _ => None,
        };
        let wrong = |it: &Solution| (Edit::apply(&it.edits, &hole.place.file, &right).unwrap(), it.says.clone());
        let not = [(hole.stub.clone(), hole.says.clone())].into_iter().chain(hole.wrong.iter().map(wrong));
        for (body, says) in not.chain([panics]).chain(spins).chain([(right.clone(), String::new())]) {
            mine.fill(hole, &body).unwrap();
            let HoleVerdict { is_right, seen } = verdict(&project, &mine, hole);
            if is_right != says.is_empty() || !seen.contains(&says) {
                otherwise.push(format!("{}:\n{body}\nhas to be judged: {says}\nand is: {seen}", hole.name));
            }
        }
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n\n"));
}

/// What one hole does wrong another one's judge may notice: an earlier one's, if the learner goes on working on what she has, or a later
/// one's. The hole with the fault is found; and lines that are in no hole are.
#[test]
#[ignore = "takes long: make test-long group=course"]
fn a_fault_that_another_holes_judge_notices_is_found_in_the_hole_where_it_is() {
    let project = Project::find().unwrap();
    let (mine, holes) = (scratch(&project, "test-of-blame"), Hole::all(&project).unwrap());
    mine.lay_out(&project, &holes).unwrap();
    let at = |name: &str| holes.iter().position(|hole| hole.name.to_string() == name).unwrap();
    let fill = |name: &str, from: &str, to: &str| {
        let right = solution(&project, &holes[at(name)]).unwrap();
        assert!(right.contains(from));
        mine.fill(&holes[at(name)], &right.replace(from, to)).unwrap();
    };
    holes.iter().for_each(|hole| fill(&hole.name.to_string(), "", ""));
    let found = |noticed: &str| -> String {
        assert!(!verdict(&project, &mine, &holes[at(noticed)]).is_right, "{noticed}");
        match culprit(&project, &mine, &holes, at(noticed)).unwrap() {
            None => "nowhere else".into(),
            Some(Culprit::Here) => "here".into(),
            Some(Culprit::Other { hole, alone }) => format!("{}, alone {alone}", hole.name),
            Some(Culprit::Outside(files)) => files.join(" "),
        }
    };
    for (name, from, to, noticed) in [
        ("16-6-ack", "self.progress(qp, ctx);", "", "18-4-progress"),
        ("16-2-send", "if next.since(self.next) > 0 {", "if true {", "18-1-back"),
        ("19-2-refused", "return self.try_again(qp, ctx);", "return Ok(());", "18-2-attempts"),
        ("15-1-asked", "self.disconnect(old, now, out);", "", "15-5-goodbye"),
    ] {
        fill(name, from, to);
        assert_eq!(found(noticed), format!("{name}, alone true"));
        fill(name, "", "");
    }
    fill("18-4-progress", "self.went_back = false;", "");
    assert_eq!(found("18-4-progress"), "here");
    fill("16-6-ack", "self.progress(qp, ctx);", "");
    assert_eq!(found("18-4-progress"), "here", "there are two faults, and one of them is here");
    fill("16-6-ack", "", "");
    fill("18-4-progress", "", "");
    let file = mine.0.folder.join("nic/src/psn.rs");
    write(&file, read(&file).unwrap().replace("wrapping_add(packets)", "wrapping_add(packets).wrapping_add(1)"))
        .unwrap();
    assert_eq!(found("16-6-ack"), "nic/src/psn.rs");
}

#[test]
fn what_is_written_stays_when_it_is_laid_out_again() {
    let project = Project::find().unwrap();
    let (mine, holes) = (scratch(&project, "test-of-laying-out"), Hole::all(&project).unwrap());
    assert!(mine.lay_out(&project, &holes).unwrap().is_empty());
    let hole = &holes[0];
    mine.fill(hole, "42").unwrap();
    let (file, laid) = (mine.0.folder.join(&hole.place.file), mine.0.folder.join(".laid").join(&hole.place.file));
    let hers = read(&file).unwrap();
    assert!(mine.lay_out(&project, &holes).unwrap().is_empty());
    assert_eq!(read(&file).unwrap(), hers);

    // The project was another one when this was laid out.
    for file in [&file, &laid] {
        write(file, read(file).unwrap().replace("How many packets this comes", "This comes")).unwrap();
    }
    assert!(mine.lay_out(&project, &holes).unwrap().is_empty());
    assert_eq!(read(&file).unwrap(), hers);
    write(&laid, read(&laid).unwrap().replace("How many packets this comes", "This comes")).unwrap();
    assert_eq!(mine.lay_out(&project, &holes).unwrap().join(" "), hole.place.file);
    assert_eq!(read(&file).unwrap(), hers);
}
