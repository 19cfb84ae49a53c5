//! A node: its memory, its NIC with one queue pair and a connection manager, and what its program does with them.

use crate::script::{peer, Content, Operation, Request, Settings, MEMORY, NODES};
use crate::wire::{leaves_in, Arrival, Recorded, ADDRESSES};
use nic::cm::{Cm, CmEffect, Event, EventKind, Param, Phase, QP1};
use nic::completion::{Completion, Status, WcOpcode};
use nic::congestion::{Link, Parameters};
use nic::datagram::{bytes_of_link, Route};
use nic::errno::Errno;
use nic::fact::Fact;
use nic::memory::{Access, Memory, Sge};
use nic::outside::{Ctx, Effect};
use nic::packet::Packet;
use nic::psn::Psn;
use nic::qp::{mask, Attributes, Limits, Qp, Service, State};
use nic::time::Time;
use nic::work::{Local, ReceiveRequest, Remote, SendRequest, Work};
use pair::{Buffer, CLIENT, PD, SERVER};
use run::file::Line;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// Where the server listens, and the client's own port.
const PORT: u16 = 7471;
const FROM_PORT: u16 = 40_000;
/// The queue pairs' numbers, and where the memories begin.
const QPS: [u32; 2] = [0x12, 0x11];
const ADDRESS: [u64; 2] = [0x7f00_5000_0000, 0x7f00_c000_0000];
/// What's random on a NIC is the same in every run here: what ids and first PSNs begin with, and the last byte of keys.
const RANDOM: [u64; 2] = [0x5e00_0001_0000_0200, 0xc100_0001_0000_0100];
const KEY: [u8; 2] = [0x5e, 0xc1];
/// What the client's memory holds again and again, as many bytes as a program of lesson 04 writes.
const TEXT: &str = "One side writes, and the other side's processor never knows.";

/// How far the connection has come, as the program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It hasn't been made yet.
    Coming,
    /// It's up.
    Up,
    /// It's over, or will never be made.
    Over,
}

/// A region, as its program knows it.
#[derive(Clone, Debug)]
pub struct Region {
    /// Which bytes of the node's memory.
    pub bytes: Range<usize>,
    /// Who may do what.
    pub access: Access,
    /// Its lkey, which is also its rkey.
    pub key: u32,
    /// Whether it's still registered.
    pub is_there: bool,
}

/// A request that was posted to the send queue.
#[derive(Clone, Debug)]
pub struct Posted {
    /// Its number.
    pub wr_id: u64,
    /// What it asks for.
    pub request: Request,
}

/// A completion, and when it came.
#[derive(Clone, Debug)]
pub struct Completed {
    /// When the NIC has put it into the completion queue.
    pub at: Duration,
    /// The completion.
    pub wc: Completion,
    /// Whether the program has polled it.
    pub is_polled: bool,
}

/// A node.
pub struct Node {
    number: usize,
    /// Of both sides, because a message of the connection manager's tells the peer's NIC how often to try.
    settings: [Settings; 2],
    /// The queue pair.
    pub qp: Qp,
    memory: Memory,
    buffer: Buffer,
    cm: Cm,
    local: Option<u32>,
    /// How far the connection has come.
    pub connection: Connection,
    link: Option<Link>,
    /// What the NIC has sent and its link hasn't taken yet, and until when the link is busy.
    out: VecDeque<Packet>,
    busy_until: Duration,
    messages: u32,
    phase: Option<Phase>,
    /// What its message of the connection manager's carries.
    private: Vec<u8>,
    /// Whether that message says no.
    rejects: bool,
    /// All its program's regions.
    pub regions: Vec<Region>,
    /// All that has completed.
    pub completions: Vec<Completed>,
    /// All that was posted to the send queue.
    pub posted: Vec<Posted>,
    /// Receives posted and not yet complete: wr_id and bytes.
    pub receives: VecDeque<(u64, Range<usize>)>,
    next_wr: u64,
    /// Whether its machine is off.
    pub is_dead: bool,
    /// The line of the script that's being carried out.
    pub line: usize,
    now: Duration,
}

