//! A queue pair's way to its peer: RESET → INIT → RTR → RTS. Elsewhere `rdma_connect` and `rdma_accept` do this.

use std::time::UNIX_EPOCH;

use common::tcp::Peer;
use common::{info, stage, Access, Card, Context, MemoryRegion, Metadata, ModifyQp, QpState, QueuePair, Result};

const PORT: u8 = 1;

/// What the peer must know of a queue pair; and the place of our GID in our port's table, which only our device must.
pub struct Ours {
    pub card: Card,
    sgid_index: u8,
}

/// The client's half: the cards are exchanged, and the queue pair moved. Returns where the peer's memory is.
pub fn meet(context: &Context, peer: &mut Peer, qp: &QueuePair, region: &MemoryRegion) -> Result<Metadata> {
    let ours = fill_card(context, peer, qp, region)?;
    peer.tell(&ours.card.long())?;
    let theirs = Card::parse(&peer.hear()?)?;
    connect(qp, &ours, &theirs)?;
    Ok(theirs.memory)
}

pub fn fill_card(context: &Context, peer: &Peer, qp: &QueuePair, region: &MemoryRegion) -> Result<Ours> {
    let _stage = stage("fill_card");
    let (sgid_index, gid) = context.find_gid(PORT, peer.own_ip()?)?;
    let mtu = context.query_port(PORT)?.active_mtu;
    // Any start will do; but another one each time, or late packets of a program before would be taken for ours. (In the
    // upper half of 24 bits: the change psn-behind says why.)
    let psn = UNIX_EPOCH.elapsed().unwrap_or_default().subsec_nanos() & 0x7f_ffff | 0x80_0000;
    let card = Card { qpn: qp.qp_num(), psn, gid, mtu, memory: Metadata::of(region) };
    info!("ours: {card}");
    Ok(Ours { card, sgid_index })
}

/// From any state to RTS.
pub fn connect(qp: &QueuePair, ours: &Ours, theirs: &Card) -> Result<()> {
    info!("theirs: {theirs}");
    if qp.query()?.state != QpState::RESET {
        to_reset(qp)?;
    }
    to_init(qp)?;
    to_rtr(qp, ours, theirs)?;
    to_rts(qp, ours)
}

/// Forgets everything: who the peer is, and what was posted. It is the one way out of ERR.
fn to_reset(qp: &QueuePair) -> Result<()> {
    let _stage = stage("to_reset");
    qp.dump();
    move_to(qp, &ModifyQp::Reset)
}

/// Now receives may be posted.
fn to_init(qp: &QueuePair) -> Result<()> {
    let _stage = stage("to_init");
    let init = ModifyQp::Init {
        port: PORT,
        // What the peer may do here at all. Where it may, the region says.
        access: Access::REMOTE_WRITE | Access::REMOTE_READ,
    };
    move_to(qp, &init)
}

/// Ready to receive: the device takes the peer's requests, and answers them.
fn to_rtr(qp: &QueuePair, ours: &Ours, theirs: &Card) -> Result<()> {
    let _stage = stage("to_rtr");
    let rtr = ModifyQp::Rtr {
        // The most payload in a packet. Both sides must choose the same.
        path_mtu: ours.card.mtu.min(theirs.mtu),
        // In each packet that we send: for which queue pair it is.
        dest_qp_num: theirs.qpn,
        // The number that the peer's first packet must have: its sq_psn.
        rq_psn: theirs.psn,
        // Where our packets go; in RoCE an IP address.
        dgid: theirs.gid,
        // Where they come from: a place in our own port's table of addresses.
        sgid_index: ours.sgid_index,
        // The peer's place in an InfiniBand subnet, which Ethernet is not.
        dlid: 0,
        port: PORT,
        // READs and atomics of the peer that we answer at a time.
        max_dest_rd_atomic: 1,
        // 0.64 ms, as a code: so long the peer waits whose SEND finds no receive here.
        min_rnr_timer: 12,
    };
    move_to(qp, &rtr)
}

/// Ready to send, too.
fn to_rts(qp: &QueuePair, ours: &Ours) -> Result<()> {
    let _stage = stage("to_rts");
    let rts = ModifyQp::Rts {
        // The number of our first packet: the peer's rq_psn.
        sq_psn: ours.card.psn,
        // How long the device waits for an ACK: 4.096 µs × 2^17 = 0.54 s. With all retries, less than the 10 s that we wait.
        timeout: 17,
        // How often it sends again what is not acknowledged. SoftRoCE takes 7 for "for ever".
        retry_cnt: 6,
        // How often it sends again what found no receive.
        rnr_retry: 6,
        // READs of ours that are under way at a time.
        max_rd_atomic: 1,
    };
    move_to(qp, &rts)
}

fn move_to(qp: &QueuePair, state: &ModifyQp) -> Result<()> {
    qp.modify(state)?;
    qp.dump();
    Ok(())
}
