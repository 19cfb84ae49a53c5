//! What a page gets.

use serde_json::{json, Value};
use workbench::browser::{ran, run_file};

fn shown(script: &str) -> Value {
    let request = json!({ "script": script, "challenge": null }).to_string();
    serde_json::from_str(&ran(request.as_bytes())).unwrap()
}

#[test]
fn a_run_has_all_that_a_page_draws() {
    let script = "client ibv_post_send WRITE 0..60 to server 0\nclient ibv_poll_cq\n";
    let shown = shown(script);
    let events = shown["play"]["events"].as_array().unwrap();
    assert_eq!(shown["times_us"].as_array().unwrap().len(), events.len());
    // The bytes are drawn in both memories.
    let write = &shown["in_flight"][3];
    assert_eq!(write["rules"]["lose"], "drop 1st RDMA Write Only from client");
    let event = &events[write["event"].as_u64().unwrap() as usize];
    let places: Vec<&Value> = event["memory"].as_array().unwrap().iter().map(|change| &change["what"]).collect();
    assert_eq!(places, ["bytes", "bytes"], "{event}");
    let posted = shown["lines"][0]["event"].as_u64().unwrap() as usize;
    assert!(events[posted]["text"].as_str().unwrap().starts_with("ibv_post_send RDMA_WRITE"), "{}", events[posted]);
    assert_eq!(
        shown["sentence"],
        "The client's 60 bytes are in the server's memory, and the server's program heard nothing of it."
    );
    let registers = |event: &&Value| event["text"].as_str().is_some_and(|text| text.starts_with("ibv_reg_mr"));
    let registered = events.iter().find(registers).unwrap()["text"].as_str().unwrap();
    assert!(registered.contains("access=LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC"), "{registered}");
    assert_eq!(shown["nodes"][1]["completions"][0]["name"], "IBV_WC_SUCCESS");
    assert_eq!(shown["explain"]["verdict"], "Nothing that it shows went wrong.");
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    assert_eq!(shown("client dies\nclient lives")["error"]["line"], 2);
    let said = |request: &[u8]| serde_json::from_str::<Value>(&ran(request)).unwrap()["error"]["says"].is_string();
    assert!(said(b"") && said(b"{}") && said(&[0xff; 9]));
    assert!(run_file(b"no").is_empty());
}

#[test]
fn the_sentence_says_what_happened_and_why() {
    for (script, says) in [
        ("", "The two are connected, and neither program has asked for anything yet."),
        (
            "client ibv_post_send WRITE 0..60 to server 0 key=wrong",
            "The server's NIC refused the client's WRITE (its key opens none of the memory there), so it ended with IBV_WC_REM_ACCESS_ERR (10).",
        ),
        (
            "client ibv_post_send READ 0..60 from server 0 unsignaled",
            "60 bytes came from the server's memory into the client's",
        ),
        (
            "client ibv_post_send WRITE 0..60 to server 0\nwire drop 1st RDMA Write Only",
            "The wire lost the client's WRITE, so the client's NIC had no answer for 67 ms and sent its request again; in the end the client's 60 bytes are in the server's memory",
        ),
        ("server ibv_modify_qp rq_psn=513\nclient ibv_post_send WRITE 0..60 to server 0", "acknowledged it and wrote nothing"),
        ("server rdma_reject \"no\"", "program turned the client away"),
        ("server ibv_poll_cq", "the server's program waits in line 1 for a completion that never comes."),
    ] {
        let shown = shown(script);
        let sentence = shown["sentence"].as_str().unwrap();
        assert!(sentence.contains(says), "{script}: {sentence}");
    }
}

/// What the picture of a memory shows is what its NIC has done, and not what packets carry.
#[test]
fn bytes_that_a_nic_has_not_placed_are_not_drawn() {
    let write = "client ibv_post_send WRITE 0..60 to server 0\n";
    for (before, is_drawn) in [
        ("", true),
        ("server ibv_modify_qp rq_psn=513\n", false),
        ("server ibv_modify_qp rq_psn=511\n", false),
        ("server ibv_modify_qp qp_access_flags=REMOTE_READ\n", false),
        ("wire drop 1st Acknowledge from server\n", true),
    ] {
        let shown = shown(&format!("{before}{write}"));
        let events = shown["play"]["events"].as_array().unwrap();
        let changes = events.iter().flat_map(|event| event["memory"].as_array().into_iter().flatten());
        let written = changes.filter(|change| change["what"] == "bytes" && change["read"] == false).count();
        assert_eq!(written > 0, is_drawn, "{before}");
    }
}

#[test]
fn what_a_damaged_packet_brings_is_written_nowhere() {
    let shown = shown("client ibv_post_send WRITE 0..60 to server 0\nwire corrupt 1st RDMA Write Only from client\n");
    let events = shown["play"]["events"].as_array().unwrap().iter();
    let writes: Vec<&Value> =
        events.filter(|event| event["tag"] == "RDMA Write Only").map(|event| &event["memory"]).collect();
    // It's read from the client's memory, and only the one that's sent again is written to the server's.
    let read = |memory: &Value| -> Vec<bool> {
        memory.as_array().unwrap().iter().map(|change| change["read"] == true).collect()
    };
    assert_eq!(writes.into_iter().map(read).collect::<Vec<_>>(), [vec![true], vec![true, false]]);
}
