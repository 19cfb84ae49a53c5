//! Reading `steps.toml`.
//!
//! ```toml
//! [[variants]]                      # a way of running the lesson; the first is "main"
//! name = "main"
//! about = "One WRITE in one packet"
//! # server, client = "options"     exit = status of all programs
//! # clients = 3                     so many at once, instead of one
//! # repeats = true                  the requests of each side come again and again, in this order
//!
//! [[steps]]
//! title = "The client writes into the server's memory"
//! side = "client"                   # who sends
//! packets = "RC RDMA Write"         # without First, Middle, Last, Only
//! file = "client.rs"                # what the program does: file, function, calls, log line
//! stage = "write"
//! calls = ["ibv_post_send"]
//! log = "ibv_post_send RDMA_WRITE"
//! # variants = ["main"]             only in these
//!
//! [[steps]]
//! title = "The server's device acknowledges the WRITE"
//! side = "server"
//! packets = "RC Acknowledge"
//! device = true                     # no program has a part in it: it answers the next unanswered request
//! ```

use super::{Act, Side, Step, Story, MAIN};
use serde::Deserialize;
use std::fmt;

/// Why there is no story, in a sentence.
#[derive(Debug)]
pub struct Error(pub(super) String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    variants: Vec<Story>,
    steps: Vec<RawStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    title: String,
    #[serde(with = "SideName")]
    side: Side,
    packets: String,
    #[serde(default)]
    device: bool,
    file: Option<String>,
    stage: Option<String>,
    calls: Option<Vec<String>>,
    log: Option<String>,
    variants: Option<Vec<String>>,
}

/// How a side is written in the file.
#[derive(Deserialize)]
#[serde(remote = "Side", rename_all = "lowercase")]
enum SideName {
    Client,
    Server,
}

/// Reads the text of a lesson's `steps.toml`: one story for each variant. The lesson is the name of the folder.
pub fn parse(lesson: &str, text: &str) -> Result<Vec<Story>, Error> {
    let wrong = |what: String| Error(format!("lessons/{lesson}/steps.toml: {what}"));
    let mut file: File = basic_toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    check_variants(&file).map_err(wrong)?;
    for story in &mut file.variants {
        story.lesson = lesson.into();
        story.steps = steps(&file.steps, &story.variant).map_err(wrong)?;
    }
    Ok(file.variants)
}

fn check_variants(file: &File) -> Result<(), String> {
    let names: Vec<&str> = file.variants.iter().map(|variant| variant.variant.as_str()).collect();
    if names.first() != Some(&MAIN) {
        return Err(format!("the first variant must be `{MAIN}`"));
    }
    for step in &file.steps {
        let unknown = |name: &&String| !names.contains(&name.as_str());
        if let Some(name) = step.variants.iter().flatten().find(unknown) {
            return Err(format!("step \"{}\" is part of the variant `{name}`, which is not described", step.title));
        }
    }
    Ok(())
}

/// The steps of one variant, each answer with the act that it answers.
fn steps(all: &[RawStep], variant: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let part =
        |raw: &&RawStep| raw.variants.as_ref().map_or(true, |variants| variants.iter().any(|name| name == variant));
    for raw in all.iter().filter(part) {
        steps.push(step(raw, &steps).map_err(|what| format!("{variant}: step \"{}\" {what}", raw.title))?);
    }
    Ok(steps)
}

fn step(raw: &RawStep, before: &[Step]) -> Result<Step, String> {
    let act = match (raw.device, &raw.file, &raw.stage, &raw.calls, &raw.log) {
        (true, None, None, None, None) => asked_for(raw.side, before)?,
        (true, ..) => return Err("is the device's own: it can have no file, stage, calls or log".into()),
        (false, Some(file), Some(stage), Some(calls), Some(log)) => {
            Act { side: raw.side, file: file.clone(), stage: stage.clone(), calls: calls.clone(), log: log.clone() }
        }
        _ => return Err("needs file, stage, calls and log, or `device = true`".into()),
    };
    let (number, title, packets) = (before.len() + 1, raw.title.clone(), raw.packets.clone());
    let step = Step { number, title, side: raw.side, device: raw.device, act, packets };
    if step.is_answer() != step.device {
        return Err("must have `device = true` if, and only if, its packets are answers".into());
    }
    Ok(step)
}

/// What the other side did to get the next answer of this side: its first request that is not answered yet.
fn asked_for(side: Side, before: &[Step]) -> Result<Act, String> {
    let answers = before.iter().filter(|step| step.side == side && step.is_answer()).count();
    let mut requests = before.iter().filter(|step| step.side == side.other() && step.is_request());
    requests.nth(answers).map(|step| step.act.clone()).ok_or_else(|| "answers no request before it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = r#"
        [[variants]]
        name = "main"
        about = "A SEND"
        [[variants]]
        name = "short"
        about = "Nothing"
        client = "--none"
        exit = 1
        [[steps]]
        title = "The client sends"
        side = "client"
        packets = "RC Send"
        file = "client.rs"
        stage = "send"
        calls = ["ibv_post_send"]
        log = "ibv_post_send SEND"
        variants = ["main"]
    "#;
    const ANSWER: &str = r#"
        [[steps]]
        title = "The server's device acknowledges"
        side = "server"
        packets = "RC Acknowledge"
        device = true
        variants = ["main"]
    "#;

    fn error(text: &str) -> String {
        parse("04_rdma_write", text).unwrap_err().to_string()
    }

    #[test]
    fn an_answer_takes_the_act_that_asked_for_it() {
        let stories = parse("04_rdma_write", &format!("{REQUEST}{ANSWER}")).unwrap();
        let [main, short] = stories.as_slice() else { panic!("two variants") };
        assert_eq!((main.short_name().as_str(), main.exit), ("04", 0));
        assert_eq!((short.file_name().as_str(), short.exit), ("04_rdma_write-short", 1));
        assert!(short.steps.is_empty());
        let comments: Vec<String> = main.steps.iter().map(Step::comment).collect();
        assert_eq!(
            comments,
            [
                "Step 1: The client sends [client: ibv_post_send in send, client.rs]",
                "Step 2: The server's device acknowledges [server's device, in answer to the client's ibv_post_send]",
            ]
        );
    }

    #[test]
    fn mistakes_are_named() {
        let no_stage = format!("{REQUEST}{ANSWER}").replace("stage", "# stage");
        assert!(error(&no_stage).contains("step \"The client sends\" needs file, stage, calls and log"));
        let two_answers = format!("{REQUEST}{ANSWER}{ANSWER}");
        assert!(error(&two_answers).contains("answers no request before it"));
        let own_answer = format!("{REQUEST}{}", ANSWER.replace("device = true", "device = true\nlog = \"x\""));
        assert!(error(&own_answer).contains("is the device's own"));
        let sent_by_device = format!("{REQUEST}{ANSWER}").replace("RC Acknowledge", "RC Send");
        assert!(error(&sent_by_device).contains("if, and only if"));
        let unknown_variant = REQUEST.replace("[\"main\"]", "[\"other\"]");
        assert!(error(&unknown_variant).contains("`other`, which is not described"));
        assert!(error(&REQUEST.replace("\"main\"", "\"most\"")).contains("the first variant must be `main`"));
        let misspelled = error(&REQUEST.replace("title", "titel"));
        assert!(misspelled.contains("unknown field `titel`") && misspelled.contains("line 10"), "{misspelled}");
    }
}
