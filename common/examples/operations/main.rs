//! For the tests: every operation of `common` between two machines, one after the other, and what each must achieve.
//!
//! ```text
//! operations server            operations client ADDRESS       over a connection, with an SRQ and separate CQs
//! operations by-hand server PORT    operations by-hand client ADDRESS PORT    no connection manager: numbers go over TCP
//! ```

mod by_hand;

use std::net::{Ipv6Addr, SocketAddr};

use common::args::{Args, PORT};
use common::cm::*;
use common::wc::*;
use common::*;

/// The server's buffer: a counter of 8 bytes, then room.
const LEN: usize = 4096;

/// How many receives the client's operations take: 3 with immediate data or not, one inline, and four of a batch.
const RECEIVES: usize = 8;

fn main() -> Result<()> {
    narrate::start(narrate::ALL);
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server"] => server(),
        ["client", address] => client(address),
        ["by-hand", "server", port] => by_hand::server(&args("::", port)?),
        ["by-hand", "client", address, port] => by_hand::client(&args(address, port)?),
        _ => Err(usage()),
    }
}

fn usage() -> Error {
    Error::content("[by-hand] server or client ADDRESS", "Read the head of operations.rs")
}

fn args(address: &str, port: &str) -> Result<Args> {
    let mut args = Args::default();
    (args.address, args.port) = (address.into(), port.parse().map_err(|_| usage())?);
    Ok(args)
}

const CAP: QpCap = QpCap { max_send_wr: 16, max_recv_wr: 16, max_send_sge: 3, max_recv_sge: 2, max_inline_data: 32 };

const EVERYTHING: Access = Access::LOCAL_WRITE;

fn exposed(pd: &ProtectionDomain) -> Result<MemoryRegion> {
    pd.reg_mr(LEN, EVERYTHING | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC)
}

/// What must hold, or the program fails.
fn check(what: &str, holds: bool) -> Result<()> {
    match holds {
        true => {
            say!("{what}: yes");
            Ok(())
        }
        false => Err(Error::content(format!("{what}: no"), "Look at the lines before")),
    }
}

fn server() -> Result<()> {
    let channel = EventChannel::create()?;
    let listener = channel.create_id()?;
    listener.bind_addr(SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)))?;
    listener.listen(1)?;
    let event = channel.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?;
    let (id, requested) = (event.id(), event.conn_param());
    event.ack();
    drop(listener);
    let context = id.verbs()?;
    let pd = context.alloc_pd()?;
    let completions = context.create_comp_channel()?;
    // Separate CQs: the receives' can be slept on, the send queue's only polled.
    let (sends, receives) = (context.create_cq(16)?, completions.create_cq(16)?);
    let srq = pd.create_srq(16, 2)?;
    let buffer = exposed(&pd)?;
    buffer.write_u64(0, 40)?;
    let inbox = pd.reg_mr(RECEIVES * 64, Access::LOCAL_WRITE)?;
    for slot in 0..RECEIVES {
        // Two pieces each: the first 3 bytes of a message go into the one, the others into the other.
        let start = slot * 64;
        srq.post_recv_pieces(&[(&inbox, start..start + 3), (&inbox, start + 32..start + 64)])?;
    }
    srq.arm_limit(1)?;
    let attr = QpInitAttr { recv_cq: &receives, srq: Some(&srq), ..QpInitAttr::new(&sends, CAP) };
    let qp = id.create_qp(&pd, &attr)?;
    let ours = ConnParam { responder_resources: 4, initiator_depth: 4, retry_count: 6, ..ConnParam::default() };
    let param = ours.clamped_to(&requested);
    check("READs are clamped to what was asked for", param.responder_resources == 2 && param.initiator_depth == 1)?;
    id.accept(&ConnParam { private_data: Metadata::of(&buffer).encode().to_vec(), ..param })?;
    channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    check("post_recv of a QP with an SRQ is an error", qp.post_recv(&inbox, 0..8).is_err())?;

    let mut received = Vec::new();
    while received.len() < RECEIVES {
        receives.req_notify()?;
        let batch = receives.poll()?;
        if batch.is_empty() {
            check("the event says which CQ", completions.get_cq_event("the client's messages")? == receives)?;
        }
        received.extend(batch);
    }
    let imm: Vec<_> = received.iter().map(WorkCompletion::imm_data).collect();
    check("immediate data", imm[..4] == [None, Some(0x0102_0304), Some(7), None])?;
    check(
        "opcodes",
        received[2].opcode() == Some(IBV_WC_RECV_RDMA_WITH_IMM) && received[0].opcode() == Some(IBV_WC_RECV),
    )?;
    check("all of one QP", received.iter().all(|wc| wc.qp_num == qp.qp_num()))?;
    check("three pieces came as one message into two", received[0].byte_len() == Some(9))?;
    check("the first piece", inbox.read(0..3)? == b"one" && inbox.read(32..38)? == b"two333")?;
    check(
        "inline bytes",
        inbox.read(3 * 64..3 * 64 + 3)? == b"inl" && inbox.read(3 * 64 + 32..3 * 64 + 35)? == b"ine",
    )?;
    check("WRITE into a slice", buffer.read(100..105)? == b"slice")?;
    check("WRITE with immediate", buffer.read(200..203)? == b"imm")?;
    check("FETCH_ADD and CMP_SWAP", buffer.read_u64(0)? == 1000)?;
    let event = context.get_async_event("the SRQ's limit")?;
    check("the SRQ runs low", event.event == async_event::IBV_EVENT_SRQ_LIMIT_REACHED)?;
    channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    id.disconnect()?;
    check("the QP is in ERR", qp.query()?.state == QpState::ERR)?;
    // In no right order at all.
    drop(pd);
    drop(buffer);
    drop(id);
    drop(channel);
    drop(srq);
    drop((sends, receives));
    drop(context);
    drop(completions);
    drop(inbox);
    drop(qp);
    say!("server done");
    Ok(())
}

