//! docs/errors: what a page's command makes programs print is what stands on the page.

use super::support::{each, free_port, Run, CLIENT, SERVER};
use run::files::{files, read, root};

/// The pieces of a page between ``` lines of this kind, each as its lines.
fn fenced<'a>(page: &'a str, kind: &str) -> Vec<Vec<&'a str>> {
    let fence = format!("```{kind}\n");
    let parts = page.split(&fence).skip(1);
    parts.map(|part| part.lines().take_while(|line| *line != "```").collect()).collect()
}

#[test]
fn a_pages_command_makes_its_error() {
    let pages = files(&root().unwrap().join("docs/errors"), |path| path.extension().is_some_and(|kind| kind == "md"));
    let pages: Vec<(String, String)> =
        pages.unwrap().iter().map(|path| (path.display().to_string(), read(path).unwrap())).collect();
    let mut cases = Vec::new();
    for (path, page) in &pages {
        let commands = fenced(page, "sh").concat();
        let printed = fenced(page, "text").concat();
        let typed = commands.into_iter().filter(|command| command.starts_with("target/debug/device exec "));
        cases.extend(typed.map(|command| (path, command, printed.clone())));
    }
    assert!(cases.len() >= 10, "{cases:?}");
    each(&cases, |(path, command, printed)| {
        // Other tests use the programs' own port at the same time.
        let port = free_port();
        let with_port = |command: String, program| command.replace(program, &format!("{program} -p {port}"));
        let command =
            ["ibv_rc_pingpong", "ib_write_bw", "ib_write_lat"].into_iter().fold((*command).to_owned(), with_port);
        let check = Run::typed(&command).check();
        let is_there = |text: &&str| check.count(CLIENT, text.trim()) + check.count(SERVER, text.trim()) > 0;
        assert!(printed.iter().any(is_there), "{path}: {command}\n{}", check.all());
    });
}