impl Node {
    /// A node whose queue pair is in INIT, so that receives can be posted.
    pub fn new(number: usize, settings: [Settings; 2]) -> Node {
        let own = settings[number];
        let limits = Limits { send: own.max_send_wr, receive: own.max_recv_wr, send_sge: 1, receive_sge: 1, inline: 0 };
        let (number_of_qp, service, signal_all, uses_shared) = (QPS[number], Service::Rc, false, false);
        let mut memory = Memory::default();
        let buffer = Buffer::at(&mut memory, ADDRESS[number], MEMORY, Access::LOCAL_READ, PD);
        // The program registers what it wants to; so far nothing is.
        memory.deregister(buffer.key);
        let node = Node {
            number,
            settings,
            qp: Qp::new(nic::qp::Settings { number: number_of_qp, service, pd: PD, limits, signal_all, uses_shared }),
            memory,
            buffer,
            cm: Cm::new(ADDRESSES[number]),
            local: None,
            connection: Connection::Coming,
            link: None,
            out: VecDeque::new(),
            busy_until: Duration::ZERO,
            messages: 0,
            phase: None,
            private: Vec::new(),
            rejects: false,
            regions: Vec::new(),
            completions: Vec::new(),
            posted: Vec::new(),
            receives: VecDeque::new(),
            next_wr: 1,
            is_dead: false,
            line: 0,
            now: Duration::ZERO,
        };
        let text: Vec<u8> = node.text().bytes().cycle().take(MEMORY).collect();
        node.buffer.fill(node.buffer.address, &text);
        node
    }

    /// The link with a switch at its end has a rate, and perhaps congestion control.
    pub fn plug(&mut self, rate: u64, dcqcn: Option<Parameters>) {
        self.link = Some(Link::new(rate, dcqcn));
    }

    /// Which of the two it is.
    pub fn number(&self) -> usize {
        self.number
    }

    /// It's this time now.
    pub fn goes_on(&mut self, now: Duration) {
        self.now = now;
    }

    fn time(&self) -> Time {
        Time::START + self.now
    }

    fn own(&self) -> &Settings {
        &self.settings[self.number]
    }

    /// When something is due here. The rest after a connection's end brings nothing, and nobody waits for it.
    pub fn due(&self) -> Option<Duration> {
        if self.is_dead {
            return None;
        }
        let cm = self.cm.deadline().filter(|_| self.phase != Some(Phase::TimeWait));
        let timers = self.qp.deadline().into_iter().chain(cm).map(|time| time.since(Time::START));
        let link = (!self.out.is_empty()).then_some(self.busy_until);
        timers.chain(link).min()
    }
}

/// The NIC.
impl Node {
    /// Does something to the queue pair, and what that asks for.
    fn act<R>(&mut self, wire: &mut Recorded, act: impl FnOnce(&mut Qp, &mut Ctx) -> R) -> R {
        let mut ctx = Ctx::new(Time::START + self.now, &mut self.memory);
        (ctx.talks, ctx.link) = (true, self.link.as_ref());
        let result = act(&mut self.qp, &mut ctx);
        for effect in ctx.effects {
            match effect {
                Effect::Say(fact) => wire.notes(self.number, fact),
                Effect::Send(_, packet) => self.out.push_back(packet),
                Effect::Sent(wc) => self.completes(wc),
                Effect::Received(wc) => {
                    self.receives.retain(|(wr_id, _)| *wr_id != wc.wr_id);
                    self.completes(wc);
                }
                // A program could take a first packet for the RTU (rdma_notify). Those of the lessons don't.
                Effect::Raise(_) => {}
            }
        }
        result
    }

    fn completes(&mut self, wc: Completion) {
        self.completions.push(Completed { at: self.now, wc, is_polled: false });
    }

    /// Does something with the connection manager, and what that asks for.
    fn manage(&mut self, wire: &mut Recorded, act: impl FnOnce(&mut Cm, Time, &mut Vec<CmEffect>)) {
        let mut effects = Vec::new();
        let now = self.time();
        act(&mut self.cm, now, &mut effects);
        self.phase = self.local.and_then(|local| self.cm.get(local)).map(|connection| connection.phase);
        for effect in effects {
            match effect {
                CmEffect::Send(_, mad) => {
                    self.out.push_back(mad.packet(Psn::new(self.messages)));
                    self.messages += 1;
                }
                CmEffect::Event(event) => self.hears(wire, &event),
                CmEffect::Say(fact) => wire.notes(self.number, fact),
            }
        }
    }