fn client(address: &str) -> Result<()> {
    let channel = EventChannel::create()?;
    let id = address::try_each(address, PORT, |address| {
        let id = channel.create_id()?;
        id.resolve_addr(address)?;
        channel.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })?;
    id.resolve_route()?;
    channel.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    let context = id.verbs()?;
    let pd = context.alloc_pd()?;
    let cq = context.create_cq(64)?;
    let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, CAP))?;
    check("the QP is in INIT", qp.query()?.state == QpState::INIT)?;
    id.connect(&ConnParam { responder_resources: 1, initiator_depth: 2, retry_count: 6, ..ConnParam::default() })?;
    let event = channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    let theirs = Metadata::decode(event.private_data())?;
    event.ack();
    check("the QP is in RTS", qp.query()?.state == QpState::RTS)?;
    operate(&pd, &cq, &qp, &theirs)?;
    id.disconnect()?;
    channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    say!("client done");
    Ok(())
}

/// Every operation, each waited for.
fn operate(pd: &ProtectionDomain, cq: &CompletionQueue, qp: &QueuePair, theirs: &Metadata) -> Result<()> {
    let own = pd.reg_mr(LEN, Access::LOCAL_WRITE)?;
    own.write(0, b"one....two....333")?;
    own.write(64, b"slice")?;
    own.write(72, b"imm")?;
    let done = |request: &SendWr| cq.wait_for(qp.post_send(request)?, "an operation");
    done(&SendWr::new(Operation::Send, &[(&own, 0..3), (&own, 7..10), (&own, 14..17)]))?;
    done(&SendWr::new(Operation::SendImm(0x0102_0304), &[(&own, 0..3)]).solicited())?;
    done(&SendWr::rdma_write(&own, 64..69, &theirs.slice(100..105)?))?;
    done(&SendWr::new(Operation::WriteImm(theirs.slice(200..203)?, 7), &[(&own, 72..75)]))?;
    done(&SendWr::rdma_read(&own, 512..517, &theirs.slice(100..105)?))?;
    check("READ of a slice", own.read(512..517)? == b"slice")?;
    let added = done(&SendWr::new(Operation::FetchAdd(*theirs, 2), &[(&own, 1024..1032)]))?;
    check("FETCH_ADD brings back 40", own.read_u64(1024)? == 40 && added.opcode() == Some(IBV_WC_FETCH_ADD))?;
    let swap = Operation::CompareSwap { at: *theirs, compare: 42, swap: 1000 };
    let swapped = done(&SendWr::new(swap, &[(&own, 1032..1040)]).fenced())?;
    check("CMP_SWAP brings back 42", own.read_u64(1032)? == 42 && swapped.opcode() == Some(IBV_WC_COMP_SWAP))?;
    done(&SendWr::inline(Operation::Send, b"inline"))?;

    // Unsignaled, and its region dropped at once: what arrives must be right all the same.
    let gone = pd.reg_mr(64, Access::LOCAL_READ)?;
    gone.write(0, b"gone")?;
    let slice = theirs.slice(300..304)?;
    let quiet = qp.post_send(&SendWr::rdma_write(&gone, 0..4, &slice).unsignaled())?;
    drop(gone);
    check("an unsignaled request cannot be waited for", cq.wait_for(quiet, "what never comes").is_err())?;
    let request = || SendWr::send(&own, 0..3);
    let batch = [request().unsignaled(), request().unsignaled(), request().unsignaled(), request()];
    let (taken, result) = qp.post_send_all(&batch);
    result?;
    info!("now the last of the batch; then the region that is gone is released");
    cq.wait_for(taken.end - 1, "a batch")?;
    info!("released by now");
    check("one completion for all", cq.poll()?.is_empty())?;
    done(&SendWr::rdma_read(&own, 600..604, &slice))?;
    check("what was dropped arrived", own.read(600..604)? == b"gone")
}
