//! The workbench, for a page that has the mark `<!-- workbench: NAME -->`: its scripts and its program, as scripts, for a page that is
//! opened from a folder may load those, and nothing else.

use super::player::{classic, folder, PARTS};
use super::{copy, pages};
use anyhow::{anyhow, Context, Result};
use course::differences;
use run::files::{read, write};
use std::ops::Range;
use std::path::Path;
use wire::play::page;
use workbench::change::changes;
use workbench::sentence::sentence;
use workbench::shown;

const FOLDER: &str = "tools/book/workbench";
/// Its modules, each after those that it imports.
const MODULES: [&str; 14] = [
    "kept",
    "core",
    "schedule",
    "captions",
    "playhead",
    "queues",
    "node",
    "stage",
    "form",
    "actions",
    "editor",
    "challenge",
    "details",
    "workbench",
];
/// What tools/book/program.sh has made of tools/workbench, if there was a compiler.
const PROGRAM: &str = "workbench.js";

/// What a page of the site has that shows one.
pub const CLASS: &str = "class=\"workbench\"";

/// What the start page's has.
const START: &str = "data-start=";

/// What's read where no script runs, and where there's no program.
const THERE: &str = "*Two NICs that you can touch: they need JavaScript, and run in this page.*";
const MISSING: &str =
    "**The workbench is not in this copy of the book**: where it was built, there was no compiler for WebAssembly.";

/// A page's text. The start page shows a run before its workbench is loaded; without the program, a page says that it's missing.
pub fn here(tools: &Path, text: String) -> Result<String> {
    Ok(match tools.join(PROGRAM).exists() {
        true if text.contains(START) => text.replace(THERE, &picture()?),
        true => text,
        false => text.replace(CLASS, "class=\"missing\"").replace(THERE, MISSING),
    })
}

/// The place on a page. `start` is the one of the start page, which shows one thing; other names are those of pages that have challenges.
pub fn place(name: &str) -> Vec<String> {
    let attributes = match name {
        "start" => format!("{START}\"{}\"", in_attribute(&start())),
        "all" => format!("data-script=\"{}\"", in_attribute(&good())),
        page => format!("data-page=\"{page}\""),
    };
    pages::block(&format!("{CLASS} {attributes}"), THERE)
}

/// The first run of the start page as a picture, which moves by its style alone, until the workbench takes its place: what's in both
/// memories, the two packets, and what happened.
fn picture() -> Result<String> {
    let (script, run) = shown::run(&good()).map_err(|error| anyhow!("line {}: {}", error.line, error.says))?;
    let [server, client] = [0, 1].map(|node| node_of(&run.nodes[node].bytes(&BYTES), node));
    let flies = |(way, sort, packet): (&str, &str, &str)| {
        format!("<div class=\"wb-flight {way}\"><b class=\"wb-packet rp-packet past {sort}\">{packet}</b></div>")
    };
    let packets = [("east", "write", "RDMA Write Only"), ("west", "acknowledge", "Acknowledge")];
    anyhow::ensure!(packets.iter().all(|(_, _, name)| run.record.flights.iter().any(|flight| flight.name == *name)));
    Ok(format!(
        "<link rel=\"stylesheet\" href=\"workbench/workbench.css\"><div class=\"rp wb wb-start wb-plain wb-still\"><div class=\"wb-all\">\
         <div class=\"wb-stage\">{client}<div class=\"wb-wire\"><span class=\"wb-way east\"></span>\
         <span class=\"wb-way west\"></span><p class=\"wb-passes\"></p><div class=\"wb-packets\">{}</div></div>{server}</div>\
         <div class=\"wb-say\"><strong>{}</strong></div></div></div>",
        packets.map(flies).concat(),
        sentence(&script, &run),
    ))
}

/// A node of the picture, with these bytes of its memory.
fn node_of(memory: &[u8], node: usize) -> String {
    let (side, name, program, nic) = match node {
        0 => (
            "right",
            "Server",
            "<i class=\"wb-asleep\">asleep: nothing wakes it</i>",
            "key is right: bytes are in place",
        ),
        _ => ("left", "Client", "asks for a WRITE", "sends, and waits for an answer"),
    };
    let floor = |name: &str, what: &str| {
        format!("<div class=\"wb-floor wb-of-{0}\"><b class=\"wb-name\">{0}</b>{what}</div>", name)
    };
    format!(
        "<div class=\"rp-pane rp-host rp-{side} wb-node wb-{side}\"><header><b>{name}</b></header>{}{}{}</div>",
        floor("program", &format!("<div class=\"wb-lane\"><span class=\"wb-short\">{program}</span></div>")),
        floor(
            "memory",
            &format!(
                "<div class=\"rp-memory\"><div class=\"rp-region\"><p></p><p class=\"rp-text\">“{}”</p></div></div>",
                String::from_utf8_lossy(memory)
            )
        ),
        floor("nic", &format!("<div class=\"wb-nic\"><p class=\"wb-fact\">{nic}</p></div>")),
    )
}

fn in_attribute(script: &str) -> String {
    script.replace('\n', "&#10;").replace('"', "&quot;")
}

/// The bytes that are written.
const BYTES: Range<usize> = 0..60;
const WRITE: &str = "client ibv_post_send WRITE 0..60 to server 0";

