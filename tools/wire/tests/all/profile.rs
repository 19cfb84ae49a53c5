//! The Wireshark profile: installed as `make wireshark-profile` does, and tried with tshark, which uses it as Wireshark
//! does.

use crate::files::{self, all_bundled, root, scratch, written, Piece};
use run::file::Line;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn captures() -> PathBuf {
    root().join("captures")
}

fn install(variable: &str, folder: &Path) -> Output {
    let mut command = Command::new(captures().join("install-profile.sh"));
    command.env_remove("WIRESHARK_CONFIG_DIR").env("HOME", folder).env(variable, folder).output().unwrap()
}

/// A configuration folder with the profile in it.
fn installed(name: &str) -> PathBuf {
    let folder = scratch(name);
    let output = install("WIRESHARK_CONFIG_DIR", &folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

/// What tshark prints with the profile.
fn tshark(config: &Path, capture: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.env("WIRESHARK_CONFIG_DIR", config).args(["-C", "rdma", "-r"]).arg(capture).args(arguments);
    let output = command.output().unwrap_or_else(|error| {
        panic!("cannot run tshark ({error}): `make test` gets it; elsewhere install the package tshark")
    });
    assert!(output.status.success(), "tshark {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The frames and log lines of all bundled captures, and one each of the kinds that they do not have.
fn all_kinds(folder: &Path) -> PathBuf {
    const OPCODE: usize = 14 + 20 + 8;
    const SYNDROME: usize = OPCODE + 12;
    let mut all: Vec<Piece> =
        all_bundled().iter().flat_map(|path| files::read(&fs::read(path).unwrap()).unwrap()).collect();
    // The first packet with this operation code, with one byte changed.
    let changed = |opcode: u8, at: usize, value: u8| {
        let mut frames = all.iter().filter_map(|piece| match piece {
            Piece::Frame(frame) if frame.data.get(OPCODE) == Some(&opcode) => Some(frame.clone()),
            _ => None,
        });
        let mut frame = frames.next().unwrap();
        frame.data[at] = value;
        Piece::Frame(frame)
    };
    // NAK, RNR NAK, and an atomic operation.
    let more = [changed(0x11, SYNDROME, 0x62), changed(0x11, SYNDROME, 0x2e), changed(0x0a, OPCODE, 0x14)];
    let say =
        |program: &str, text: &str| Line { node: "client".into(), ..Line::of_program(program, text.into(), true) };
    let lines = [say("lesson-04", "[12:00:00.000 #0001 main] ERR   it failed"), say(Line::KERNEL, "rxe0: added")];
    all.extend(more.into_iter().chain(lines.map(Piece::Line)));
    let file = folder.join("all-kinds.pcapng");
    fs::write(&file, written(all)).unwrap();
    file
}

#[test]
fn no_packet_of_a_bundled_capture_is_shown_as_malformed_or_as_something_else() {
    let config = installed("profile-malformed");
    let protocols = tshark(&config, &all_kinds(&config), &["-T", "fields", "-e", "frame.protocols"]);
    let expected = [
        "eth:ethertype:arp",
        // Lesson 11 joins a multicast group.
        "eth:ethertype:ip:igmp:igmp",
        // Lesson 08 has no connection manager, and its programs talk over TCP.
        "eth:ethertype:ip:tcp",
        "eth:ethertype:ip:tcp:data",
        "eth:ethertype:ip:udp:infiniband",
        "eth:ethertype:ip:udp:infiniband:data",
        // The switch of lesson 20 pauses senders.
        "eth:ethertype:macc",
        "systemd_journal",
    ];
    assert_eq!(protocols.lines().collect::<BTreeSet<_>>(), BTreeSet::from(expected));
}

#[test]
fn every_kind_of_packet_has_its_color() {
    let config = installed("profile-colors");
    let file = all_kinds(&config);
    let fields = [
        "frame.coloring_rule.name",
        "infiniband.bth.opcode",
        "infiniband.mad.mgmtclass",
        "infiniband.aeth.syndrome.opcode",
        "systemd_journal.hostname",
        "systemd_journal.syslog_id",
        "systemd_journal.field.value",
    ];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let table = tshark(&config, &file, &["--color", "-T", "fields"].into_iter().chain(fields).collect::<Vec<_>>());
    let mut used = BTreeSet::new();
    for line in table.lines() {
        let [rule, opcode, class, syndrome, node, program, more] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let tag = more.split(',').find(|word| ["SLOW", "FAST", "DATA", "INFO", "ERR"].contains(word));
        // All clients are of one color.
        let side = if node.starts_with("client") { "client" } else { node };
        let of_node = format!("{side} {}", tag.unwrap_or("line"));
        let expected = match (opcode.parse::<u8>(), syndrome) {
            (Err(_), _) => match (node, program, tag) {
                ("", "", _) => "beside RDMA",
                (_, "lab" | "kernel", _) => program,
                (_, _, Some("ERR")) => "error line",
                _ => &of_node,
            },
            (_, "3") => "NAK",
            (_, "1") => "RNR NAK",
            _ if !class.is_empty() => "CM",
            (Ok(0x04 | 0x05 | 0x64 | 0x65), _) => "SEND",
            (Ok(0x06..=0x0b), _) => "WRITE",
            (Ok(0x0c..=0x10), _) => "READ",
            (Ok(0x11), _) => "ACK",
            (Ok(0x12..=0x14), _) => "ATOMIC",
            (Ok(0x81), _) => "CNP",
            (Ok(other), _) => panic!("no color is planned for operation code {other}"),
        };
        assert_eq!(rule, expected, "{line}");
        used.insert(rule.to_owned());
    }
    let text = fs::read_to_string(captures().join("wireshark-profile/colorfilters")).unwrap();
    let rules: BTreeSet<String> =
        text.lines().filter_map(|line| Some(line.strip_prefix('@')?.split('@').next()?.into())).collect();
    assert_eq!(used, rules);
}

#[test]
fn the_columns_show_addresses_numbers_and_the_step() {
    let config = installed("profile-columns");
    let table = tshark(&config, &captures().join("04_rdma_write.pcapng"), &["-T", "tabs"]);
    let request = table.lines().find(|line| line.contains("CM: ConnectRequest")).unwrap();
    // Not every version of tshark takes the names of the profile's `hosts`.
    let request = request.replace("client\tserver", "10.47.91.2\t10.47.91.1");
    assert!(request.contains("10.47.91.2\t10.47.91.1\tCM: ConnectRequest"), "{request}");
    let write = table.lines().find(|line| line.contains("RC RDMA Write Only")).unwrap();
    assert!(write.contains("Step 8: The client writes into the server's memory"), "{write}");
    let columns: Vec<&str> = write.split('\t').collect();
    assert!(columns.len() == 13 && columns.iter().any(|column| column.starts_with("60 ")), "{write}");
}

/// The filters of the profile. Those of the docs are tried by `xtask docs --check`.
fn filters() -> BTreeSet<String> {
    let text = |name: &str| fs::read_to_string(captures().join(name)).unwrap();
    let saved = text("wireshark-profile/dfilters");
    let saved = saved.lines().map(|line| line[1..].split_once("\" ").unwrap().1.to_owned());
    let buttons = text("wireshark-profile/dfilter_buttons");
    let buttons = buttons.lines().map(|line| {
        let cells: Vec<&str> = line.trim_matches('"').split("\",\"").collect();
        assert!(cells.len() == 4 && cells[0] == "TRUE", "{line}");
        cells[2].replace("\\x22", "\"")
    });
    let all: Vec<String> = saved.chain(buttons).collect();
    assert!(all.len() > 15, "{all:?}");
    all.into_iter().collect()
}

#[test]
fn every_filter_finds_packets() {
    let config = installed("profile-filters");
    let file = all_kinds(&config);
    for filter in filters() {
        let found = tshark(&config, &file, &["-Y", &filter]).lines().count();
        assert!(found > 0, "`{filter}` finds nothing");
    }
}

#[test]
fn files_that_somebody_has_changed_stay_as_they_are() {
    let home = scratch("profile-changed");
    let profile = home.join("wireshark/profiles/rdma");
    for _ in 0..2 {
        assert!(install("XDG_CONFIG_HOME", &home).status.success());
    }
    let names = |folder: &Path| -> BTreeSet<_> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(names(&profile), names(&captures().join("wireshark-profile")));

    fs::write(profile.join("dfilters"), "\"mine\" ip\n").unwrap();
    fs::remove_file(profile.join("colorfilters")).unwrap();
    let refused = install("XDG_CONFIG_HOME", &home);
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("rdma/dfilters is not ours, or was changed"), "{message}");
    assert_eq!(fs::read_to_string(profile.join("dfilters")).unwrap(), "\"mine\" ip\n");
    assert!(!profile.join("colorfilters").exists(), "nothing is installed by halves");
}