    /// Something has come out of the wire.
    pub fn receive(&mut self, arrival: Arrival, wire: &mut Recorded) {
        let from = ADDRESSES[peer(self.number)];
        match arrival {
            _ if self.is_dead => {}
            Arrival::Damaged(bytes) => {
                wire.notes(self.number, Fact::new("damaged").with("bytes", bytes).with("from", from));
            }
            Arrival::Packet(packet) if packet.dest_qp == QP1 => {
                let random = RANDOM[self.number];
                self.manage(wire, |cm, now, out| cm.receive(from, &packet.payload, random, now, out));
            }
            Arrival::Packet(packet) if packet.dest_qp == self.qp.settings().number => {
                let route = Route { from, to: ADDRESSES[self.number] };
                self.act(wire, |qp, ctx| qp.receive(route, *packet, ctx));
            }
            Arrival::Packet(packet) => {
                let name = packet.row().name;
                let fact = Fact::new("no_qp").with("packet", name).with("from", from).with("qp", packet.dest_qp);
                wire.notes(self.number, fact);
            }
        }
    }

    /// Does what time, or what was posted, has made possible, and sends a packet if the link is free. Whether there may be more to
    /// do, here or for the program.
    pub fn tick(&mut self, wire: &mut Recorded) -> bool {
        if self.is_dead {
            return false;
        }
        let before = (self.completions.len(), self.connection);
        self.act(wire, Qp::tick);
        self.manage(wire, Cm::tick);
        let sends = self.busy_until <= self.now && !self.out.is_empty();
        if let Some(packet) = if sends { self.out.pop_front() } else { None } {
            // A switch has links of its own.
            let bytes = if self.link.is_some() { 0 } else { bytes_of_link(ADDRESSES[peer(self.number)], &packet) };
            self.busy_until = self.now + leaves_in(bytes);
            wire.send(self.number, &packet);
        }
        sends || self.qp.is_busy() || before != (self.completions.len(), self.connection)
    }
}

/// The connection.
impl Node {
    /// Makes the queue pair: in INIT it takes receives, and nothing else yet.
    pub fn create(&mut self, wire: &mut Recorded) {
        let Settings { max_send_wr, max_recv_wr, .. } = *self.own();
        self.log(wire, "SLOW", &format!("rdma_create_qp RC max_send_wr={max_send_wr} max_recv_wr={max_recv_wr}"));
        let rights = [Access::REMOTE_WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC];
        let all = Access(rights.iter().fold(0, |all, right| all | right.0));
        let access = self.own().by_hand.qp_access_flags.unwrap_or(all);
        self.moves(wire, State::Init, &Attributes { access, ..Attributes::default() });
        let words =
            format!("QP: qpn={} state=INIT max_send_wr={max_send_wr} max_recv_wr={max_recv_wr}", QPS[self.number]);
        self.log(wire, "INFO", &words);
    }

    fn moves(&mut self, wire: &mut Recorded, state: State, attributes: &Attributes) {
        let bits = mask::STATE | state.needs(Service::Rc).unwrap_or_default();
        // The table of states allows these moves, and the attributes are there.
        let _ = self.act(wire, |qp, ctx| qp.modify(bits, state, attributes, ctx));
    }

    /// The server listens; the client asks for a connection.
    pub fn connect(&mut self, wire: &mut Recorded) {
        if self.number == SERVER {
            self.log(wire, "SLOW", "rdma_listen backlog=8");
            let _ = self.cm.listen(nic::cm::Space::Tcp, PORT, self.number as u64, 8);
            return;
        }
        let Settings { timeout, mtu, retry_cnt, max_rd_atomic, max_dest_rd_atomic, .. } = *self.own();
        let param = self.param(retry_cnt, max_dest_rd_atomic, max_rd_atomic);
        let private = self.private.clone();
        self.log(wire, "SLOW", &format!("rdma_connect {}", words_of(&param, &private)));
        let local = self.cm.open(Some(self.number as u64), ADDRESSES[SERVER], RANDOM[self.number]);
        self.local = Some(local);
        if let Some(connection) = self.cm.get(local) {
            (connection.param, connection.qpn) = (param, QPS[self.number]);
            (connection.attributes.timeout, connection.attributes.mtu) = (timeout, mtu);
        }
        self.manage(wire, |cm, now, out| cm.connect(local, PORT, FROM_PORT, &private, now, out));
    }

