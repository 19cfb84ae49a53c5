//! Mistakes that the checks find, each at its place. What holds is proven by the pages themselves: `make check` finds nothing there.

mod planted;
mod printed;

use super::page::{table, Page};
use super::sources::Sources;
use super::{diffs, drawings, excerpts, filters, lessons, marks};
use std::sync::OnceLock;

/// This repository, whose captures the checks are tried with.
pub fn repository() -> &'static Sources {
    static REPOSITORY: OnceLock<Sources> = OnceLock::new();
    REPOSITORY.get_or_init(|| {
        std::env::set_current_dir(run::files::root().unwrap()).unwrap();
        Sources::new().unwrap()
    })
}

/// A page of lesson 04, where only what that lesson has may be named; and one where nothing is left out.
const LESSON: &str = "docs/04_rdma_write.md";
const PAGE: &str = "docs/lab.md";

/// Where it stands, a line of text (a `¶` ends one), and what is said of it; nothing, if it holds.
const LINES: [(&str, &str, &str); 87] = [
    (PAGE, "```text¶01_cm_listen, frame 24, REQ:¶  rdma_rxe  0000  64 00 ff ff¶```", ""),
    (PAGE, "```text¶01_cm_listen, frame 24, REP:¶```", "frame 24 of captures/01_cm_listen.pcapng has no REP"),
    (PAGE, "```text¶01_cm_listen, frame 24, REQ:¶  rdma_rxe  0000  64 00 ff fe¶```", "has no such bytes"),
    (PAGE, "`ibv_post_sent`", "docs/lab.md:1: no installed header knows `ibv_post_sent`"),
    (PAGE, "ConnectReply (REQ)", "ConnectReply is not REQ"),
    (PAGE, "[`INIT`](qp_states.md#rtr)", "names `INIT` and leads to RTR"),
    (PAGE, "| [02](02_resources.md) | REJ |", "lesson 02 has no REJ"),
    (LESSON, "Reject it: `rdma_reject`.", "lesson 04 has no `rdma_reject` in its code, log or captures"),
    (LESSON, "`rdma_notify(3)`, [`IBV_WC_REM_ACCESS_ERR`](completions.md#ibv_wc_rem_access_err)", ""),
    (LESSON, "[`IBV_WC_REM_OP_ERR`](completions.md#ibv_wc_rem_access_err)", "lesson 04 has no `IBV_WC_REM_OP_ERR`"),
    (LESSON, "60 bytes to port 7471, 0x1d2f; 2,500 in three; 9 of them; (IBTA 12.6.7.2)", ""),
    (LESSON, "817 bytes", "nothing in lesson 04 has the number 817"),
    (LESSON, "port 0x1d2e", "has the number 0x1d2e"),
    (LESSON, "1.05, as [benchmarks](benchmarks.md) has it", ""),
    (LESSON, "1.05¶¶[benchmarks](benchmarks.md)", "nothing in lesson 04 has the number 1.05"),
    (LESSON, "817 s¶¶tried in the lab: `04-wrong-key`", "has the number 817"),
    (LESSON, "817 s (tried in the lab: `04-wrong-key`)", ""),
    (LESSON, "## Break it¶817 s", ""),
    (PAGE, "as in lesson 91", "there is no lesson 91"),
    (PAGE, "| value | status |¶|---|---|¶| 13 | `IBV_WC_RETRY_EXC_ERR` |", "docs/lab.md:3: IBV_WC_RETRY_EXC_ERR is 12"),
    (PAGE, "| status | name |¶|---|---|¶| 27 | consumer reject |", "reason 27 is called"),
    (PAGE, "# IBV_WC_REM_ACCESS_ERR¶¶11, by a NAK 0x62", "IBV_WC_REM_ACCESS_ERR is 10"),
    (PAGE, "# IBV_WC_REM_ACCESS_ERR¶¶10, by a NAK 0x63", "this NAK leads to IBV_WC_REM_OP_ERR"),
    (PAGE, "# INIT¶# INIT", "two headings INIT"),
    (PAGE, "| a NAK \"remote access error\" | `IBV_WC_REM_OP_ERR` |", "leads to IBV_WC_REM_ACCESS_ERR"),
    (PAGE, "INIT → RTS", "no queue pair goes from INIT to RTS"),
    (PAGE, "RESET → ERR", "no queue pair goes from RESET to ERR"),
    (PAGE, "| state |¶|---|¶| INIT |¶| RTS |¶| RTR |", "docs/lab.md:5: this state comes before the last"),
    (PAGE, "¶```c¶int rdma_destroy_qp(struct rdma_cm_id *id);¶```", "docs/lab.md:2: no installed header declares `int"),
    (PAGE, "`wire show captures/01_cm_listen.pcapng --packet step9`", "no packet's comment begins with `Step 9:`"),
    (PAGE, "`wire show captures/91_cm_listen.pcapng`", "there is no captures/91_cm_listen.pcapng"),
    (PAGE, "Steps 04-1 to 04-9", "lesson 04 has no step 9"),
    (PAGE, "| a | b |¶|---|---|¶| 1 | x |¶| 2 | x |¶| 9 | x |¶| 4 | x |", "docs/lab.md:5: this is row 3 of a numbered"),
    (PAGE, "| a | b |¶|---|---|¶| 1 | x |¶| 2 | x |¶| 9 | x |", ""),
    (PAGE, "`make lessen-04`", "the Makefile has no target lessen-04"),
    (PAGE, "`make lesson-94`", "has no target lesson-94"),
    (PAGE, "`make try-04-none`", "has no target try-04-none"),
    (PAGE, "`make try-04-whose`, `make try-NN-NAME`, `make lesson-NN`, `make -k`", ""),
    (PAGE, "```sh¶make tests¶```", "docs/lab.md:2: the Makefile has no target tests"),
    (PAGE, "It fails (tried in the lab).¶¶`04-wrong-key`", "\"tried in the lab\": with which change, or which test"),
    (PAGE, "Tried in the lab, by [a test](../tools/lab/tests/all/lessons/rules.rs).", ""),
    (PAGE, "`make break-04 CHANGE=none`", "lesson 04 has no change none"),
    (PAGE, "`04-none`", "lesson 04 has no change none"),
    (PAGE, "¶[a](none.md)", "docs/lab.md:2: the link none.md leads to docs/none.md, which does not exist"),
    (PAGE, "code `[a](none.md)`¶```¶[a](none.md)¶```", ""),
    (PAGE, "[a](../README.md#three)", "a heading that README.md does not have"),
    (PAGE, "# A `b`: [C](lab.md)!¶# A b c¶[a](#a-b-c) [b](#a-b-c-1) <a id=\"d\"></a> [d](#d)", ""),
    (PAGE, "[a](../../x)", "leads out of the repository"),
    (PAGE, "[lesson 05](04_rdma_write.md)", "names lesson 05 and leads to 04_rdma_write.md"),
    (PAGE, "[More about lesson 05](more/04_rdma_write.md)", "names lesson 05 and leads to more/04_rdma_write.md"),
    (PAGE, "[status 12](errors/retry_exceeded.md) [UCX 6](https://github.com/openucx/ucx/issues/6)", ""),
    (
        PAGE,
        "[status 17](errors/retry_exceeded.md)",
        "names 17, and where it leads, to errors/retry_exceeded.md, nobody",
    ),
    (PAGE, "[UCX 406](https://github.com/openucx/ucx/issues/46)", "this link names 406"),
    (PAGE, "`ibv_fork_init(2)`", "the man page of `ibv_fork_init` is in section 3"),
    (PAGE, "NAK 0x61, `IBV_WC_REM_OP_ERR`", "this NAK leads to IBV_WC_REM_INV_REQ_ERR"),
    (PAGE, "as on Linux 6.7 (and Linux 6.1)", "nothing in this repository speaks of Linux 6.7"),
    (PAGE, "section 9.7.6.4", "nothing in this repository has the number 9.7.6.4"),
    (PAGE, "<!-- printed: captures/printed/ibv-devices.txt -->¶```¶ device  node GUID¶  …¶ rxe0 …¶```", ""),
    (PAGE, "<!-- printed: captures/printed/ibv-devices.txt -->¶```¶rxe0 …¶device¶```", "has no such line here: device"),
    (PAGE, "`make explain-04 PCAP=captures/changes/24-wrong-key.pcapng`", "there is no captures/changes/24-wrong-key.pcapng"),
    (PAGE, "`wireshark target/lab/runs/34/wire.pcapng`", "there is no lesson 34"),
    (PAGE, "| begin | minutes |¶|---|---|¶| 0:00 | 50 |¶| 0:50 | 15 |¶| 1:06 | 5 |", "docs/lab.md:5: the row before ends at 1:05"),
    (PAGE, "| message | and wants |¶|---|---|¶| REQ | MRA or RTU |", "RTU doesn't answer REQ"),
    (PAGE, "| message | and wants |¶|---|---|¶| DREQ | |", "nothing doesn't answer DREQ"),
    (PAGE, "| message | and wants |¶|---|---|¶| REQ | REP, REJ or MRA |¶| REJ | |", ""),
    (PAGE, "| message | event, side |¶|---|---|¶| REP | REJECTED, client |", "REJECTED doesn't come by REP"),
    (PAGE, "<!-- recorded: 20_congestion-pfc -->¶```sh¶make lesson-20 wire='link 1 Gbit/s 5 us; queue 32 KB; pfc 9 KB'¶```", "was recorded with wire="),
    (PAGE, "<!-- recorded: 20_congestion-pfc -->¶```sh¶make lesson-20 wire='link 1 Gbit/s 5 us; queue 32 KB; pfc 8 KB'¶```", ""),
    (PAGE, "<!-- recorded: 10_going_fast -->¶```sh¶make lesson-11 client='--count 16'¶```", "is a run of lesson 10"),
    (
        PAGE,
        "<!-- caused: change -->¶| event | change |¶|---|---|¶| `RDMA_CM_EVENT_ADDR_CHANGE` | not seen |¶| `RDMA_CM_EVENT_ADDR_CHANGE` | not seen |",
        "docs/lab.md:5: `RDMA_CM_EVENT_ADDR_CHANGE` is in a row above",
    ),
    (PAGE, "<!-- generated: ring middle -->¶<!-- end -->", "a ring is drawn at its `start`"),
    (PAGE, "| a | b |¶|---|---|¶| 1 | `x \\|\\| y` |", ""),
    (PAGE, "| a | b |¶|---|---|¶| 1 | `x || y` |", "docs/lab.md:3: 4 cells in 2 columns"),
    (PAGE, "<!-- generated: ladder 01_cm_listen -->", "no line <!-- end -->"),
    (PAGE, "<!-- generated: a -->¶<!-- generated: b -->¶<!-- end -->", "docs/lab.md:1: no line <!-- end -->"),
    (PAGE, "<!-- generated: poem -->¶<!-- end -->", "no generated part is called `poem`"),
    (PAGE, "<!-- generated: ladder 99_none -->¶<!-- end -->", "cannot read captures/99_none"),
    (PAGE, "<!-- generated: log 01_cm_listen server none -->¶<!-- end -->", "no stage none of the server"),
    (PAGE, "<!-- generated: seen 04 wrong-key never -->¶<!-- end -->", "run of 04-wrong-key has no `never`"),
    (PAGE, "<!-- generated: changes 04 none -->¶<!-- end -->", "there is no lessons/04_rdma_write/changes/none.md"),
    (
        PAGE,
        "<!-- ladder: captures/01_cm_listen.pcapng -->",
        "no mark is written `ladder: captures/01_cm_listen.pcapng`",
    ),
    (PAGE, "<!-- bytes: captures/01_cm_listen.pcapng step1 RETH -->¶```¶```", "has no section RETH"),
    (PAGE, "<!-- code: clippy.toml -->¶text", "no fenced block follows"),
    (PAGE, "<!-- code: clippy.toml -->¶```toml¶allow-unwrap-in-tests = false¶```", "clippy.toml has no such lines"),
    (PAGE, "<!-- code: rustfmt.toml -->¶```¶edition = \"2021\"¶…¶use_field_init_shorthand = true¶```", ""),
    (PAGE, "<!-- code: rustfmt.toml -->¶```¶edition = \"2021\"¶use_field_init_shorthand = true¶```", "in one piece"),
    (PAGE, "<!-- code: rustfmt.toml -->¶```¶ edition = \"2021\"¶```", "in one piece"),
];

