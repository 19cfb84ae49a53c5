//! Which capture of a lesson a run is to be compared with: that of the variant whose options are closest to the run's.

use run::capture::{Error, Reader};
use run::file::Line;
use run::story::{self, Side};
use std::path::{Path, PathBuf};

/// The bundled capture beside that of the lesson's first variant, and what to tell about the choice. A capture without lines says
/// nothing of options: it is compared with the first.
pub fn choose(mine: &mut Reader<impl std::io::Read>, first: &Path) -> Result<(PathBuf, Option<String>), Error> {
    let name = first.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let lesson = story::named(&name)?.lesson;
    let Some((options, wire)) = options(mine)? else { return Ok((first.to_owned(), None)) };
    let stories = story::bundled()?.into_iter().filter(|story| story.lesson == lesson);
    let Some((story, is_same)) = story::closest(stories, [&options[0], &options[1]], &wire) else {
        return Ok((first.to_owned(), None));
    };
    let found = story.file_name();
    let file = first.with_file_name(format!("{found}.pcapng"));
    // A run without options is what its page begins with, even where the recorded one has some.
    let note = if is_same && found != name {
        Some(format!("it was run with the options of {found}"))
    } else if is_same || options.iter().all(String::is_empty) {
        None
    } else {
        let given = Side::BOTH.into_iter().zip([&options[1], &options[0]]).filter(|(_, words)| !words.is_empty());
        let given: Vec<String> = given.map(|(side, words)| format!("{side} `{words}`")).collect();
        Some(format!("no bundled capture has these options: {}; the closest is {found}", given.join(", ")))
    };
    Ok((file, note))
}

/// What a run's server and its clients were started with, and the switch between them; None if this is no run of a lesson.
fn options(run: &mut Reader<impl std::io::Read>) -> Result<Option<([String; 2], String)>, Error> {
    let [mut server, mut client, mut wire] = [None, None, None];
    while let Some(Line { program, act, text, .. }) = run.line()? {
        if program == Line::LAB && act == Line::WIRE {
            wire = Some(text);
            continue;
        }
        if program != Line::LAB || act != "start" {
            continue;
        }
        let mut words = text.split_whitespace().skip_while(|word| !word.starts_with("lesson-")).skip(1);
        match words.next() {
            Some("server") => server = Some(own(words.collect())),
            Some("client") => client = Some(own(words.collect())),
            _ => {}
        }
    }
    Ok(server.zip(client).map(|(server, client)| ([server, client], wire.unwrap_or_default())))
}

fn own(words: Vec<&str>) -> String {
    story::own(&words.join(" "))
}
