use super::*;
use crate::cm_event_type::*;
use crate::wc_status::IBV_WC_REM_ACCESS_ERR;

fn set_errno(value: i32) {
    // SAFETY: errno belongs to this thread.
    unsafe { *libc::__errno_location() = value };
}

#[test]
fn three_conventions() {
    assert_eq!(minus_one("rdma_listen", 0), Ok(()));
    set_errno(libc::ENODEV);
    assert_eq!(minus_one("rdma_listen", -1), Err(Error::Call { call: "rdma_listen", errno: libc::ENODEV }));
    assert_eq!(positive_errno("ibv_post_send", 0), Ok(()));
    let full = positive_errno("ibv_post_send", libc::ENOMEM);
    assert_eq!(full, Err(Error::Call { call: "ibv_post_send", errno: libc::ENOMEM }));
    set_errno(libc::EACCES);
    let denied = null("ibv_reg_mr", std::ptr::null_mut::<u8>());
    assert_eq!(denied, Err(Error::Call { call: "ibv_reg_mr", errno: libc::EACCES }));
}

#[test]
fn no_device_names_call_meaning_and_cure() {
    let text = Error::Call { call: "rdma_create_event_channel", errno: libc::ENODEV }.to_string();
    assert!(text.starts_with("rdma_create_event_channel failed: ENODEV: No such device."), "{text}");
    assert!(text.contains("tools/lab/softroce.sh up"), "{text}");
}

#[test]
fn a_peer_out_of_reach_names_the_gid_index() {
    let text = Error::Call { call: "ibv_modify_qp", errno: libc::ETIMEDOUT }.to_string();
    assert!(text.contains("GID indices"), "{text}");
}

#[test]
fn what_iwarp_lacks_is_named() {
    let call = |call, errno| Error::Call { call, errno }.to_string();
    for (text, part) in [
        (call("rdma_create_qp", libc::EOPNOTSUPP), "no datagrams"),
        (call("rdma_create_qp", libc::EINVAL), "80 inline bytes"),
        (call("ibv_post_send", libc::EINVAL), "neither immediate data nor atomics"),
    ] {
        assert!(text.contains(part), "{text}");
    }
    let refused = Error::Event {
        wanted: RDMA_CM_EVENT_ESTABLISHED,
        got: RDMA_CM_EVENT_REJECTED,
        status: -104,
        private_data: Vec::new(),
    };
    assert!(refused.to_string().contains("start the server with -a and its IPv4 address"), "{refused}");
}

#[test]
fn nobody_listening_names_reason_eight() {
    let error = Error::Event {
        wanted: RDMA_CM_EVENT_ESTABLISHED,
        got: RDMA_CM_EVENT_REJECTED,
        status: 8,
        private_data: vec![0; 148],
    };
    let text = error.to_string();
    assert!(text.contains("RDMA_CM_EVENT_REJECTED with status 8 (invalid service ID"), "{text}");
    assert!(text.contains("Start the server first"), "{text}");
}

#[test]
fn a_reasoned_no_is_quoted() {
    let mut private_data = b"full".to_vec();
    private_data.resize(148, 0);
    let got = RDMA_CM_EVENT_REJECTED;
    let error = Error::Event { wanted: RDMA_CM_EVENT_ESTABLISHED, got, status: 28, private_data };
    assert!(error.to_string().contains(", and the peer says \"full\"."), "{error}");
}

#[test]
fn an_unreachable_host_decodes_the_negative_errno() {
    let got = RDMA_CM_EVENT_ADDR_ERROR;
    let error =
        Error::Event { wanted: RDMA_CM_EVENT_ADDR_RESOLVED, got, status: -libc::ETIMEDOUT, private_data: vec![] };
    assert!(error.to_string().contains("-110 (ETIMEDOUT"), "{error}");
}

#[test]
fn minus_one_from_librdmacm_is_no_eperm() {
    let text = status_text(RDMA_CM_EVENT_CONNECT_ERROR, -1);
    assert!(text.starts_with("-1 (no errno") && !text.contains("EPERM"), "{text}");
}

#[test]
fn a_failed_completion_is_named_and_explained() {
    let status = IBV_WC_REM_ACCESS_ERR;
    let text = Error::Completion { wr_id: 3, qp_num: 17, status, vendor_err: 0 }.to_string();
    assert!(text.starts_with("work request 3 of QP 17 completed with IBV_WC_REM_ACCESS_ERR"), "{text}");
    assert!(text.contains("rkey"), "{text}");
}

#[test]
fn values_from_a_newer_kernel_are_harmless() {
    let event =
        Error::Event { wanted: RDMA_CM_EVENT_ESTABLISHED, got: CmEventType(4711), status: 12, private_data: vec![] };
    assert!(event.to_string().contains("4711"), "{event}");
    let completion = Error::Completion { wr_id: 1, qp_num: 17, status: WcStatus(4711), vendor_err: 0 };
    assert!(completion.to_string().contains("4711"), "{completion}");
    let call = Error::Call { call: "rdma_listen", errno: 4711 };
    assert!(call.to_string().contains("4711"), "{call}");
}

#[test]
fn a_deadline_says_what_was_awaited_and_how_long() {
    let error = Error::Deadline { awaited: "the RECV".into(), limit: Duration::from_millis(2500) };
    assert!(error.to_string().starts_with("waited 2.5 s for the RECV, in vain. Next: "), "{error}");
}