/// Kinds of tables with their columns, a row of one, and what is said of it.
const ROWS: [(&str, &str, &str, &str); 37] = [
    ("fields: captures/01_cm_listen.pcapng step1", "field | value", "DestPort | 4792", "DestPort has no 4792"),
    ("in: Makefile", "what", "987654", "Makefile has no number 987654"),
    ("in: Makefile", "what", "`IBV_WC_TM_ERR`", "Makefile has no IBV_WC_TM_ERR"),
    ("rows: tools/course/src/nic/stairs.rs", "lesson | runs", "15 | 01, 02", ""),
    (
        "rows: tools/course/src/nic/stairs.rs",
        "lesson | runs",
        "15 | 01, 04",
        "no line of tools/course/src/nic/stairs.rs",
    ),
    ("cited: tools/nic", "section | who", "9.7.5.1 | 9.7.5.1.2", ""),
    ("cited: tools/nic", "section | who", "9.7.5.1 | 9.7.5.2.1", "9.7.5.2.1 is no part of 9.7.5.1"),
    ("lesson: one", "read | do | steps", "[04](04_rdma_write.md) | `make break-04 CHANGE=wrong-key` | 04-1", ""),
    (
        "lesson: one",
        "read | do | steps",
        "[04](04_rdma_write.md) | `make break-04 CHANGE=wrong-key` | 05-1",
        "04 and 05",
    ),
    (
        "caused: change",
        "syndrome | in the run | change",
        "0x61 | `remote access error` | `04-wrong-key`",
        "0x61 says: NAK",
    ),
    (
        "caused: change",
        "syndrome | in the run | change",
        "0x21 | `no receive posted: wait 655.36 ms` | `03-late-receive`",
        "0x21 says: RNR NAK",
    ),
    (
        "caused: change",
        "syndrome | in the run | change",
        "0x21-0x3f | `no receive posted: wait 0.64 ms` | `08-late-receive`",
        "",
    ),
    ("steps: all", "steps", "01-1 to 01-4, 02-1", ""),
    ("steps: all", "steps", "01-1 to 01-3, 02-1", "02-1 isn't the step that comes next"),
    (PSNS, "psn | what happens to client-1's packet", "+0 to +5 | they get through", ""),
    (
        PSNS,
        "psn | what happens to client-2's packet",
        "+0 to +5 | they get through",
        "this table is about client-1, not client-2",
    ),
    (PSNS, "psn | what", "+1 | it gets through", "+1 isn't what client-1 sends here"),
    (PSNS, "psn | what", "+0 to +6 | they get through", "+6 is lost here"),
    (PSNS, "psn | what", "+0 | it gets through, but not +9", "nothing here is about +9"),
    (
        "in: linked",
        "see | number",
        "`ibv_post_send` | [26](troubleshooting.md#26-ibv_post_send-returns-enomem-or-einval)",
        "",
    ),
    (
        "in: linked",
        "see | number",
        "`ibv_dereg_mr` | [26](troubleshooting.md#26-ibv_post_send-returns-enomem-or-einval)",
        "no file that this row links to says ibv_dereg_mr",
    ),
    ("packets: captures/02_resources.pcapng rdma", "TCP | RDMA", "ACK | **ReadyToUse** (RTU)", ""),
    ("cited: tools/nic", "section | who", "9.7.6, 9.7.5 | me", "9.7.6, 9.7.5 isn't in order"),
    ("cited: tools/nic", "section | who", "9.7, table 97 | me", "tools/nic name no section table_97"),
    ("cited: tools/nic", "section | who", "9.7.5.9 | me", "tools/nic name no section 9.7.5.9"),
    ("caused: change", "wc | change", "`IBV_WC_REM_ACCESS_ERR` in 817 s | `04-wrong-key`", "the change has no 817"),
    (TRIED, "rule", "`drop 1st REP`", ""),
    (TRIED, "rule", "`drop 1st RTU`", "does not try `drop 1st RTU`"),
    ("caused: change", "status | change", "`IBV_WC_TM_ERR` | `04-wrong-key`", "does not show `IBV_WC_TM_ERR`"),
    ("caused: change", "status | change", "`IBV_WC_TM_ERR` | by luck", "say which change shows"),
    (
        "order: captures/01_cm_listen.pcapng client",
        "call",
        "`rdma_listen`",
        "the client's log has no `rdma_listen` here",
    ),
    ("packets: captures/02_resources.pcapng rdma", "TCP | RDMA", "SYN+ACK | REQ, REP, RTU, DREQ", ""),
    (
        "packets: captures/02_resources.pcapng rdma",
        "TCP | RDMA",
        "SYN+ACK | REQ, RTU, REP",
        "02_resources.pcapng has no REP",
    ),
    ("in: Makefile", "what", "", "no table with rows"),
    ("in: linked", "file | section", "[psn.rs](../tools/nic/src/psn.rs) | 9.7", ""),
    (
        "in: linked",
        "file | section",
        "[psn.rs](../tools/nic/src/psn.rs) | 9.7.3",
        "no file that this row links to says 9.7.3",
    ),
    (
        "in: linked",
        " | hole | what",
        "1 | [x](../lessons/15_knock/holes/4-ready.md) | the MRA",
        "no file that this row links to says MRA",
    ),
];
const PSNS: &str = "psns: captures/20_congestion.txt client-1";
const TRIED: &str = "tried: tools/device/tests/all/programs/rules.rs";

