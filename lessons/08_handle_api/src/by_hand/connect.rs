//! A queue pair's way to its peer: RESET → INIT → RTR → RTS. Elsewhere `rdma_connect` and `rdma_accept` do this.

use std::time::UNIX_EPOCH;

use common::tcp::Peer;
use common::{info, stage, Access, Card, Context, MemoryRegion, Metadata, ModifyQp, QpState, QueuePair, Result};

const PORT: u8 = 1;

/// Our card, which is for the peer, and the index of our GID in our port's table, which only our own device needs.
pub struct Ours {
    pub card: Card,
    sgid_index: u8,
}

/// The client's half. It exchanges cards, moves the queue pair, and returns where the peer's memory is.
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
    // Any start will do, as long as it's another one each time. Otherwise late packets of an earlier program could be taken
    // for ours. (The change psn-behind says why it's in the upper half of the 24 bits.)
    let psn = UNIX_EPOCH.elapsed().unwrap_or_default().subsec_nanos() & 0x7f_ffff | 0x80_0000;
    let card = Card { qpn: qp.qp_num(), psn, gid, mtu, memory: Metadata::of(region) };
    info!("ours: {card}");
    Ok(Ours { card, sgid_index })
}

/// Takes the queue pair from any state to RTS.
pub fn connect(qp: &QueuePair, ours: &Ours, theirs: &Card) -> Result<()> {
    info!("theirs: {theirs}");
    if qp.query()?.state != QpState::RESET {
        to_reset(qp)?;
    }
    to_init(qp)?;
    to_rtr(qp, ours, theirs)?;
    to_rts(qp, ours)
}

/// Makes the queue pair forget everything, its peer and whatever was posted. It's the only way out of ERR.
fn to_reset(qp: &QueuePair) -> Result<()> {
    let _stage = stage("to_reset");
    qp.dump();
    move_to(qp, &ModifyQp::Reset)
}

/// From here on receives may be posted.
fn to_init(qp: &QueuePair) -> Result<()> {
    let _stage = stage("to_init");
    let init = ModifyQp::Init {
        port: PORT,
        // What the peer may do here at all. Each region says where.
        access: Access::REMOTE_WRITE | Access::REMOTE_READ,
    };
    move_to(qp, &init)
}

/// Ready to receive, which means that the device takes the peer's requests and answers them.
fn to_rtr(qp: &QueuePair, ours: &Ours, theirs: &Card) -> Result<()> {
    let _stage = stage("to_rtr");
    let rtr = ModifyQp::Rtr {
        // The most payload in a packet. Both sides must choose the same.
        path_mtu: ours.card.mtu.min(theirs.mtu),
        // The queue pair that our packets are for. Each of them carries this number.
        dest_qp_num: theirs.qpn,
        // The number that the peer's first packet must have, which is its sq_psn.
        rq_psn: theirs.psn,
        // Where our packets go. In RoCE that's an IP address.
        dgid: theirs.gid,
        // Where they come from, as an index into our own port's table of addresses.
        sgid_index: ours.sgid_index,
        // The peer's address in an InfiniBand subnet. Ethernet has none.
        dlid: 0,
        port: PORT,
        // How many READs and atomics of the peer we answer at a time.
        max_dest_rd_atomic: 1,
        // A code for 0.64 ms, which is how long the peer waits before it repeats a SEND that found no receive here.
        min_rnr_timer: 12,
    };
    move_to(qp, &rtr)
}

/// Ready to send as well.
fn to_rts(qp: &QueuePair, ours: &Ours) -> Result<()> {
    let _stage = stage("to_rts");
    let rts = ModifyQp::Rts {
        // The number of our first packet, which is the peer's rq_psn.
        sq_psn: ours.card.psn,
        // How long the device waits for an ACK: 4.096 µs × 2^17 = 0.54 s. With all retries, less than the 10 s that we wait.
        timeout: 17,
        // How often it sends again what isn't acknowledged. (SoftRoCE takes 7 for "for ever".)
        retry_cnt: 6,
        // How often it repeats a SEND that found no receive.
        rnr_retry: 6,
        // How many READs of ours may be under way at a time.
        max_rd_atomic: 1,
    };
    move_to(qp, &rts)
}

fn move_to(qp: &QueuePair, state: &ModifyQp) -> Result<()> {
    qp.modify(state)?;
    qp.dump();
    Ok(())
}
