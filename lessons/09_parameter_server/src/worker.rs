//! A worker. When it's told to go on, it READs the weights, finds out on its own examples which way to change them, and
//! WRITEs that into its slot in the server's memory, until it's told to stop.

use std::{os::fd::AsFd, time::Duration};

use common::{args::Args, cm::*, deadline::Deadline, *};

use crate::{layout::*, model::*, ACK_TIMEOUT, CONN_PARAM, CQE, PAUSE, QUEUE, RECEIVES, WORKER};

pub fn run(args: &Args) -> Result<()> {
    let events = EventChannel::create()?;
    let id = resolve(&events, args)?;
    let mut desk = Desk::create(&id, &events)?;
    let welcome = connect(&id, &desk, args)?;
    let examples = examples(welcome.worker);
    let mut deadline = Deadline::knock("the first round");
    while let Some(round) = desk.wait_for_word(&deadline)? {
        let (version, weights) = desk.read_weights(&welcome)?;
        let gradient = gradient(&examples, &weights);
        info!("round {round}: version {version} of the weights, loss {:.6}", gradient.loss);
        std::thread::sleep(Duration::from_millis(args.number(&PAUSE).unwrap_or(0) as u64));
        desk.write_gradient(&welcome, version, &gradient)?;
        desk.count_examples(&welcome)?;
        deadline = Deadline::answer("the server's next word");
    }
    disconnect(&id, desk)
}

/// As in lesson 06: which device leads there, and which path?
fn resolve(events: &EventChannel, args: &Args) -> Result<CmId> {
    let _stage = stage("resolve");
    let id = address::try_each(&args.address, args.port, |address| {
        let id = events.create_id()?;
        id.resolve_addr(address)?;
        events.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })?;
    id.set_ack_timeout(ACK_TIMEOUT)?;
    id.resolve_route()?;
    events.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    Ok(id)
}

/// Knocks. If we aren't let in, REJECTED carries the server's reason, and the error shows it.
fn connect(id: &CmId, desk: &Desk, args: &Args) -> Result<Welcome> {
    let _stage = stage("connect");
    let wanted = u8::try_from(args.number(&WORKER).unwrap_or(0)).unwrap_or(u8::MAX);
    id.connect(&ConnParam { private_data: hello(wanted), ..CONN_PARAM })?;
    let event = desk.events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    let welcome = Welcome::decode(event.private_data())?;
    event.ack();
    say!("connected as worker {}, which has {EXAMPLES} examples", welcome.worker);
    Ok(welcome)
}

/// What a worker works with. The fields are dropped from the top.
struct Desk<'a> {
    qp: QueuePair,
    /// The board as it was READ.
    copy: MemoryRegion,
    /// What goes into our slot.
    gradient: MemoryRegion,
    /// What the counter was before we added to it, which is an atomic's answer.
    before: MemoryRegion,
    cq: CompletionQueue,
    channel: CompletionChannel,
    events: &'a EventChannel,
}

impl<'a> Desk<'a> {
    fn create(id: &CmId, events: &'a EventChannel) -> Result<Self> {
        let _stage = stage("create_resources");
        let context = id.verbs()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = channel.create_cq(CQE)?;
        let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, QUEUE))?;
        let copy = pd.reg_mr(BOARD_LEN, Access::LOCAL_WRITE)?;
        let gradient = pd.reg_mr(SLOT_LEN, Access::LOCAL_READ)?;
        let before = pd.reg_mr(8, Access::LOCAL_WRITE)?;
        // Receives without memory, because a word has no bytes.
        (0..RECEIVES).try_for_each(|_| qp.post_recv_pieces(&[]).map(|_| ()))?;
        Ok(Self { qp, copy, gradient, before, cq, channel, events })
    }

    /// Sleeps until the server says which round is next, or that there's none.
    fn wait_for_word(&mut self, deadline: &Deadline) -> Result<Option<u32>> {
        let _stage = stage("wait_for_word");
        let word = loop {
            // Arm, poll, sleep. In another order a word could fall into the gap between poll and sleep.
            self.cq.req_notify()?;
            if let Some(wc) = self.cq.poll_up_to(1)?.pop() {
                break wc.into_success()?.imm_data();
            }
            let ready = deadline.wait_readable(&[self.channel.as_fd(), self.events.as_fd()])?;
            if self.channel.try_get_cq_event()?.is_none() && ready == 1 {
                return Err(self.events.get_cm_event()?.instead_of("the server's word"));
            }
        };
        // Post the next receive before we answer, so that the next word finds it.
        self.qp.post_recv_pieces(&[])?;
        Ok(word.filter(|word| *word != STOP).map(|word| round_and_worker(word).0))
    }

    /// READs the board, and READs it again if the server was writing it at that moment.
    fn read_weights(&self, welcome: &Welcome) -> Result<(u32, Weights)> {
        let _stage = stage("read_weights");
        let deadline = Deadline::answer("a board whose seal fits");
        loop {
            let read = self.qp.post_send(&SendWr::rdma_read(&self.copy, 0..BOARD_LEN, &welcome.board))?;
            self.wait_for(read, "the READ of the board")?;
            if let Some(found) = read_board(&self.copy.read(0..BOARD_LEN)?) {
                return Ok(found);
            }
            info!("the copy is torn: READ again");
            deadline.left()?;
        }
    }

    /// One-sided, and yet the server's program hears of it, because the immediate data uses up a receive there.
    fn write_gradient(&mut self, welcome: &Welcome, version: u32, gradient: &Gradient) -> Result<()> {
        let _stage = stage("write_gradient");
        self.gradient.write(0, &slot(gradient))?;
        let what = Operation::WriteImm(welcome.slot, immediate(version, welcome.worker));
        // Unsignaled, because the request that follows is signaled, and its completion stands for both.
        self.qp.post_send(&SendWr::new(what, &[(&self.gradient, 0..SLOT_LEN)]).unsignaled()).map(|_| ())
    }

    /// The server's device does the adding, whoever else is adding at this moment, and answers with what was there before.
    fn count_examples(&self, welcome: &Welcome) -> Result<()> {
        let _stage = stage("count_examples");
        let what = Operation::FetchAdd(welcome.counter, EXAMPLES as u64);
        let add = self.qp.post_send(&SendWr::new(what, &[(&self.before, 0..8)]))?;
        self.wait_for(add, "the FETCH_ADD of our examples")?;
        info!("before us, all workers together had looked at {} examples", self.before.read_u64(0)?);
        Ok(())
    }

    fn wait_for(&self, wr_id: u64, awaited: &str) -> Result<()> {
        match self.cq.wait_for_or_cm_event(wr_id, self.events, awaited)? {
            Woken::Completion(_) => Ok(()),
            Woken::CmEvent => Err(self.events.get_cm_event()?.instead_of(awaited)),
        }
    }
}

/// The worker goes first, and the server's answer is the end.
fn disconnect(id: &CmId, desk: Desk) -> Result<()> {
    let _stage = stage("disconnect");
    id.disconnect()?;
    desk.events.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    drop(desk);
    say!("told to stop; client clean-up is complete");
    Ok(())
}