/// What the checks say instead.
fn instead(path: &str, text: &str, what: &str) -> Option<String> {
    let found = super::of_page(&Page::new(path, &text.replace('¶', "\n")), repository());
    let is_right = if what.is_empty() { found.is_empty() } else { found.iter().any(|one| one.contains(what)) };
    (!is_right).then(|| format!("{text}\nshould be: {what}\nis: {found:#?}\n"))
}

fn expect(path: &str, text: &str, what: &str) {
    assert_eq!(instead(path, text, what), None);
}

#[test]
fn mistakes_are_found_where_they_are() {
    let lines = LINES.iter().filter_map(|(path, text, what)| instead(path, text, what));
    let rows = ROWS.iter().filter_map(|(mark, columns, row, what)| {
        let columns: Vec<&str> = columns.split(" | ").collect();
        let rows = (!row.is_empty()).then(|| row.split(" | ").map(String::from).collect::<Vec<_>>());
        instead(PAGE, &format!("<!-- {mark} -->¶{}", table(&columns, rows).join("¶")), what)
    });
    let wrong: String = lines.chain(rows).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn each_call_leads_to_its_state_in_the_order_of_the_log() {
    const TABLE: &str = "<!-- states: captures/02_resources.pcapng -->
| client | its QP | wire | server | its QP |
|---|---|---|---|---|
| `rdma_create_qp` | RESET → INIT | | | |
| `rdma_connect` | INIT | REQ ▶ | | |
| | | ◀ REP | `rdma_create_qp`, `rdma_accept` | INIT → RTR → RTS |
| ESTABLISHED | RTS | RTU ▶ | | |
| `rdma_disconnect` | ERR | | `rdma_disconnect` | ERR |
";
    for (from, to, what) in [
        ("", "", ""),
        ("| INIT |", "| RTS |", "docs/lab.md:5: captures/02_resources.pcapng: the client's QP is in INIT, not RTS"),
        ("INIT → RTR", "SQD → RTR", "the server's QP comes from INIT, not SQD"),
        ("rdma_connect", "rdma_reject", "the client's log has no `rdma_reject` here"),
        ("| ESTABLISHED | RTS |", "| | |", "the client is in RTS, too"),
        ("◀ REP", "◀ REJ", "the server does not send REJ here"),
    ] {
        expect(PAGE, &TABLE.replacen(from, to, 1), what);
    }
}

#[test]
fn one_changed_word_is_found_in_what_is_written() {
    let mark = "<!-- generated: log 04_rdma_write server wait_disconnect -->\n<!-- end -->\n";
    let (page, failed) = marks::renew(&Page::new(PAGE, mark), repository());
    assert_eq!((failed, super::of_page(&page, repository())), (vec![], vec![]));
    let line = page.lines.iter().position(|line| line.contains("waiting for DISCONNECTED")).unwrap() + 1;
    let changed = page.text().replace("waiting for DISCONNECTED", "waiting for CONNECTED");
    expect(PAGE, &changed, &format!("docs/lab.md:{line}: this part is not what `make docs` writes"));
}

#[test]
fn lines_of_a_log_are_no_wider_than_a_run_s_lanes() {
    let log = excerpts::log("05_rdma_read-private-data", "client", &["connect"]).unwrap();
    assert!(log.iter().all(|line| line.chars().count() <= 100), "{log:#?}");
    assert!(log.join("").contains("min_rnr_timer=655.36 ms"), "{log:#?}");
}

#[test]
fn filters_are_found_where_they_are_named_and_those_that_are_none() {
    let text = "Use the filter `infiniband`, or the display filter\n`infinibad`. A capture filter `c`, code `d`.\n\n\
                | filter | shows |\n|---|---|\n| `infiniband.bth.opcode == 98 \\|\\| infiniband.bth.opcode == 99` | `g` |\n\
                ```\nfilter `h`\n```\n";
    // Whose captures are looked at.
    repository();
    let found = filters::problems(&[Page::new(PAGE, text)]).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found.iter().any(|one| one.starts_with("docs/lab.md:2: tshark refuses the filter `infinibad`")),
        "{found:?}"
    );
    assert!(found.iter().any(|one| one.ends_with("== 99` finds no packet in any bundled capture")), "{found:?}");
}

