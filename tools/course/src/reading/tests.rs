use super::*;

const TEXT: &str = r#"
    read = "captures/04_rdma_write.pcapng"
    [[questions]]
    name = "frame"
    ask = "Which packet writes?"
    frame = "client sends: RDMA Write Only"
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

fn task(text: &str) -> Result<Reading> {
    let name = Name { lesson: "lessons/04_rdma_write".into(), name: "who".into() };
    Reading::of_page(&name, "Who wrote", text)
}

#[test]
fn right_answers_are_taken_however_they_are_written_and_wrong_ones_named() {
    let text = TEXT.replace("IBV_WC_SUCCESS", "ibv_qp_attr.rq_psn").replace("the client\"]", "0.64\"]");
    let (project, task) = (Project::find().unwrap(), task(&text).unwrap());
    task.prove(&project).unwrap();
    let capture = seen::read(&task.capture(&project).unwrap()).unwrap();
    let frame = task.questions[0].right(&capture).unwrap().remove(0);
    let wrong_of = |text: &str| -> Result<Vec<&str>> {
        Ok(task.wrong(&capture, text)?.into_iter().map(|question| &*question.name).collect())
    };
    let answers = |status: &str, who: &str| format!("frame = {frame}\nstatus = {status}\nwho = {who}");
    for (status, who) in [("' rq_psn'", "'B'"), ("'RQ_PSN (5)'", "0.64"), ("'ibv_qp_attr.rq_psn'", "'0.64'")] {
        assert_eq!(wrong_of(&answers(status, who)).unwrap(), [""; 0], "{status} {who}");
    }
    assert_eq!(wrong_of(&answers("'rq_psn (x)'", "0.63")).unwrap(), ["status", "who"]);
    assert_eq!(wrong_of(&task.sheet(&[])).unwrap(), ["frame", "status", "who"]);
    let error = format!("{:#}", wrong_of("frame = \nwho").unwrap_err());
    assert!(error.contains("an answer must be a line like") && error.contains("line 1"), "{error}");
}

#[test]
fn mistakes_in_questions_are_named() {
    let error = |text: String| format!("{:#}", task(&text).unwrap_err());
    assert!(error(TEXT.replace("answer = \"b\"", "answer = \"c\"")).contains("one of its choices"));
    assert!(error(TEXT.replace("answer = \"b\"", "")).contains("must have either a frame or an answer"));
    assert!(error(TEXT.replace("read =", "server =")).contains("unknown field `server`"));
    assert!(error(TEXT.replace("RDMA Write Only", "Write")).contains("no packet called"));
    let nothing = task(&TEXT.replace("RDMA Write Only", "NAK")).unwrap();
    let error = nothing.prove(&Project::find().unwrap()).unwrap_err().to_string();
    assert!(error.contains("nothing that the question `frame` asks for"), "{error}");
}
