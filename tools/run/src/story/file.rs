//! Reading `steps.toml`.
//!
//! ```toml
//! shows = ["write", "send: WC"]      # what is open in a run: stages, or lines that begin so; "client write": on that side
//!
//! # device = true                   recorded on the device in user space, as the lab cannot run it
//! [[variants]]                      # a way of running the lesson; the first is "main"
//! name = "main"
//! about = "One WRITE in one packet"
//! # server, client = "options"     exit = status of all programs
//! # wire = "rules"                 faults on the wire
//! # clients = 3                     this many at once, instead of one
//! # shows = ["lock"]               instead of the lesson's
//! # repeats = true                  the requests of each side come again and again, in this order
//! # peers = true                    every node is the client of one connection, and the server of another
//!
//! [[steps]]
//! title = "The client writes into the server's memory"
//! side = "client"                   # who sends
//! packets = "RC RDMA Write"         # without First, Middle, Last, Only
//! # says = "hello"                  of two CM messages of the same name: how this one's private data begins
//! file = "client.rs"                # what the program does: file, function, calls, log line (call, names, values)
//! stage = "write"
//! calls = ["ibv_post_send"]
//! log = "ibv_post_send RDMA_WRITE"
//! # variants = ["main"]             only in these
//!
//! [[steps]]
//! title = "The server's device acknowledges the WRITE"
//! side = "server"
//! packets = "RC Acknowledge"
//! device = true                     # no program has a part in it: it answers the next unanswered request; or it sends a CNP
//! ```

use super::{Act, Shown, Side, Step, Story, MAIN};
use anyhow::{anyhow, bail, ensure, Context, Error, Result};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    shows: Vec<String>,
    #[serde(default)]
    device: bool,
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
    says: Option<String>,
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
pub fn parse(lesson: &str, text: &str) -> Result<Vec<Story>> {
    let stories = || {
        let mut file: File = basic_toml::from_str(text)?;
        check_variants(&file)?;
        for story in &mut file.variants {
            story.lesson = lesson.into();
            story.device = file.device;
            let shows = story.own_shows.take();
            story.shows = shows.as_ref().unwrap_or(&file.shows).iter().map(|text| Shown::parse(text)).collect();
            story.steps = steps(&file.steps, &story.variant)?;
        }
        Ok(file.variants)
    };
    stories().map_err(|error: Error| anyhow!("lessons/{lesson}/steps.toml: {error}"))
}

fn check_variants(file: &File) -> Result<()> {
    let names: Vec<&str> = file.variants.iter().map(|variant| variant.variant.as_str()).collect();
    ensure!(names.first() == Some(&MAIN), "the first variant must be `{MAIN}`");
    for RawStep { title, variants, .. } in &file.steps {
        if let Some(name) = variants.iter().flatten().find(|name| !names.contains(&name.as_str())) {
            bail!("step \"{title}\" is part of the variant `{name}`, which is not described");
        }
    }
    Ok(())
}

/// The steps of one variant, each answer with the act that it answers.
fn steps(all: &[RawStep], variant: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    for raw in all {
        if raw.variants.as_ref().map_or(true, |variants| variants.iter().any(|name| name == variant)) {
            steps.push(step(raw, &steps).map_err(|what| anyhow!("{variant}: step \"{}\" {what}", raw.title))?);
        }
    }
    Ok(steps)
}

fn step(raw: &RawStep, before: &[Step]) -> Result<Step> {
    let act = match (raw.device, &raw.file, &raw.stage, &raw.calls, &raw.log) {
        // What was marked is the last that the other side has asked for.
        (true, None, None, None, None) if raw.packets == "CNP" => last_of(raw.side.other(), before)?,
        (true, None, None, None, None) => asked_for(raw.side, before)?,
        (true, ..) => bail!("is the device's own: it can have no file, stage, calls or log"),
        (false, Some(file), Some(stage), Some(calls), Some(log)) => {
            Act { side: raw.side, file: file.clone(), stage: stage.clone(), calls: calls.clone(), log: log.clone() }
        }
        _ => bail!("needs file, stage, calls and log, or `device = true`"),
    };
    let (number, title, packets, says) = (before.len() + 1, raw.title.clone(), raw.packets.clone(), raw.says.clone());
    let step = Step { number, title, side: raw.side, device: raw.device, act, packets, says };
    let is_devices = step.is_answer() || step.is_notification();
    ensure!(is_devices == step.device, "must have `device = true` if, and only if, its packets are answers, or CNPs");
    Ok(step)
}

/// What the other side did to get the next answer of this side: its first request that is not answered yet.
fn asked_for(side: Side, before: &[Step]) -> Result<Act> {
    let answers = before.iter().filter(|step| step.side == side && step.is_answer()).count();
    let mut requests = before.iter().filter(|step| step.side == side.other() && step.is_request());
    requests.nth(answers).map(|step| step.act.clone()).context("answers no request before it")
}

fn last_of(side: Side, before: &[Step]) -> Result<Act> {
    let mut requests = before.iter().filter(|step| step.side == side && step.is_request());
    requests.next_back().map(|step| step.act.clone()).context("has no request of the other side before it")
}

#[cfg(test)]
mod tests {
    use super::*;

    // How each step of the lessons is told, the comments of the bundled captures show.
    const REQUEST: &str = r#"
        shows = ["send"]
        [[variants]]
        name = "main"
        about = "A SEND"
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

    #[test]
    fn mistakes_are_named() {
        let whole = format!("{REQUEST}{ANSWER}");
        assert_eq!(parse("04_rdma_write", &whole).unwrap()[0].steps.len(), 2);
        for (text, said) in [
            (whole.replace("stage", "# stage"), "step \"The client sends\" needs file, stage, calls and log"),
            (format!("{whole}{ANSWER}"), "answers no request before it"),
            (whole.replace("device = true", "device = true\nlog = \"x\""), "is the device's own"),
            (whole.replace("RC Acknowledge", "RC Send"), "if, and only if"),
            (REQUEST.replace("[\"main\"]", "[\"other\"]"), "`other`, which is not described"),
            (REQUEST.replace("\"main\"", "\"most\""), "the first variant must be `main`"),
            (REQUEST.replace("title", "titel"), "unknown field `titel`"),
        ] {
            let error = parse("04_rdma_write", &text).unwrap_err().to_string();
            assert!(error.starts_with("lessons/04_rdma_write/steps.toml: ") && error.contains(said), "{error}");
        }
    }
}
