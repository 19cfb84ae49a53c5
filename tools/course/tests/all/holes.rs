//! The holes of part three: they fit the source of today, and the judge knows a stub, a wrong body and the project's own.

use course::edit::Edit;
use course::nic::copy::{solution, MineNic};
use course::nic::hole::{Hole, Wrong};
use course::nic::judge::{judge, Verdict};
use course::project::Project;
use run::files::{read, write};
use std::fs;

/// A NIC in a folder that is no learner's.
pub fn scratch(project: &Project, name: &str) -> MineNic {
    let folder = project.target.join("course").join(name);
    let _ = fs::remove_dir_all(&folder);
    MineNic::new(folder)
}

fn verdict(project: &Project, mine: &MineNic, hole: &Hole) -> Verdict {
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
    let judged = |lesson: &[Hole]| -> Vec<Verdict> {
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
        // One is enough: each takes until the deadline.
        let spins = (String::from("loop {}"), String::from("It did not end within"));
        let spins = Some(spins).filter(|_| hole.name.to_string() == "14-1-since");
        let wrong = |it: &Wrong| (Edit::apply(&it.edits, &hole.place.file, &right).unwrap(), it.says.clone());
        let not = [(hole.stub.clone(), hole.says.clone())].into_iter().chain(hole.wrong.iter().map(wrong));
        for (body, says) in not.chain([panics]).chain(spins).chain([(right.clone(), String::new())]) {
            mine.fill(hole, &body).unwrap();
            let Verdict { is_right, seen } = verdict(&project, &mine, hole);
            if is_right != says.is_empty() || !seen.contains(&says) {
                otherwise.push(format!("{}:\n{body}\nhas to be judged: {says}\nand is: {seen}", hole.name));
            }
        }
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n\n"));
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
