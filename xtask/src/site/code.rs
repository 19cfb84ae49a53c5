//! Source files and folders as pages of the book.

use crate::docs::links;
use crate::docs::page::Page;
use crate::docs::sources::Sources;
use anyhow::Result;
use std::collections::BTreeSet;

/// How the book's highlighter calls the language of a file, by the end of the file's name.
const LANGUAGES: [(&str, &str); 11] = [
    (".rs", "rust"),
    (".toml", "toml"),
    (".py", "python"),
    (".c", "c"),
    (".js", "javascript"),
    (".sh", "bash"),
    (".yml", "yaml"),
    (".yaml", "yaml"),
    ("Makefile", "makefile"),
    (".txt", "text"),
    ("/run", "bash"),
];

/// Whether a link leads to what the book shows as code: text, or a folder.
pub fn is_code(path: &str, sources: &Sources) -> bool {
    sources.path(path).is_dir() || language(path).is_some()
}

fn language(path: &str) -> Option<&'static str> {
    LANGUAGES.iter().find(|(end, _)| path.ends_with(end)).map(|(_, language)| *language)
}

/// What the book shows: the sources of all lessons, what these call, and what the pages quote or link to, with what is in such
/// a folder.
///
/// # Errors
/// A folder cannot be read.
pub fn shown(sources: &Sources, pages: &[Page]) -> Result<BTreeSet<String>> {
    let mut shown: BTreeSet<String> =
        sources.lessons.iter().map(|lesson| format!("lessons/{}/src", lesson.name)).collect();
    shown.insert("common/src".into());
    for page in pages {
        shown.extend(links::files(page));
        shown.extend(page.marks().into_iter().filter(|mark| mark.kind == "code").flat_map(|mark| mark.words));
    }
    shown.retain(|path| is_code(path, sources));
    let mut folders: Vec<String> = shown.iter().filter(|path| sources.path(path).is_dir()).cloned().collect();
    while let Some(folder) = folders.pop() {
        for path in sources.files(&folder, "")?.into_iter().filter(|path| is_code(path, sources)) {
            if sources.path(&path).is_dir() {
                folders.push(path.clone());
            }
            shown.insert(path);
        }
    }
    Ok(shown)
}

/// A page that shows a file, or lists what is in a folder.
///
/// # Errors
/// It cannot be read.
pub fn page(sources: &Sources, path: &str) -> Result<String> {
    let title = format!("# {path}\n\n");
    let Some(language) = language(path).filter(|_| !sources.path(path).is_dir()) else {
        let files = sources.files(path, "")?.into_iter().filter(|file| is_code(file, sources));
        let name = |file: &str| file.rsplit('/').next().unwrap_or_default().to_string();
        let own = name(path);
        return Ok(title + &files.map(|file| format!("- [{0}]({own}/{0}.md)\n", name(&file))).collect::<String>());
    };
    let text = sources.text(path)?;
    // Longer than each fence in it.
    let fence = "`".repeat(4);
    Ok(format!("{title}{fence}{language}\n{}\n{fence}\n", text.trim_end()))
}
