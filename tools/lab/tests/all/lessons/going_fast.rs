//! Lesson 10 on the kernel's driver, which counts packets.

use crate::support::{Run, CLIENT};

#[test]
#[ignore = "takes long: make test-long"]
fn with_credits_the_receiver_is_always_ready_and_the_device_counts_so() {
    let options = "--op send --count 64 --depth 16 --receives 8 --credits --wait sleep";
    let check = Run::lesson("10", "", options).check().exits(0, 0);
    // 64 SENDs, and an ACK for each word of the server: at least.
    let line = check.line(CLIENT, "sent=") + " " + &check.line(CLIENT, "rnr_naks=");
    let number = |name: &str| -> u64 {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word.unwrap_or_else(|| panic!("no {name}: {line}")).parse().unwrap()
    };
    assert!(number("sent") >= 64 && number("received") >= 64, "{line}");
    assert_eq!(number("rnr_naks"), 0, "{line}");
}
