//! Pictures: ladders are drawn from captures, and screenshots know which capture they show.

use super::page::Problem;
use super::sources::Sources;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use wire::story;

const FOLDER: &str = "docs/images";
/// For each screenshot a line: its capture's CRC-32, the capture, the picture.
const MANIFEST: &str = "docs/images/screenshots.txt";
/// A page shall load fast: bytes of one screenshot.
const LARGEST: usize = 150 * 1024;

/// Which capture each screenshot shows: picture to (capture, CRC-32 of its file).
type Manifest = BTreeMap<String, (String, String)>;

/// Draws the ladders of all stories; what could not be drawn is returned.
///
/// # Errors
/// A picture cannot be written.
pub fn write_ladders(sources: &Sources) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for story in story::bundled()? {
        let name = story.file_name();
        let file = sources.path(&format!("{FOLDER}/{name}.svg"));
        match drawn(sources, &name) {
            Ok(svg) if fs::read_to_string(&file).map_or(true, |old| old != svg) => {
                fs::create_dir_all(sources.path(FOLDER))?;
                fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
                println!("{FOLDER}/{name}.svg written");
            }
            Ok(_) => {}
            Err(error) => problems.push(Problem::new(FOLDER, format!("{error:#}"))),
        }
    }
    Ok(problems)
}

fn drawn(sources: &Sources, name: &str) -> Result<String> {
    Ok(wire::svg::draw(&sources.rows(&format!("captures/{name}.pcapng"))?))
}

/// The link to a ladder, for a page in docs/.
///
/// # Errors
/// There is no such capture.
pub fn ladder_link(sources: &Sources, name: &str) -> Result<String> {
    let rows = sources.rows(&format!("captures/{name}.pcapng"))?;
    Ok(format!("![{}](images/{name}.svg)", wire::svg::describe(&rows)))
}

/// Notes which captures the screenshots show, given as (picture, capture).
///
/// # Errors
/// There is no such capture, or the list cannot be written.
pub fn record(root: &Path, pictures: &[(String, &str)]) -> Result<()> {
    let sources = Sources::new(root);
    let mut text = String::new();
    for (picture, capture) in pictures {
        text += &format!("{} {capture} {picture}\n", checksum(&sources, capture)?);
    }
    fs::write(sources.path(MANIFEST), text).with_context(|| format!("cannot write {MANIFEST}"))
}

/// Ladders and screenshots that do not show the captures as they are now.
pub fn problems(sources: &Sources) -> Vec<Problem> {
    let ladders = story::bundled().map(|stories| {
        let names = stories.iter().map(story::Story::file_name);
        names.filter_map(|name| ladder_problem(sources, &name)).collect::<Vec<_>>()
    });
    let mut problems = ladders.unwrap_or_else(|error| vec![Problem::new(FOLDER, error.to_string())]);
    match screenshots(sources) {
        Ok(found) => problems.extend(found),
        Err(error) => problems.push(Problem::new(MANIFEST, format!("{error:#}"))),
    }
    problems
}

fn ladder_problem(sources: &Sources, name: &str) -> Option<Problem> {
    let path = format!("{FOLDER}/{name}.svg");
    let what = match (drawn(sources, name), sources.text(&path)) {
        (Ok(svg), Ok(kept)) if svg == kept => return None,
        (Ok(_), Ok(_)) => "is not what `make docs` draws: run it and commit".into(),
        (Err(error), _) | (_, Err(error)) => format!("{error:#}"),
    };
    Some(Problem::new(&path, what))
}

fn screenshots(sources: &Sources) -> Result<Vec<Problem>> {
    let manifest = read(&sources.text(MANIFEST)?)?;
    let mut problems = Vec::new();
    for file in sources.files(FOLDER, ".png")? {
        let name = file.trim_start_matches(FOLDER).trim_start_matches('/');
        let size = sources.bytes(&file)?.len();
        if !manifest.contains_key(name) {
            problems.push(Problem::new(&file, format!("is not in {MANIFEST}: `make screenshots` makes all pictures")));
        }
        if size > LARGEST {
            problems.push(Problem::new(&file, format!("has {size} bytes, and may have {LARGEST}")));
        }
    }
    for (picture, (capture, sum)) in &manifest {
        let path = format!("{FOLDER}/{picture}");
        if !sources.path(&path).exists() {
            problems.push(Problem::new(&path, format!("does not exist, but is in {MANIFEST}")));
        } else if checksum(sources, capture)? != *sum {
            let what = format!("shows an earlier captures/{capture}.pcapng: run `make screenshots` and look at it");
            problems.push(Problem::new(&path, what));
        }
    }
    Ok(problems)
}

fn checksum(sources: &Sources, capture: &str) -> Result<String> {
    let bytes = sources.bytes(&format!("captures/{capture}.pcapng"))?;
    Ok(format!("{:08x}", crc32fast::hash(&bytes)))
}

fn read(text: &str) -> Result<Manifest> {
    let mut manifest = Manifest::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [sum, capture, picture] = words[..] else { anyhow::bail!("`{line}` is not CRC-32, capture, picture") };
        manifest.insert(picture.into(), (capture.into(), sum.into()));
    }
    Ok(manifest)
}