/// One program writes into the other's memory.
fn good() -> String {
    format!("{SETUP}{WRITE}\nclient ibv_poll_cq\n")
}

/// What the start page shows: a WRITE, and three ways to break it, each with what's different in the first line.
fn start() -> String {
    let lost =
        format!("# This time, the packet gets lost on its way.\n{}wire drop 1st RDMA Write Only from client\n", good());
    let refused = good().replace(WRITE, &format!("{WRITE} key=wrong"));
    let refused =
        format!("# Whoever opens memory hands out a key to it. This time, the client has a wrong one.\n{refused}");
    // Nobody wants to look on while a dead machine is asked eight times.
    let dead = format!("client ibv_create_qp retry_cnt=2\n{}at 15 us server dies\n", good());
    let dead = format!("# This time, the server is switched off.\n{dead}");
    [good(), lost, refused, dead].join("\n")
}

/// What the client does next begins once the connection is made, so that nothing else is on the wire then.
const SETUP: &str = "\
client ibv_reg_mr 0..60 LOCAL_WRITE
server ibv_reg_mr 0..60 LOCAL_WRITE|REMOTE_WRITE
at 20 us client memcpy 0 \"One side writes, and the other side's processor never knows.\"
";

/// A change of a lesson, as it's tried on the workbench.
#[derive(Default)]
pub struct Tried {
    /// The link that leads there, with the change's script in it.
    pub link: Vec<String>,
    /// What differs there from the recorded run, or why there's no link. It gives the answer away.
    pub says: Vec<String>,
}

/// How a change of the lesson with this number is tried, if pages say so.
pub fn tried(number: &str, name: &str) -> Result<Tried> {
    let full_name = format!("{number}-{name}");
    let lesson = folder(&full_name)?;
    let path = format!("tools/workbench/changes/{lesson}.md");
    if !Path::new(&path).exists() {
        return Ok(Tried::default());
    }
    let page = read(&path)?;
    let change = changes(&page).into_iter().find(|change| change.name == name);
    let change = change.with_context(|| format!("{path} has no section {name}"))?;
    let paragraph = |text: String| vec![String::new(), text, String::new()];
    let Some(story) = change.story() else {
        return Ok(Tried {
            says: paragraph(format!("You can't try this on the workbench. {}", change.says)),
            ..Tried::default()
        });
    };
    let title = course::page::Page::load(Path::new(&format!("lessons/{lesson}/changes/{name}.md")))?.title;
    let story = read(format!("tools/workbench/stories/{story}.txt"))?;
    let script = change.script(&format!("Lesson {number}, {name}: {title}"), &story).context(full_name.clone())?;
    let link = format!("[Try it yourself on the workbench](workbench.md#script={})", in_address(&script));
    let differs = differences::known(Path::new(""), &full_name)?.map(|known| {
        let (what, rxe, device) = (known.what, known.rxe, known.device);
        format!(
            "On the workbench this comes out differently, because [its NIC isn't rdma_rxe](device_differences.md#from-rdma_rxe). What \
             differs is *{what}* (rdma_rxe: {rxe}; the workbench: {device})."
        )
    });
    let own = Some(change.says).filter(|says| !says.is_empty()).map(|says| format!("**On the workbench:** {says}"));
    Ok(Tried { link: paragraph(link), says: own.into_iter().chain(differs).flat_map(paragraph).collect() })
}

/// A text as the value of a parameter, as `URLSearchParams` reads it, without what Markdown or HTML would take for its own.
fn in_address(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b"-_.:,=/".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}

/// Lays out what such a page loads.
pub fn lay_out(tools: &Path, to: &Path) -> Result<()> {
    if !tools.join(PROGRAM).exists() {
        return Ok(());
    }
    let modules: Result<Vec<_>> = MODULES.iter().map(|name| read(format!("{FOLDER}/{name}.js"))).collect();
    let modules = modules?;
    let script = page::in_one(&modules.iter().map(String::as_str).collect::<Vec<_>>());
    write(
        to.join("workbench.js"),
        classic("workbench", &format!("const {{ {PARTS} }} = player.parts;\n{script}"), "mount"),
    )?;
    copy(&format!("{FOLDER}/workbench.css"), to.join("workbench.css"))?;
    copy(&tools.join(PROGRAM).to_string_lossy(), to.join("program.js"))
}

#[cfg(test)]
mod tests {
    use super::tried;

    #[test]
    fn a_change_is_tried_by_a_link_or_says_why_not() {
        // Tests begin in the crate's own folder.
        let _ = run::files::root().map(std::env::set_current_dir);
        let here = tried("04", "wrong-key").unwrap_or_default();
        assert_eq!(here.link.len(), 3, "{:?}", here.link);
        let link = "[Try it yourself on the workbench](workbench.md#script=%23+Lesson+04,+wrong-key:+Use+a+wrong+key%0A%23+-+client";
        assert!(here.link[1].starts_with(link), "{}", here.link[1]);
        assert!(here.says.is_empty(), "{:?}", here.says);
        let elsewhere = tried("04", "locked-memory").unwrap_or_default();
        assert!(elsewhere.link.is_empty() && elsewhere.says[1].contains("It needs"), "{:?}", elsewhere.says);
        let other = tried("05", "no-reads").unwrap_or_default();
        assert!(other.says[1].contains("rdma_rxe: waits forever"), "{:?}", other.says);
    }
}
