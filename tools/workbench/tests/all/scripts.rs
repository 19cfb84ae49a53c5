//! What a script may say, and what it's told if it says something else.

use workbench::script::{Script, GRAMMAR};

#[test]
fn mistakes_are_told_with_their_line_and_what_is_possible() {
    for (script, line, says) in [
        (
            "\nclint ibv_poll_cq",
            2,
            "`clint` isn't understood: what may come here is at TIME, wire RULE, client or server",
        ),
        (
            "client ibv_pol_cq",
            1,
            "`ibv_pol_cq` isn't understood: what may come here is ibv_create_qp, ibv_modify_qp, ibv_reg_mr",
        ),
        ("client", 1, "`client` isn't whole: what comes next is ibv_create_qp"),
        ("client ibv_post_send", 1, "what comes next is SEND, SEND_WITH_IMM, WRITE"),
        ("client ibv_post_send PUT 0..60", 1, "`PUT` isn't understood: what may come here is SEND"),
        ("client ibv_post_send WRITE 0..60", 1, "to server and an offset in its memory, for example: to server 0"),
        ("client ibv_post_send WRITE 0..60 to client 0", 1, "the client's queue pair is connected to the server's"),
        ("client ibv_post_send WRITE 0..70000 to server 0", 1, "0..65536"),
        ("client ibv_post_send WRITE 60..0 to server 0", 1, "0..65536"),
        ("client ibv_post_send WRITE 0-60 to server 0", 1, "bytes of the node's memory, for example 0..60"),
        ("client ibv_post_send WRITE 0..60 to server 0 imm=7", 1, "key=wrong, unsignaled or fence"),
        ("client ibv_post_send SEND_WITH_IMM 0..60", 1, "for example imm=7"),
        ("client ibv_post_send FETCH_ADD 0..60 at server 0", 1, "eight bytes"),
        ("client ibv_post_send SEND 0..60 key=wrong", 1, "`key=wrong` isn't understood"),
        ("client ibv_create_qp mtu=1000", 1, "mtu=256, mtu=512"),
        ("server ibv_create_qp mtu=1024", 1, "the MTU is the client's to choose"),
        ("client ibv_create_qp timeout=32", 1, "timeout, a number from 0 to 31"),
        ("server ibv_modify_qp rq_psn=-1", 1, "rq_psn, a number from 0 to 16777215"),
        ("server ibv_modify_qp qp_state=SQD", 1, "qp_access_flags or qp_state=RTR"),
        ("client ibv_poll_cq\nclient ibv_create_qp timeout=3", 2, "before the node's other calls"),
        ("client ibv_reg_mr 0..60 LOCAL_WRITE|WRITE", 1, "several with | between them"),
        ("at 5 client dies", 1, "the units are ns, us, ms and s"),
        ("at 5 us dies", 1, "client or server"),
        ("client rdma_reject \"no\"", 1, "the server rdma_accept or rdma_reject"),
        ("client rdma_disconnect now", 1, "`now` is too much"),
        ("client memcpy 0 hello", 1, "a text in quotes"),
        ("client memcpy 65530 \"hello there\"", 1, "these are 11 bytes, and 6 are possible"),
        ("wire", 1, "for example: wire drop"),
        ("# first\nwire drip 1st packet", 2, "the acts are: drop, duplicate"),
        ("wire drop 1st packet from sender", 1, "the nodes are: server, client"),
    ] {
        let Err(error) = Script::parse(script) else { panic!("it's understood: {script}") };
        assert_eq!(error.line, line, "{script}: {}", error.says);
        assert!(error.says.to_lowercase().contains(&says.to_lowercase()), "{script}: {}", error.says);
    }
}

#[test]
fn the_grammar_names_all_there_is() {
    let script = "# a comment\n\
        client ibv_create_qp mtu=1024 timeout=14 retry_cnt=7 rnr_retry=7 min_rnr_timer=12 max_rd_atomic=1 \
        max_dest_rd_atomic=1 max_send_wr=64 max_recv_wr=64\n\
        server ibv_modify_qp path_mtu=256 dest_qp_num=19 rq_psn=0 max_rd_atomic=0 max_dest_rd_atomic=0 \
        qp_access_flags=REMOTE_READ qp_state=RTR\n\
        server ibv_reg_mr 0..4096 LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC # and this\n\
        server ibv_dereg_mr\nserver ibv_dereg_mr 0..60\nserver ibv_post_recv 0..64\n\
        client ibv_post_send SEND 0..60 unsignaled fence\n\
        client ibv_post_send SEND_WITH_IMM 0..60 imm=7\n\
        client ibv_post_send WRITE 0..60 to server 0 key=wrong\n\
        client ibv_post_send WRITE_WITH_IMM 0..60 to server 0 imm=7\n\
        client ibv_post_send READ 0..60 from server 0\n\
        client ibv_post_send FETCH_ADD 0..8 at server 0 add=1\n\
        client ibv_post_send CMP_SWP 0..8 at server 0 compare=0 swap=1\n\
        client ibv_poll_cq\nclient ibv_poll_cq 3\nclient memcpy 0 \"One # side\"\nclient memcpy 0 metadata 64..124\n\
        server rdma_reject \"no\"\nclient rdma_disconnect\nat 1.5 ms server dies\nat 150us server dies\n\
        wire drop 2nd packet from client\nwire link 1 Gbit/s 5 us\nwire queue 64 KB\n";
    let script_read = Script::parse(script).unwrap_or_else(|error| panic!("line {}: {}", error.line, error.says));
    assert_eq!((script_read.calls.len(), script_read.rules.len()), (19, 3));
    let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
    for word in script.split(|c| !is_word(c)).filter(|word| word.starts_with("ibv_") || word.starts_with("rdma_")) {
        assert!(GRAMMAR.contains(word), "{word}");
    }
}
