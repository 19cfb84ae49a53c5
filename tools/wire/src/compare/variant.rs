//! Which capture of a lesson a run is to be compared with: that of the variant which has the run's options.

use run::capture::{Error, Reader};
use run::file::{Event, Line};
use run::story::{self, Side, Story};
use std::path::{Path, PathBuf};

/// Given by whoever runs a lesson, and the same in each variant: the server's address, and how many clients it has.
const GIVEN: [&str; 2] = ["-a", "-n"];

/// The bundled capture beside that of the lesson's first variant, and what to tell about the choice. A capture without lines says
/// nothing of options: it is compared with the first.
pub fn choose(mine: &mut Reader<impl std::io::Read>, first: &Path) -> Result<(PathBuf, Option<String>), Error> {
    let name = first.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let lesson = story::named(&name)?.lesson;
    let Some(options) = options(mine)? else { return Ok((first.to_owned(), None)) };
    let mut stories = story::bundled()?.into_iter().filter(|story| story.lesson == lesson);
    let is_it = |story: &Story| [&story.server, &story.client].map(|text| own(text.split_whitespace())) == options;
    let name = match stories.find(is_it) {
        Some(story) if story.file_name() == name => return Ok((first.to_owned(), None)),
        Some(story) => story.file_name(),
        // A run without options is what its page begins with, even where the recorded one has some.
        None if options.iter().all(Vec::is_empty) => return Ok((first.to_owned(), None)),
        None => {
            let given = Side::BOTH.into_iter().zip([&options[1], &options[0]]).filter(|(_, words)| !words.is_empty());
            let given: Vec<String> = given.map(|(side, words)| format!("{side} `{}`", words.join(" "))).collect();
            let note = format!("no bundled capture has these options: {}", given.join(", "));
            return Ok((first.to_owned(), Some(note)));
        }
    };
    Ok((first.with_file_name(format!("{name}.pcapng")), Some(format!("it was run with the options of {name}"))))
}

/// What a run's server and its clients were started with; None if this is no run of a lesson.
fn options(run: &mut Reader<impl std::io::Read>) -> Result<Option<[Vec<String>; 2]>, Error> {
    let [mut server, mut client] = [None, None];
    while let Some(event) = run.event()? {
        let Event::Line(Line { program, act, text, .. }) = event else { continue };
        if program != Line::LAB || act != "start" {
            continue;
        }
        let mut words = text.split_whitespace().skip_while(|word| !word.starts_with("lesson-")).skip(1);
        match words.next() {
            Some("server") => server = Some(own(words)),
            Some("client") => client = Some(own(words)),
            _ => {}
        }
    }
    Ok(server.zip(client).map(|(server, client)| [server, client]))
}

/// Options without those that are given in any case.
fn own<'a>(mut words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut own = Vec::new();
    while let Some(word) = words.next() {
        match GIVEN.contains(&word) {
            true => drop(words.next()),
            false => own.push(word.to_owned()),
        }
    }
    own
}
