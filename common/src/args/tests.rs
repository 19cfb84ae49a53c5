use super::*;

const WAY: Opt = Opt::choice(Side::Both, "way", &["send", "write"], "");
const TEXT: Opt = Opt::text(Side::Client, "text", "hello", "").short('s');
const LEN: Opt = Opt::number(Side::Client, "len", "text", "");
const TIMES: Opt = Opt::number_or(Side::Server, "times", "50", "");
const CHECK: Opt = Opt::flag(Side::Server, "check", "");
const ALL: [Opt; 5] = [WAY, TEXT, LEN, TIMES, CHECK];

fn parse(options: &[Opt], line: &str) -> std::result::Result<Args, clap::Error> {
    let matches = opt::command("lesson-00", "a test", options).try_get_matches_from(line.split(' '))?;
    Ok(read(matches.subcommand().unwrap().1, options))
}

#[test]
fn the_command_is_well_formed() {
    opt::command("lesson-00", "a test", &ALL).debug_assert();
}

#[test]
fn who_misspells_an_option_sees_how_those_of_that_side_are_called() {
    let mut command = opt::command("lesson-00", "a test", &ALL);
    let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
    let shown = options_of(&mut command, &words("lesson-00 client --lne 5"));
    assert!(shown.contains("--len") && shown.contains("--address") && !shown.contains("--times"), "{shown}");
    assert_eq!(options_of(&mut command, &words("lesson-00 nobody")), "");
}

#[test]
fn defaults() {
    let server = parse(&ALL, "lesson-00 server").unwrap();
    assert_eq!((server.address.as_str(), server.port, server.text(&WAY)), ("::", 7471, "send"));
    assert_eq!((server.number(&TIMES), server.flag(&CHECK), server.count()), (Some(50), false, 1));
    let client = parse(&ALL, "lesson-00 client -a server").unwrap();
    assert_eq!((client.number(&TIMES), client.flag(&CHECK)), (None, false));
    assert_eq!((client.address.as_str(), client.text(&TEXT), client.number(&LEN)), ("server", "hello", None));
}

#[test]
fn everything_given() {
    let client = parse(&ALL, "lesson-00 client -a fd47:91::1 -p 7 --way write --len 253").unwrap();
    assert_eq!((client.port, client.text(&WAY), client.number(&LEN)), (7, "write", Some(253)));
    let server = parse(&ALL, "lesson-00 server -n 4 --times 0 --check").unwrap();
    assert_eq!((server.number(&TIMES), server.flag(&CHECK), server.count()), (Some(0), true, 4));
    assert_eq!(parse(&ALL, "lesson-00 client -a x -s bye").unwrap().text(&TEXT), "bye");
}

#[test]
fn wrong_usage_exits_with_2() {
    let wrong = [
        "lesson-00",
        "lesson-00 peer",
        "lesson-00 client",
        "lesson-00 client -a x -p 0",
        "lesson-00 client -a x -p 65536",
        "lesson-00 client -a x -s a --len 1",
        "lesson-00 client -a x --len 0",
        "lesson-00 client -a x --timeout 0",
        "lesson-00 client -a x -n 2",
        "lesson-00 server -s a",
        "lesson-00 server --way pigeon",
    ];
    for line in wrong {
        assert_eq!(parse(&ALL, line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn a_lesson_has_only_its_own_options() {
    assert!(parse(&[], "lesson-00 client -a x -s a").is_err());
    assert!(parse(&[], "lesson-00 server --way send").is_err());
}

#[test]
fn as_many_clients_as_asked_for_and_the_failed_ones_are_counted() {
    let mut clients = parse(&[], "lesson-00 server -n 3").unwrap().clients();
    for outcome in [Ok(()), Err(Error::content("lost", "look")), Ok(())] {
        assert!(clients.more());
        clients.note("10.47.91.2:9".into(), outcome);
    }
    assert!(!clients.more());
    assert!(clients.result().unwrap_err().to_string().starts_with("1 of 3 clients"));
    let mut endless = parse(&[], "lesson-00 server -n 0").unwrap().clients();
    (0..99).for_each(|_| endless.note("10.47.91.2:9".into(), Ok(())));
    assert!(endless.more() && endless.result().is_ok());
}
