//! What docs/debugging.md says of debuggers and sanitizers: `lessons/in_c/greeting.c`, its bug, and two more that are planted in it.

use super::in_c::in_c;
use super::support::{programs, Check, CLIENT, SERVER};
use roce::Frame;
use run::file::Event;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The greeting, as its Makefile builds it, and as a client.
fn greeting() -> String {
    format!("{}greeting", in_c().trim_end_matches("rdma"))
}

fn greets() -> String {
    format!("{} client $SERVER", greeting())
}

/// A server whose source was changed, built with a sanitizer. It ends with its folder.
struct Changed(tempfile::TempDir);

impl Changed {
    fn new(changes: &[(&str, &str)]) -> Changed {
        let mut source = std::fs::read_to_string(format!("{}.c", greeting())).unwrap();
        for (old, new) in changes {
            assert_eq!(source.matches(old).count(), 1, "{old}");
            source = source.replace(old, new);
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("greeting.c"), source).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-g", "-fsanitize=address,undefined", "-o", "greeting", "greeting.c", "-lrdmacm", "-libverbs"]);
        let built = cc.current_dir(folder.path()).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Changed(folder)
    }

    fn serves(&self) -> String {
        format!("{} server", self.program().display())
    }

    fn program(&self) -> PathBuf {
        Path::new(self.0.path()).join("greeting")
    }
}

/// The page's fix.
const FIX: (&str, &str) = ("rdma_reg_msgs(listener, message", "rdma_reg_msgs(client, message");
/// The server gives its buffer back as soon as the receive is posted, long before the message comes.
const EARLY: (&str, &str) = ("\"rdma_post_recv\");\n", "\"rdma_post_recv\");\n    free(message);\n");
const LOOKS_AWAY: (&str, &str) = ("\"a client says: %s\\n\", message", "\"a client says %u bytes\\n\", wc.byte_len");
const CLIENT_FREES: (&str, &str) = ("    free(message);\n}", "    if (argc == 3)\n        free(message);\n}");

/// Where in the run the first packet of this name, or the first line of the server with this text is.
fn place(check: &Check, what: &str) -> usize {
    let (mut at, mut found) = (0, None);
    check.each_event(|event| {
        let is = match event {
            Event::Line(line) => line.node == SERVER && line.text.contains(what),
            Event::Packet(record) => {
                matches!(Frame::ethernet(record.data), Frame::Roce(packet) if packet.name() == what)
            }
        };
        at += 1;
        found = found.or(is.then_some(at));
    });
    found.unwrap_or_else(|| panic!("no {what}: {}", check.all()))
}

#[test]
fn the_kernel_rejects_for_a_server_that_crashed() {
    let check = programs(&format!("exec {} server", greeting()), &greets());
    // Which of the two is seen first is chance: the files of a process that dies are closed before anybody hears that it has died.
    let [asked, died, rejected] =
        ["ConnectRequest", "killed by signal 11 (SIGSEGV)", "ConnectReject"].map(|what| place(&check, what));
    assert!(asked < died && asked < rejected, "{}", check.all());
}

#[test]
fn a_backtrace_stands_between_the_request_and_its_reject() {
    let gdb = format!("gdb -batch -ex run -ex bt --args {} server", greeting());
    let check = programs(&gdb, &greets());
    let frames = ["SIGSEGV", "ibv_reg_mr_iova2", "pd=0x0", "rdma_reg_msgs (id=", "serve (", "main (argc=2"];
    let frames = frames.map(|frame| place(&check, frame));
    let order = [&[place(&check, "ConnectRequest")], &frames[..], &[place(&check, "ConnectReject")]].concat();
    assert!(order.is_sorted(), "{order:?}: {}", check.all());
    check.logs(CLIENT, "got RDMA_CM_EVENT_REJECTED");
}

#[test]
fn a_sanitizer_names_the_same_frames_and_is_content_with_the_fix() {
    let check = programs(&Changed::new(&[]).serves(), &greets());
    check.logs_in_order(
        SERVER,
        &["AddressSanitizer: SEGV", "in ibv_reg_mr_iova2", "in rdma_reg_msgs", "in serve", "in main"],
    );
    let check = programs(&Changed::new(&[FIX]).serves(), &greets()).exits(0, 0);
    check.logs(SERVER, "a client says: hello");
}

#[test]
fn a_sanitizer_sees_what_the_program_does_and_not_what_the_device_does() {
    let reads = programs(&Changed::new(&[FIX, EARLY, CLIENT_FREES]).serves(), &greets());
    reads.logs(SERVER, "heap-use-after-free");
    let looks_away = Changed::new(&[FIX, EARLY, CLIENT_FREES, LOOKS_AWAY]);
    let check = programs(&looks_away.serves(), &greets()).exits(0, 0);
    check.logs(SERVER, "a client says 64 bytes");
    assert_eq!(check.count(SERVER, "Sanitizer"), 0, "{}", check.all());
}

/// Memory that was unmapped is refused, so the mistake is heard of.
#[test]
fn what_was_unmapped_early_is_refused() {
    let mapped = ("calloc(1, LEN)", "mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)");
    let header = ("#include <string.h>\n", "#include <string.h>\n#include <sys/mman.h>\n");
    let unmapped = ("\"rdma_post_recv\");\n", "\"rdma_post_recv\");\n    munmap(message, 4096);\n");
    let ends = ("    free(message);\n}", "}");
    let server = Changed::new(&[FIX, mapped, header, unmapped, ends, LOOKS_AWAY]);
    let check = programs(&server.serves(), &greets()).exits(1, 1);
    assert_eq!(check.count(SERVER, "a client says"), 0, "{}", check.all());
}