    /// What our message says. How often to try again when a receive is missing is told to the one who tries.
    fn param(&self, retries: u8, responder_resources: u8, initiator_depth: u8) -> Param {
        let rnr_retries = self.settings[peer(self.number)].rnr_retry;
        Param { responder_resources, initiator_depth, retries, rnr_retries }
    }

    /// An event of the connection manager's, and what the program does about it.
    fn hears(&mut self, wire: &mut Recorded, event: &Event) {
        let says = |node: &Node, wire: &mut Recorded, name: &str| {
            node.log(wire, "INFO", &format!("CM event: {name} status={}", event.status));
        };
        match event.kind {
            EventKind::ConnectRequest => {
                says(self, wire, "CONNECT_REQUEST");
                self.accept(wire, event.connection);
            }
            EventKind::ConnectResponse => {
                let local = event.connection;
                self.ready(wire, local);
                self.manage(wire, |cm, now, out| {
                    let _ = cm.ready_to_use(local, now, out);
                });
                self.connection = Connection::Up;
                says(self, wire, "ESTABLISHED");
            }
            EventKind::Established => {
                self.connection = Connection::Up;
                says(self, wire, "ESTABLISHED");
            }
            EventKind::Disconnected => {
                self.connection = Connection::Over;
                says(self, wire, "DISCONNECTED");
                if self.phase == Some(Phase::DreqReceived) {
                    self.disconnect(wire);
                }
            }
            EventKind::Rejected | EventKind::Unreachable | EventKind::ConnectError => {
                self.connection = Connection::Over;
                says(self, wire, if event.kind == EventKind::Rejected { "REJECTED" } else { "UNREACHABLE" });
            }
            EventKind::AddrResolved | EventKind::AddrError | EventKind::RouteResolved | EventKind::TimewaitExit => {}
        }
    }

    fn accept(&mut self, wire: &mut Recorded, local: u32) {
        let Settings { retry_cnt, max_rd_atomic, max_dest_rd_atomic, .. } = *self.own();
        let param = self.param(retry_cnt, max_dest_rd_atomic, max_rd_atomic);
        let Some(connection) = self.cm.get(local) else { return };
        let asked = connection.param;
        let param = Param {
            responder_resources: param.responder_resources.min(asked.responder_resources),
            initiator_depth: param.initiator_depth.min(asked.initiator_depth),
            ..param
        };
        (connection.owner, connection.qpn, connection.param) = (Some(self.number as u64), QPS[self.number], param);
        self.local = Some(local);
        let private = self.private.clone();
        if self.rejects {
            self.log(wire, "SLOW", &format!("rdma_reject private_data={} bytes", private.len()));
            self.connection = Connection::Over;
            return self.manage(wire, |cm, now, out| {
                let _ = cm.reject(local, &private, now, out);
            });
        }
        self.log(wire, "SLOW", &format!("rdma_accept {}", words_of(&param, &private)));
        self.ready(wire, local);
        self.manage(wire, |cm, now, out| {
            let _ = cm.accept(local, &private, now, out);
        });
    }

