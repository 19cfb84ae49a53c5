use super::*;
use std::path::Path;

const TEXT: &str = r#"
    title = "Who wrote"
    task = "Read"
    hints = ["Look"]
    why = "So."
    read = "captures/04_rdma_write.pcapng"
    [[questions]]
    name = "frame"
    ask = "Which packet writes?"
    frame = { node = "client", packet = "RDMA Write Only" }
    hint = "One says Write."
    [[questions]]
    name = "status"
    ask = "Which status?"
    answer = "IBV_WC_SUCCESS"
    hint = "WC"
    [[questions]]
    name = "who"
    ask = "Who?"
    choices = ["the server", "the client"]
    answer = "b"
    hint = "The arrow."
"#;

fn task(text: &str) -> Result<Change> {
    Change::parse(Path::new("lessons/04_rdma_write"), "who", text)
}

#[test]
fn right_answers_are_taken_however_they_are_written_and_wrong_ones_named() {
    let (project, task) = (Project::find().unwrap(), task(TEXT).unwrap());
    prove(&project, &task).unwrap();
    let capture = capture(&project, &task).unwrap();
    let frame = task.questions[0].right(&capture).unwrap().remove(0);
    let wrong_of = |text: &str| -> Result<Vec<&str>> {
        Ok(wrong(&task, &capture, text)?.into_iter().map(|question| &*question.name).collect())
    };
    assert!(wrong_of(&format!("frame = {frame}\nstatus = ' success'\nwho = 'B'")).unwrap().is_empty());
    assert_eq!(wrong_of(&sheet(&task, &BTreeMap::new())).unwrap(), ["frame", "status", "who"]);
    let error = format!("{:#}", wrong_of("frame = \nwho").unwrap_err());
    assert!(error.contains("each answer is a line as") && error.contains("line 1"), "{error}");
}

#[test]
fn answers_in_the_words_of_the_log_are_taken_too() {
    let text = TEXT.replace("the client\"]", "0.64\"]").replace("name = \"who\"", "name = \"time\"");
    let text = text.replace("IBV_WC_SUCCESS", "rq_psn");
    let task = task(&text).unwrap();
    let capture = capture(&Project::find().unwrap(), &task).unwrap();
    let frame = task.questions[0].right(&capture).unwrap().remove(0);
    let wrong_of = |status: &str, time: &str| {
        let text = format!("frame = {frame}\nstatus = {status}\ntime = {time}");
        wrong(&task, &capture, &text).unwrap().into_iter().map(|question| question.name.clone()).collect::<Vec<_>>()
    };
    for (status, time) in [("'ibv_qp_attr.rq_psn'", "0.64"), ("'rq_psn (5)'", "'0.64'"), ("'RQ_PSN'", "'B'")] {
        assert!(wrong_of(status, time).is_empty(), "{status} {time}: {:?}", wrong_of(status, time));
    }
    assert_eq!(wrong_of("'rq_psn (x)'", "0.63"), ["status", "time"]);
    assert_eq!(wrong_of("'sq_psn'", "'the server'"), ["status", "time"]);
}

#[test]
fn the_readers_capture_has_the_same_frames_and_not_the_name_of_the_change() {
    let project = Project::find().unwrap();
    for change in Change::all(&project).unwrap().iter().filter(|change| change.is_reading()) {
        let (bare, whole) = (nameless(&project, change).unwrap(), capture(&project, change).unwrap());
        let name = change.read.rsplit('/').next().unwrap().trim_end_matches(".pcapng");
        let has = |run: &[u8], text: &str| run.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has(&whole, name) && !has(&bare, name) && !has(&bare, " --"), "{}", change.read);
        for question in &change.questions {
            assert_eq!(question.right(&bare).unwrap(), question.right(&whole).unwrap(), "{}", question.name);
        }
    }
}

#[test]
fn mistakes_in_questions_are_named() {
    let error = |text: String| format!("{:#}", task(&text).unwrap_err());
    assert!(error(TEXT.replace("answer = \"b\"", "answer = \"c\"")).contains("none of its choices"));
    assert!(error(TEXT.replace("answer = \"b\"", "")).contains("has a frame, or an answer"));
    assert!(error(TEXT.replace("read =", "server =")).contains("`read` names the capture"));
    assert!(error(TEXT.replace("RDMA Write Only", "Write")).contains("calls no packet"));
    let nothing = task(&TEXT.replace("RDMA Write Only", "NAK")).unwrap();
    let error = prove(&Project::find().unwrap(), &nothing).unwrap_err().to_string();
    assert!(error.contains("nothing that the question `frame` asks for"), "{error}");
}