#[test]
fn lists_and_pictures_lack_nothing_and_have_nothing_too_much() {
    let mut sources = repository().clone();
    sources.lessons.truncate(1);
    sources.lessons[0].name = "01_x".into();
    let places = ["README.md", "docs", "captures", "tools/run/src/story/mod.rs"];
    let mut lacks = places.map(|place| format!("{place}: the list of lessons lacks 01_x")).to_vec();
    lacks.push("docs/01_x.md: does not show its idea, images/idea_01.svg".into());
    assert_eq!(lessons::problems(&sources).unwrap(), lacks);
    sources.lessons[0].name = "99_x".into();
    let drawn = "docs/images/idea_99.svg: says nothing in <title> and <desc>";
    assert_eq!(lessons::problems(&sources).unwrap().last().unwrap(), drawn);
    // A lesson in the place of another takes away all of it.
    let (mut sources, swapped) = (repository().clone(), 4);
    sources.lessons[swapped - 1].name.clone_from(&repository().lessons[0].name);
    assert!(diffs::problems(&sources).unwrap()[0].starts_with("lessons/05_rdma_read: takes away"));
    let pages = [Page::new("README.md", "<!-- generated: lanes 01_cm_listen client:knock..step2 -->\n<!-- end -->\n")];
    let problems = drawings::renew(&pages, false).unwrap();
    for what in [
        "docs/images/01_cm_listen_client-knock_step2.svg: is not what `make docs` draws: run it and commit",
        "docs/images/01_cm_listen.svg: nothing shows it: run `make docs`",
    ] {
        assert!(problems.iter().any(|problem| problem == what), "{problems:#?}");
    }
    let error = |range| excerpts::part("captures/01_cm_listen.pcapng", range).unwrap_err().to_string();
    assert!(error("step99..step1").contains("has no `step99`") && error("step2..step1").contains("ends before"));
    assert!(error("me:x..step1").contains("no log lines of `me`, but of client, server"));
}

#[test]
fn a_lesson_with_two_pages_shows_its_lines_on_either() {
    let mut pages = super::pages(repository()).unwrap();
    assert_eq!(diffs::unshown(repository(), &pages).unwrap(), [""; 0]);
    pages.retain(|page| page.path != "docs/06_driving_the_machine.md");
    let missing = diffs::unshown(repository(), &pages).unwrap();
    assert!(
        missing.iter().any(|what| what.ends_with(
            "doesn't show: fn interpret(wc: &WorkCompletion, receives: \
         &[PostedReceive], theirs: &mut Metadata) -> Result<Event> {"
        )),
        "{missing:#?}"
    );
}
