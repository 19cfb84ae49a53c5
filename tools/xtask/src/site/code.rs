//! Source files as pages of the book: what is in one folder together, so that there are not hundreds of them.

use crate::docs::links;
use crate::docs::page::Page;
use crate::docs::sources::{files, Sources};
use anyhow::Result;
use run::files::read;
use std::collections::BTreeSet;
use std::path::Path;

/// How the book's highlighter calls the language of a file, by the end of the file's name.
const LANGUAGES: [(&str, &str); 10] = [
    (".rs", "rust"),
    (".toml", "toml"),
    (".py", "python"),
    (".c", "c"),
    (".js", "javascript"),
    (".sh", "bash"),
    (".yml", "yaml"),
    (".yaml", "yaml"),
    ("Makefile", "makefile"),
    ("/run", "bash"),
];

/// What is read as a whole; of the rest, single files.
const READ: [&str; 4] = ["lessons/", "common/", "tools/device/src/", "tools/nic/src/"];

fn language(path: &str) -> Option<&'static str> {
    LANGUAGES.iter().find(|(end, _)| path.ends_with(end)).map(|(_, language)| *language)
}

/// Where the book shows what a link leads to, if that is text or a folder: the page of code, and the place on it.
pub fn place(path: &str) -> Option<(String, String)> {
    if Path::new(path).is_dir() {
        return Some((path.trim_end_matches('/').to_owned(), String::new()));
    }
    language(path)?;
    match path.rsplit_once('/') {
        Some((folder, file)) if path.ends_with(".rs") && READ.iter().any(|part| path.starts_with(part)) => {
            Some((folder.to_owned(), format!("#{file}")))
        }
        _ => Some((path.to_owned(), String::new())),
    }
}

/// The book's pages of code: the sources of all lessons, what these call, and what the pages quote or link to.
pub fn shown(sources: &Sources, pages: &[Page]) -> BTreeSet<String> {
    let lessons = sources.lessons.iter().map(|lesson| format!("lessons/{}/src", lesson.name));
    let quoted = pages.iter().flat_map(Page::quoted_files);
    let linked = pages.iter().flat_map(links::files);
    let called = ["common/src".to_owned(), "common/src/cm".to_owned()];
    let all = lessons.chain(called).chain(quoted).chain(linked);
    all.filter_map(|path| place(&path)).map(|(page, _)| page).collect()
}

/// A page that shows a file, or those in a folder.
pub fn page(path: &str) -> Result<String> {
    let mut text = format!("# {path}\n");
    if !Path::new(path).is_dir() {
        return Ok(text + &block(path, &read(path)?));
    }
    for file in files(path, "")?.iter().filter(|file| language(file).is_some()) {
        let name = file.rsplit('/').next().unwrap_or_default();
        // Tests are looked at in the repository: the book only says which there are.
        if path.ends_with("/tests") {
            text += &format!("\n## {name} {{#{name}}}\n");
            continue;
        }
        text += &format!("\n## {name} {{#{name}}}\n{}", block(file, &read(file)?));
    }
    Ok(text)
}

/// Four marks, for the text may hold a block itself.
fn block(path: &str, text: &str) -> String {
    format!("\n````{}\n{}\n````\n", language(path).unwrap_or_default(), text.trim_end())
}
