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
use std::path::Path;

/// Why there is no story.
#[derive(Debug)]
pub enum Error {
    /// The file cannot be read.
    Io(String),
    /// The file is not TOML, or holds other keys than those of a story.
    Syntax {
        /// The lesson.
        lesson: String,
        /// What the parser says; it names the line.
        what: String,
    },
    /// The steps contradict each other.
    Content {
        /// The lesson.
        lesson: String,
        /// How.
        what: String,
    },
    /// Nobody has written that story.
    NoSuchStory {
        /// What was asked for.
        name: String,
        /// What could have been asked for.
        known: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(what) => f.write_str(what),
            Error::Syntax { lesson, what } => write!(f, "lessons/{lesson}/steps.toml: {what}"),
            Error::Content { lesson, what } => write!(f, "lessons/{lesson}/steps.toml: {what}"),
            Error::NoSuchStory { name, known } => write!(f, "there is no story `{name}`; there are {known}"),
        }
    }
}

impl std::error::Error for Error {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    variants: Vec<RawVariant>,
    steps: Vec<RawStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVariant {
    name: String,
    about: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    client: String,
    #[serde(default)]
    exit: u8,
    #[serde(default = "one")]
    clients: usize,
    #[serde(default)]
    repeats: bool,
}

fn one() -> usize {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    title: String,
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

/// Reads a lesson's `steps.toml`: one story for each variant. The lesson is the name of the folder.
///
/// # Errors
/// The file cannot be read, or does not hold a story.
pub fn load(path: &Path) -> Result<Vec<Story>, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Io(format!("{}: {error}", path.display())))?;
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    parse(&folder.to_string_lossy(), &text)
}

/// Reads the text of a `steps.toml`.
///
/// # Errors
/// The text does not hold a story; the message names the line or the step.
pub fn parse(lesson: &str, text: &str) -> Result<Vec<Story>, Error> {
    let file: File =
        basic_toml::from_str(text).map_err(|error| Error::Syntax { lesson: lesson.into(), what: error.to_string() })?;
    let content = |what| Error::Content { lesson: lesson.into(), what };
    check_variants(&file).map_err(content)?;
    let mut stories = Vec::new();
    for variant in &file.variants {
        stories.push(Story {
            lesson: lesson.into(),
            variant: variant.name.clone(),
            about: variant.about.clone(),
            server: variant.server.clone(),
            client: variant.client.clone(),
            exit: variant.exit,
            clients: variant.clients,
            repeats: variant.repeats,
            steps: steps(&file, &variant.name).map_err(content)?,
        });
    }
    Ok(stories)
}

fn check_variants(file: &File) -> Result<(), String> {
    let names: Vec<&str> = file.variants.iter().map(|variant| variant.name.as_str()).collect();
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
fn steps(file: &File, variant: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for raw in &file.steps {
        let part = raw.variants.as_ref().map_or(true, |variants| variants.iter().any(|name| name == variant));
        if part {
            let step = step(raw, &steps).map_err(|what| format!("{variant}: step \"{}\" {what}", raw.title))?;
            steps.push(step);
        }
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