    /// Moves the queue pair to RTR and to RTS, with what the messages have said about the peer's.
    fn ready(&mut self, wire: &mut Recorded, local: u32) {
        let Settings { timeout, retry_cnt, rnr_retry, min_rnr_timer, .. } = *self.own();
        let Some(connection) = self.cm.get(local) else { return };
        let agreed = connection.attributes();
        let by_hand = self.settings[self.number].by_hand;
        let attributes = Attributes {
            timeout,
            retries: retry_cnt,
            rnr_retries: rnr_retry,
            min_rnr_timer,
            mtu: by_hand.path_mtu.unwrap_or(agreed.mtu),
            dest_qp: by_hand.dest_qp_num.unwrap_or(agreed.dest_qp),
            rq_psn: by_hand.rq_psn.map_or(agreed.rq_psn, Psn::new),
            max_rd_atomic: by_hand.max_rd_atomic.unwrap_or(agreed.max_rd_atomic),
            max_dest_rd_atomic: by_hand.max_dest_rd_atomic.unwrap_or(agreed.max_dest_rd_atomic),
            ..agreed
        };
        self.moves(wire, State::Rtr, &attributes);
        if !by_hand.stays_in_rtr {
            self.moves(wire, State::Rts, &attributes);
        }
        let Attributes { mtu, dest_qp, sq_psn, rq_psn, max_rd_atomic, max_dest_rd_atomic, .. } = attributes;
        let words = format!(
            "QP: qpn={} state={} mtu={mtu} B dest_qpn={dest_qp} sq_psn={sq_psn} rq_psn={rq_psn} max_rd_atomic={max_rd_atomic} \
             max_dest_rd_atomic={max_dest_rd_atomic} retry_cnt={retry_cnt} rnr_retry={rnr_retry} timeout={timeout} \
             min_rnr_timer={min_rnr_timer}",
            QPS[self.number],
            if by_hand.stays_in_rtr { "RTR" } else { "RTS" }
        );
        self.log(wire, "INFO", &words);
    }

    /// `rdma_disconnect`: the queue pair goes to ERR before anything is said, as librdmacm does it.
    pub fn disconnect(&mut self, wire: &mut Recorded) {
        self.log(wire, "SLOW", "rdma_disconnect");
        let _ = self.act(wire, |qp, ctx| qp.modify(mask::STATE, State::Err, &Attributes::default(), ctx));
        let local = self.local.unwrap_or_default();
        self.manage(wire, |cm, now, out| cm.disconnect(local, now, out));
        self.log(wire, "INFO", &format!("QP: qpn={} state=ERR", QPS[self.number]));
        self.connection = Connection::Over;
    }
}

