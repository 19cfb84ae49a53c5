//! A queue pair's way to its peer by hand: RESET → INIT → RTR → RTS. Elsewhere `rdma_connect` and `rdma_accept` do this.

use common::tcp::Peer;
use common::{info, stage, Access, Card, Metadata, ModifyQp, Mtu, QpState};

use crate::api::Rdma;
use crate::error::Result;
use crate::handle::Handle;

const PORT: u8 = 1;

impl Rdma {
    /// The client's half: tells the peer about a queue pair and a region, hears about its, and moves the queue pair to RTS.
    pub fn connect_qp(&self, qp_num: Handle, mr: Handle, peer: &mut Peer, wrong: &str) -> Result<Card> {
        let (ours, sgid_index) = self.card(qp_num, mr, peer)?;
        peer.tell(&ours.long())?;
        let theirs = Card::parse(&peer.hear()?)?;
        self.move_qp(qp_num, &ours, &theirs, sgid_index, wrong)?;
        Ok(theirs)
    }

    /// What the peer must know, and the place of our GID in the port's table.
    pub fn card(&self, qp_num: Handle, mr: Handle, peer: &Peer) -> Result<(Card, u8)> {
        let _stage = stage("card");
        let (qpn, memory) = (self.table.pair(qp_num)?.qp.qp_num(), Metadata::of(self.table.region(mr)?));
        let (sgid_index, gid) = self.context.find_gid(PORT, peer.own_ip()?)?;
        let mtu = self.context.query_port(PORT)?.active_mtu;
        // The next one begins far from here: so no late packet is taken for one of its own.
        let psn = self.psn.get();
        self.psn.set((psn + 0x1000) & 0xff_ffff);
        let card = Card { qpn, psn, gid, mtu, memory };
        info!("ours: {card}");
        Ok((card, sgid_index))
    }

    /// From any state to RTS; or to RTS as it should not be, if `wrong` names an attribute.
    pub fn move_qp(&self, qp_num: Handle, ours: &Card, theirs: &Card, mut sgid_index: u8, wrong: &str) -> Result<()> {
        info!("theirs: {theirs}");
        let (mut theirs, mut path_mtu) = (*theirs, ours.mtu.min(theirs.mtu));
        match wrong {
            "dest_qp_num" => theirs.qpn += 1,
            "rq_psn+1" => theirs.psn = theirs.psn.wrapping_add(1) & 0xff_ffff,
            "rq_psn-1" => theirs.psn = theirs.psn.wrapping_sub(1) & 0xff_ffff,
            "path_mtu" => path_mtu = Mtu::BYTES_256,
            "gid_index" => sgid_index = 0,
            _ => {}
        }
        // A fault has moved it to ERR without our doing: the device knows.
        let pair = self.table.pair(qp_num)?;
        pair.state.set(pair.qp.query()?.state);
        if pair.state.get() != QpState::RESET {
            self.to_reset(qp_num)?;
        }
        self.to_init(qp_num)?;
        self.to_rtr(qp_num, &theirs, path_mtu, sgid_index)?;
        match wrong {
            "rts" => Ok(()),
            _ => self.to_rts(qp_num, ours.psn),
        }
    }

    /// Forgets everything: who the peer is, and what was posted.
    fn to_reset(&self, qp_num: Handle) -> Result<()> {
        let _stage = stage("to_reset");
        let pair = self.table.pair(qp_num)?;
        pair.qp.dump();
        self.move_to(qp_num, &ModifyQp::Reset)?;
        // What is still reported is of the past.
        pair.send_cq.poll()?;
        pair.recv_cq.poll()?;
        pair.posted.0.borrow_mut().clear();
        Ok(())
    }

    fn to_init(&self, qp_num: Handle) -> Result<()> {
        let _stage = stage("to_init");
        let access = Access::REMOTE_WRITE | Access::REMOTE_READ;
        info!("port_num={PORT}: the device's port");
        info!("pkey_index=0: the partition; Ethernet has but one");
        info!("qp_access_flags={access}: what the peer may do, where the region allows it, too");
        self.move_to(qp_num, &ModifyQp::Init { port: PORT, access })
    }

    fn to_rtr(&self, qp_num: Handle, theirs: &Card, path_mtu: Mtu, sgid_index: u8) -> Result<()> {
        let _stage = stage("to_rtr");
        let Card { qpn: dest_qp_num, psn: rq_psn, gid: dgid, .. } = *theirs;
        let (dlid, port, max_dest_rd_atomic, min_rnr_timer) = (0, PORT, 1, 12);
        info!("path_mtu={path_mtu}: the most payload in a packet, {} bytes; both sides must agree", path_mtu.bytes());
        info!("dest_qp_num={dest_qp_num}: the peer's queue pair, named in each packet that we send");
        info!("rq_psn={rq_psn}: the number that the peer's first packet must have: its sq_psn");
        info!("dgid={dgid}: the peer's port; in RoCE an IP address");
        info!("sgid_index={sgid_index}: the place of our own address in our port's table");
        info!("dlid={dlid}: the peer's place in an InfiniBand subnet, which Ethernet is not");
        info!("max_dest_rd_atomic={max_dest_rd_atomic}: READs of the peer that we answer at a time");
        info!(
            "min_rnr_timer={min_rnr_timer}: the code for 0.64 ms, which a peer waits whose SEND finds no receive here"
        );
        #[rustfmt::skip]
        let rtr = ModifyQp::Rtr { path_mtu, dest_qp_num, rq_psn, dgid, dlid, sgid_index, port, max_dest_rd_atomic, min_rnr_timer };
        self.move_to(qp_num, &rtr)
    }

    fn to_rts(&self, qp_num: Handle, sq_psn: u32) -> Result<()> {
        let _stage = stage("to_rts");
        // 0.54 s, and with all retries 3.8 s: less than the 10 s that we wait. (SoftRoCE takes 7 retries for "for ever".)
        let (timeout, retry_cnt, rnr_retry, max_rd_atomic) = (17, 6, 6, 1);
        info!("sq_psn={sq_psn}: the number of our first packet: the peer's rq_psn");
        info!("timeout={timeout}: how long we wait for an ACK, 4.096 µs × 2^{timeout}");
        info!("retry_cnt={retry_cnt}: how often we send again what is not acknowledged");
        info!("rnr_retry={rnr_retry}: how often we send again what found no receive");
        info!("max_rd_atomic={max_rd_atomic}: READs of ours that are under way at a time");
        self.move_to(qp_num, &ModifyQp::Rts { sq_psn, timeout, retry_cnt, rnr_retry, max_rd_atomic })
    }

    fn move_to(&self, qp_num: Handle, state: &ModifyQp) -> Result<()> {
        let pair = self.table.pair(qp_num)?;
        pair.qp.modify(state)?;
        pair.qp.dump();
        pair.state.set(pair.qp.query()?.state);
        Ok(())
    }
}
