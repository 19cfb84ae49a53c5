//! Whatever somebody writes or touches: it ends, and the same way each time.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use workbench::shown::{run, shown};

/// A line as somebody might write it; now and then one that isn't understood.
fn line() -> impl Strategy<Value = String> {
    let node = || prop_oneof![Just("client"), Just("server")];
    let bytes = || (0..9000usize, 0..9000usize).prop_map(|(from, length)| format!("{from}..{}", from + length));
    let rights = prop_oneof![
        Just(""),
        Just("LOCAL_WRITE"),
        Just("LOCAL_WRITE|REMOTE_WRITE"),
        Just("REMOTE_READ"),
        Just("REMOTE_WRITE"),
        Just("LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC"),
    ];
    let options = || prop_oneof![4 => Just(""), 1 => Just("unsignaled"), 1 => Just("fence"), 1 => Just("key=wrong")];
    let sided =
        (prop_oneof![Just("WRITE"), Just("READ"), Just("WRITE_WITH_IMM")], bytes(), node(), 0..9000usize, options());
    let sided = sided.prop_map(|(what, bytes, peer, offset, options)| {
        let imm = if what == "WRITE_WITH_IMM" { "imm=7 " } else { "" };
        format!("ibv_post_send {what} {bytes} to {peer} {offset} {imm}{options}")
    });
    let atomic = (0..100usize, node(), 0..100usize, options()).prop_map(|(at, peer, offset, options)| {
        format!("ibv_post_send FETCH_ADD {at}..{} at {peer} {offset} add=3 {options}", at + 8)
    });
    let swap = (0..100usize, node())
        .prop_map(|(at, peer)| format!("ibv_post_send CMP_SWP {at}..{} at {peer} 0 compare=0 swap=7", at + 8));
    let call = prop_oneof![
        3 => bytes().prop_map(|bytes| format!("ibv_post_recv {bytes}")),
        3 => bytes().prop_map(|bytes| format!("ibv_post_send SEND {bytes}")),
        6 => sided,
        2 => atomic,
        1 => swap,
        2 => (bytes(), rights).prop_map(|(bytes, rights)| format!("ibv_reg_mr {bytes} {rights}")),
        1 => Just("ibv_dereg_mr".to_owned()),
        3 => (1..4usize).prop_map(|count| format!("ibv_poll_cq {count}")),
        1 => Just("memcpy 0 metadata 0..60".to_owned()),
        1 => Just("rdma_disconnect".to_owned()),
        1 => Just("rdma_reject \"no\"".to_owned()),
        1 => Just("dies".to_owned()),
        1 => "[a-z_.0-9 ]{0,20}",
    ];
    let time = (0..3000u32, prop_oneof![Just("us"), Just("ms"), Just("ns")]);
    let at = prop::option::weighted(0.2, time)
        .prop_map(|at| at.map_or(String::new(), |(at, unit)| format!("at {at} {unit} ")));
    let calls = (at, node(), call).prop_map(|(at, node, call)| format!("{at}{node} {call}"));
    let setting = prop_oneof![
        Just("mtu=256"),
        Just("mtu=4096"),
        Just("timeout=0"),
        Just("timeout=1"),
        Just("timeout=31"),
        Just("retry_cnt=0"),
        Just("rnr_retry=0"),
        Just("rnr_retry=3"),
        Just("min_rnr_timer=1"),
        Just("max_rd_atomic=0"),
        Just("max_rd_atomic=4"),
        Just("max_dest_rd_atomic=0"),
        Just("max_send_wr=1"),
        Just("max_recv_wr=1"),
    ];
    let attribute = prop_oneof![
        Just("path_mtu=4096"),
        Just("dest_qp_num=3"),
        Just("rq_psn=7"),
        Just("max_rd_atomic=9"),
        Just("max_dest_rd_atomic=0"),
        Just("qp_access_flags="),
        Just("qp_state=RTR"),
    ];
    let settings = prop_oneof![
        2 => (node(), setting).prop_map(|(node, setting)| format!("{node} ibv_create_qp {setting}")),
        1 => (node(), attribute).prop_map(|(node, attribute)| format!("{node} ibv_modify_qp {attribute}")),
    ];
    let act = prop_oneof![Just("drop"), Just("duplicate"), Just("delay"), Just("corrupt"), Just("swap"), Just("cut")];
    let which = prop_oneof![
        (1..6usize).prop_map(run::words::ordinal),
        Just("every".to_owned()),
        Just("only again-sent".to_owned())
    ];
    let name = prop_oneof![
        Just("packet"),
        Just("Acknowledge"),
        Just("RDMA Write Only"),
        Just("REQ"),
        Just("REP"),
        Just("RTU"),
        Just("Send Only"),
        Just("RNR NAK"),
        Just("NAK"),
        Just("RDMA Read Response Only"),
    ];
    let rule = (act, which, name, node(), 1..90u32).prop_map(|(act, which, name, node, ms)| {
        let by = if act == "delay" { format!(" by {ms} ms") } else { String::new() };
        format!("wire {act} {which} {name} from {node}{by}")
    });
    let switch = prop_oneof![
        Just("wire link 1 Gbit/s 5 us"),
        Just("wire queue 4 KB"),
        Just("wire lose 1 in 5"),
        Just("wire ecn 1..8 KB")
    ];
    prop_oneof![14 => calls, 1 => settings, 3 => rule, 1 => switch.prop_map(str::to_owned)]
}

/// Looks at this many scripts. Most of them have to be understood, or nothing is tried.
fn all_end(count: u32) {
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: count, ..Config::default() });
    let understood = std::cell::Cell::new(0);
    let scripts = prop::collection::vec(line(), 0..14).prop_map(|lines| lines.join("\n"));
    let ends = runner.run(&scripts, |script| {
        let first = match run(&script) {
            Ok((_, run)) => run.record.file,
            Err(error) => {
                prop_assert!(!error.says.is_empty() && error.line <= script.lines().count());
                return Ok(());
            }
        };
        understood.set(understood.get() + 1);
        prop_assert_eq!(&first, &run(&script).map(|(_, run)| run.record.file).unwrap_or_default());
        let said = shown(&script, Some("first-write"));
        prop_assert!(
            serde_json::from_str::<serde_json::Value>(&said).is_ok_and(|said| said["error"].is_null()),
            "{}",
            said
        );
        Ok(())
    });
    ends.unwrap_or_else(|error| panic!("{error}"));
    assert!(understood.get() > count / 10, "{} of {count} scripts were understood", understood.get());
}

#[test]
fn random_scripts_end_and_end_the_same_way() {
    all_end(100);
}

#[test]
#[ignore = "takes long: make test-long"]
fn ten_thousand_random_scripts_end_and_end_the_same_way() {
    all_end(10_000);
}