/// The program's calls.
impl Node {
    /// A line of the program's log, as `common` prints one. Its stage is the script's line that has called for it.
    fn log(&self, wire: &mut Recorded, tag: &str, words: &str) {
        let (line, ms) = (self.line, self.now.as_millis());
        let clock = format!("{:02}:{:02}:{:02}.{:03}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
        let stage = if line > 0 { format!("line-{line}") } else { "set-up".to_owned() };
        let text = format!("[{clock} #{line:04} {stage}] {tag:<5} {words}");
        wire.says(Some(self.number), Line::of_program("script", text, true));
    }

    fn refused(&self, wire: &mut Recorded, call: &str, errno: Errno) {
        let words = match errno {
            Errno::ENOMEM => "Cannot allocate memory",
            _ => "Invalid argument",
        };
        self.log(wire, "ERR", &format!("{call}: {words} (os error {})", i32::from(errno)));
    }

    /// `ibv_reg_mr`
    pub fn register(&mut self, wire: &mut Recorded, bytes: &Range<usize>, access: Access) {
        self.log(wire, "SLOW", &format!("ibv_reg_mr len={} access={access}", bytes.len()));
        // In the end it's the node's own NIC that writes.
        let writes = access.0 & (Access::REMOTE_WRITE.0 | Access::REMOTE_ATOMIC.0) != 0;
        if writes && !access.allow(Access::LOCAL_WRITE) {
            return self.refused(wire, "ibv_reg_mr", Errno::EINVAL);
        }
        let mut region = self.buffer.region(bytes.len() as u64, access, PD);
        region.start += bytes.start as u64;
        region.va = region.start;
        let (addr, key) = (region.start, self.memory.register(region, KEY[self.number]));
        self.regions.push(Region { bytes: bytes.clone(), access, key, is_there: true });
        self.log(wire, "INFO", &format!("MR: addr={addr:#x} len={} lkey={key:#x} rkey={key:#x}", bytes.len()));
    }

    /// `ibv_dereg_mr`
    pub fn deregister(&mut self, wire: &mut Recorded, bytes: Option<&Range<usize>>) {
        self.log(wire, "SLOW", "ibv_dereg_mr");
        let fits = |region: &&mut Region| region.is_there && bytes.map_or(true, |bytes| region.has(bytes));
        match self.regions.iter_mut().rev().find(fits) {
            Some(region) => {
                region.is_there = false;
                self.memory.deregister(region.key);
            }
            None => self.refused(wire, "ibv_dereg_mr", Errno::EINVAL),
        }
    }

    /// The key for some bytes: that of the last region which has them. If none has, it's another one's, which won't open them: one that
    /// at least begins before them and has some, if there is one, as for a program that goes past a region's end.
    pub fn key(&self, bytes: &Range<usize>) -> u32 {
        let last = |fits: &dyn Fn(&Region) -> bool| self.regions.iter().rev().find(|region| fits(region));
        let there = last(&|region| region.is_there && region.has(bytes));
        let had = || last(&|region| region.has(bytes));
        let begins = || last(&|region| region.bytes.contains(&bytes.start));
        there.or_else(had).or_else(begins).or_else(|| last(&|_| true)).map_or(0, |region| region.key)
    }

    fn address(&self, offset: usize) -> u64 {
        self.buffer.address + offset as u64
    }

    fn piece(&self, bytes: &Range<usize>) -> Sge {
        Sge { address: self.address(bytes.start), length: bytes.len() as u32, lkey: self.key(bytes) }
    }

    fn take_number(&mut self) -> u64 {
        let number = self.next_wr;
        self.next_wr += 1;
        number
    }

    /// `ibv_post_recv`
    pub fn post_receive(&mut self, wire: &mut Recorded, bytes: &Range<usize>) {
        let (wr_id, sge) = (self.take_number(), self.piece(bytes));
        self.log(wire, "FAST", &format!("ibv_post_recv wr_id={wr_id} len={}", sge.length));
        self.log(wire, "INFO", &format!("SGE: addr={:#x} len={} lkey={:#x}", sge.address, sge.length, sge.lkey));
        self.receives.push_back((wr_id, bytes.clone()));
        if let Err(errno) = self.act(wire, |qp, ctx| qp.post_receive(ReceiveRequest { wr_id, sge: vec![sge] }, ctx)) {
            self.receives.retain(|(posted, _)| *posted != wr_id);
            self.refused(wire, "ibv_post_recv", errno);
        }
    }

    /// `ibv_post_send`; the peer's memory is where it is, and its key opens it or doesn't.
    pub fn post_send(&mut self, wire: &mut Recorded, request: &Request, there: &Node) {
        let (wr_id, sge) = (self.take_number(), self.piece(&request.local));
        let Request { operation, immediate, signaled, fence, wrong_key, .. } = *request;
        let rkey = there.key(&(request.remote..request.remote + request.local.len())) ^ u32::from(wrong_key);
        let remote = Remote { address: there.address(request.remote), rkey };
        let work = match operation {
            Operation::Send | Operation::SendWithImmediate => Work::Send,
            Operation::Write | Operation::WriteWithImmediate => Work::Write(remote),
            Operation::Read => Work::Read(remote),
            Operation::FetchAdd { add } => Work::FetchAdd { remote, add },
            Operation::CompareSwap { compare, swap } => Work::CompareSwap { remote, compare, swap },
        };
        let name = operation.name();
        self.log(wire, "DATA", &format!("ibv_post_send {name} wr_id={wr_id} len={}", sge.length));
        self.log(wire, "INFO", &format!("SGE: addr={:#x} len={} lkey={:#x}", sge.address, sge.length, sge.lkey));
        let mut words = format!("WR: wr_id={wr_id} opcode={name} signaled={} num_sge=1", u8::from(signaled));
        if operation.is_one_sided() {
            words += &format!(" remote_addr={:#x} rkey={rkey:#x}", remote.address);
        }
        self.log(wire, "INFO", &words);
        let (local, length) = (Local::SgList(vec![sge]), sge.length);
        self.posted.push(Posted { wr_id, request: request.clone() });
        let request = SendRequest { wr_id, work, local, length, immediate, signaled, solicited: false, fence };
        if let Err(errno) = self.act(wire, |qp, ctx| qp.post_send(request, ctx)) {
            self.posted.retain(|posted| posted.wr_id != wr_id);
            self.refused(wire, "ibv_post_send", errno);
        }
    }

    /// `ibv_poll_cq` begins to look.
    pub fn begins_to_poll(&self, wire: &mut Recorded) {
        self.log(wire, "DATA", "ibv_poll_cq");
    }

    /// Takes the next completion, if there is one.
    pub fn poll(&mut self, wire: &mut Recorded) -> bool {
        let Some(next) = self.completions.iter_mut().find(|completed| !completed.is_polled) else { return false };
        next.is_polled = true;
        let Completion { wr_id, status, opcode, length, immediate, qp, .. } = next.wc;
        let mut words = format!("WC: wr_id={wr_id} status={}", status.name());
        if status == Status::Success {
            words += &format!(" opcode={}", opcode.name());
            let is_received = matches!(opcode, WcOpcode::Recv | WcOpcode::RecvRdmaWithImm);
            words += &if is_received { format!(" byte_len={length}") } else { String::new() };
            words += &immediate.map_or(String::new(), |immediate| format!(" imm_data={immediate:#x}"));
        }
        self.log(wire, "DATA", &format!("{words} qp_num={qp}"));
        true
    }

    /// A content's bytes, and what they are in words.
    fn content(&self, content: &Content) -> (Vec<u8>, String) {
        match content {
            Content::Text(text) => (text.clone().into_bytes(), format!("\"{text}\"")),
            Content::Metadata(bytes) => {
                let (address, key, length) = (self.address(bytes.start), self.key(bytes), bytes.len() as u32);
                let metadata = [&address.to_be_bytes()[..], &key.to_be_bytes(), &length.to_be_bytes()].concat();
                (metadata, format!("addr={address:#x} rkey={key:#x} len={length}"))
            }
        }
    }

    /// Puts bytes into its own memory.
    pub fn fill(&self, wire: &mut Recorded, at: usize, content: &Content) {
        let (bytes, what) = self.content(content);
        self.log(wire, "INFO", &format!("into its own memory, at {at}: {what}"));
        self.buffer.fill(self.address(at), &bytes);
    }

    /// What the next message of the connection manager's carries, if it isn't too late for that.
    pub fn carry(&mut self, wire: &mut Recorded, content: &Content, rejects: bool) {
        let (bytes, what) = self.content(content);
        match self.local {
            None => {
                (self.private, self.rejects) = (bytes, rejects);
                self.log(wire, "INFO", &format!("private data: {what}"));
            }
            Some(_) => {
                let call = match (self.number, rejects) {
                    (CLIENT, _) => "rdma_connect",
                    (_, true) => "rdma_reject",
                    _ => "rdma_accept",
                };
                self.refused(wire, call, Errno::EINVAL)
            }
        }
    }

    /// Its machine is switched off.
    pub fn dies(&mut self, wire: &mut Recorded) {
        self.is_dead = true;
        self.out.clear();
        wire.says(
            Some(self.number),
            Line::of_lab("power-off", &format!("the {}'s machine is off", NODES[self.number])),
        );
    }

    /// What's in its memory.
    pub fn bytes(&self, range: &Range<usize>) -> Vec<u8> {
        self.buffer.bytes(self.address(range.start), range.len())
    }

    /// What its memory holds again and again before anybody writes there; nothing if that's zeros.
    pub fn text(&self) -> &'static str {
        if self.number == CLIENT {
            TEXT
        } else {
            ""
        }
    }

    /// Where its memory begins.
    pub fn start(&self) -> u64 {
        self.buffer.address
    }
}

impl Region {
    fn has(&self, bytes: &Range<usize>) -> bool {
        self.bytes.start <= bytes.start && bytes.end <= self.bytes.end
    }
}

fn words_of(param: &Param, private: &[u8]) -> String {
    let Param { responder_resources, initiator_depth, retries, rnr_retries } = param;
    format!(
        "responder_resources={responder_resources} initiator_depth={initiator_depth} retry_count={retries} \
         rnr_retry_count={rnr_retries} private_data={} bytes",
        private.len()
    )
}
