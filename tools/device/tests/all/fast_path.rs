//! A request through `common` allocates nothing and formats no log line while nobody reads the log. Build the example first:
//! `cargo build -p common --examples`.

use std::path::Path;
use std::process::Command;

#[test]
fn a_request_allocates_nothing_and_formats_nothing() {
    let device = Path::new(env!("CARGO_BIN_EXE_device"));
    let program = device.with_file_name("examples/fast_path");
    assert!(program.exists(), "build it: cargo build -p common --examples");
    let (server, client) = (format!("{} server", program.display()), format!("{} client $SERVER", program.display()));
    // The program itself fails if anything is counted.
    let run = ["exec", "--quiet", "--name=test-fast-path", "--server", &server, "--client", &client];
    let output = Command::new(device).args(run).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("RC RDMA Read Request") && text.contains("RC Fetch Add"), "{text}");
}
