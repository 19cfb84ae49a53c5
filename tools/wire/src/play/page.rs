//! The player as one HTML file, which needs nothing beside itself.

use super::Run;
use run::capture::Events;
use run::lanes::{self, Style};
use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher};

/// The player's modules, each after those that it imports.
const MODULES: [&str; 11] = [
    include_str!("../../player/dom.js"),
    include_str!("../../player/bytes.js"),
    include_str!("../../player/run.js"),
    include_str!("../../player/ladder.js"),
    include_str!("../../player/code.js"),
    include_str!("../../player/packet.js"),
    include_str!("../../player/host.js"),
    include_str!("../../player/predict.js"),
    include_str!("../../player/transport.js"),
    include_str!("../../player/player.js"),
    include_str!("../../player/beside.js"),
];
/// The player's style sheet.
pub const LOOK: &str = include_str!("../../player/player.css");

/// So many lines of it are shown to those who run no script.
const MOST_LINES: usize = 3000;

/// A page for a run. `ladder` is what is read where no script runs. The page may load nothing and talk to nobody.
#[must_use]
pub fn page(run: &Run, ladder: &str) -> String {
    let (title, ladder, script, nonce) = (escaped(&run.title), escaped(ladder), script(), nonce());
    let mut page = String::new();
    let _ = write!(
        page,
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'">
<title>{title}</title>
<style nonce="{nonce}">{LOOK}</style>
</head>
<body class="player-page">
<header class="rp-spoken"><h1>{title}</h1></header>
<main id="player"><h2>{title}</h2><pre>{ladder}</pre></main>
<script type="application/json" id="data">{}</script>
<script type="module" nonce="{nonce}">
{script}mount(document.getElementById("player"), JSON.parse(document.getElementById("data").textContent), {{ keys: true }});
</script>
</body>
</html>
"#,
        run.json()
    );
    page
}

/// A number that nobody knew when the capture was made: only what bears it is run, and not what a capture might bring.
fn nonce() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}

/// A run's lanes or a capture's ladder as text, as much as a browser shows without effort.
#[must_use]
pub fn ladder(events: &Events) -> String {
    let text = lanes::text(events, Style::FILE, 0..=u64::MAX).unwrap_or_else(|error| error.to_string());
    text.lines().take(MOST_LINES).flat_map(|line| [line, "\n"]).collect()
}

/// The player's modules as one script, which defines `mount`.
#[must_use]
pub fn script() -> String {
    in_one(&MODULES)
}

/// Modules as one script, each after those that it imports. An import is one line, and its names are those of the module that it
/// comes from. What is said about a module at its beginning stays there: that of player.js would end the script.
#[must_use]
pub fn in_one(modules: &[&str]) -> String {
    let lines = modules.iter().flat_map(|module| module.lines());
    let lines = lines.filter(|line| !line.starts_with("import ") && !line.starts_with("//"));
    lines.map(|line| line.strip_prefix("export ").unwrap_or(line).to_owned() + "\n").collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
