//! One message there, one back, again and again: how long does it take until the other *program* has something? perftest
//! measures the latency of SEND and WRITE in this way, and tells half of there and back. This is `common` doing the same.
//!
//! Nobody tells a program that a plain WRITE has come. So both look into their memory until the last 8 bytes change. The
//! standard does not promise that they come last. SoftRoCE (Linux 6.1) and the device in user space place a message's bytes from
//! first to last; a NIC need not, and newer ones do not always: ibv_query_qp_data_in_order(3) asks one. perftest does as we do.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use common::args::{Args, Opt, Side};
use common::{cm::*, *};

/// How lesson 10 waits is what is measured here, too.
#[allow(dead_code)] // It counts more than is asked here.
#[path = "../../../../lessons/10_going_fast/src/wait.rs"]
mod wait;

use wait::{Waiter, POLL, SLEEP};

const OP: Opt = Opt::choice(Side::Both, "op", &["write", "send"], "What goes there and back");
const WAIT: Opt = Opt::choice(Side::Both, "wait", &["poll", "sleep"], "How to wait for completions");
const TURNS: Opt = Opt::number_or(Side::Both, "turns", "1000", "How often");
const SIGNAL: Opt = Opt::number_or(Side::Both, "signal-every", "1", "One request in so many is signaled");

/// Bytes of a message, which go inline.
const SIZE: usize = 64;
/// After this many looks into the memory, is the peer still there? A look costs next to nothing, the question a system call.
const PATIENCE: u64 = 1 << 16;

/// As in lesson 10: 4.096 µs × 2^19 = 2.1 s.
const ACK_TIMEOUT: u8 = 19;
const CONN_PARAM: ConnParam = ConnParam {
    private_data: Vec::new(),
    responder_resources: 1,
    initiator_depth: 1,
    retry_count: 6,
    rnr_retry_count: 7,
};

struct Desk {
    qp: QueuePair,
    cq: CompletionQueue,
    channel: CompletionChannel,
    inbox: MemoryRegion,
    events: EventChannel,
}

impl Desk {
    /// With one receive posted more than messages can come: the next one finds one, whoever is faster. A third is posted before
    /// the first is used.
    fn lay(id: &CmId, events: EventChannel, args: &Args) -> Result<Self> {
        let context = id.verbs()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let sends = args.number(&SIGNAL).unwrap_or(1) as u32 + 1;
        let cq = channel.create_cq(sends as i32 + 3)?;
        let cap = QpCap { max_send_wr: sends, max_recv_wr: 3, max_inline_data: SIZE as u32, ..QpCap::SMALL };
        let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, cap))?;
        let inbox = pd.reg_mr(SIZE, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        qp.post_recv(&inbox, 0..SIZE)?;
        qp.post_recv(&inbox, 0..SIZE)?;
        Ok(Self { qp, cq, channel, inbox, events })
    }
}

/// One side's part of the game.
struct Game<'a> {
    desk: &'a Desk,
    operation: Operation,
    waiter: Waiter<'a>,
    outbox: [u8; SIZE],
    /// How long the calls of post_send took.
    posts: Vec<Duration>,
    /// Nobody tells of a plain WRITE.
    polls_memory: bool,
    count: u64,
    signal_every: u64,
}

impl<'a> Game<'a> {
    fn new(desk: &'a Desk, peer: Metadata, args: &Args) -> Self {
        let polls_memory = args.text(&OP) == "write";
        let operation = if polls_memory { Operation::Write(peer) } else { Operation::Send };
        let waiter = Waiter::new(desk, if args.text(&WAIT) == "poll" { POLL } else { SLEEP });
        let number = |option| args.number(option).unwrap_or(1).max(1) as u64;
        let (count, signal_every) = (number(&TURNS), number(&SIGNAL));
        let posts = Vec::with_capacity(count as usize);
        Self { desk, operation, waiter, outbox: [0; SIZE], posts, polls_memory, count, signal_every }
    }

    /// The client begins. Half of each turn is a latency.
    fn serve(&mut self) -> Result<Vec<Duration>> {
        let mut latencies = Vec::with_capacity(self.count as usize);
        let mut before = Instant::now();
        for turn in 1..=self.count {
            self.hit(turn)?;
            self.wait(turn, self.is_signaled(turn))?;
            let now = Instant::now();
            latencies.push((now - before) / 2);
            before = now;
        }
        Ok(latencies)
    }

    fn answer(&mut self) -> Result<()> {
        for turn in 1..=self.count {
            self.wait(turn, turn > 1 && self.is_signaled(turn - 1))?;
            self.hit(turn)?;
        }
        // Our last answer is done: only then may its memory go.
        self.waiter.next().map(drop)
    }

    /// The last request always yields a completion: it stands for those before it.
    fn is_signaled(&self, turn: u64) -> bool {
        turn % self.signal_every == 0 || turn == self.count
    }

    /// What must be done besides comes after the post: by then the message is on its way.
    fn hit(&mut self, turn: u64) -> Result<()> {
        if self.polls_memory {
            self.outbox[SIZE - 8..].copy_from_slice(&turn.to_ne_bytes());
        }
        let wr = SendWr::inline(self.operation, &self.outbox);
        let wr = if self.is_signaled(turn) { wr } else { wr.unsignaled() };
        let before = Instant::now();
        self.desk.qp.post_send(&wr)?;
        self.posts.push(before.elapsed());
        if self.polls_memory {
            return Ok(());
        }
        // In place of the one that the other's next message takes.
        self.desk.qp.post_recv(&self.desk.inbox, 0..SIZE).map(drop)
    }

    /// The other's message, and the completion of our own last one, if that was signaled.
    fn wait(&mut self, turn: u64, own: bool) -> Result<()> {
        // Where both come as completions, in whatever order. Else our own comes first: its ACK went out before the answer.
        for _ in 0..u8::from(own) + u8::from(!self.polls_memory) {
            self.waiter.next()?;
        }
        let (mut looks, mut deadline) = (0u64, None);
        while self.polls_memory && self.desk.inbox.read_u64(SIZE - 8)? != turn {
            looks += 1;
            if looks % PATIENCE == 0 && self.waiter.has_cm_event(&mut deadline)? {
                return Err(self.desk.events.get_cm_event()?.instead_of("the other's message"));
            }
        }
        Ok(())
    }
}

fn client(args: &Args) -> Result<()> {
    let events = EventChannel::create()?;
    let id = address::try_each(&args.address, args.port, |address| {
        let id = events.create_id()?;
        id.resolve_addr(address)?;
        events.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
        Ok(id)
    })?;
    id.set_ack_timeout(ACK_TIMEOUT)?;
    id.resolve_route()?;
    events.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    let desk = Desk::lay(&id, events, args)?;
    id.connect(&ConnParam { private_data: Metadata::of(&desk.inbox).encode().to_vec(), ..CONN_PARAM })?;
    let event = desk.events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    let peer = Metadata::decode(event.private_data())?;
    event.ack();
    let mut game = Game::new(&desk, peer, args);
    let latencies = game.serve()?;
    let (count, median, post) = (latencies.len(), median_us(latencies), median_us(game.posts));
    say!("{}: count={count} median_us={median:.3} post_us={post:.3}", args.text(&OP));
    id.disconnect()?;
    desk.events.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    Ok(())
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default().as_nanos() as f64 / 1e3
}

fn server(args: &Args) -> Result<()> {
    let listening = EventChannel::create()?;
    let _listener = address::try_each(&args.address, args.port, |address| {
        let id = listening.create_id()?;
        id.bind_addr(address)?;
        id.listen(8)?;
        Ok(id)
    })?;
    let mut clients = args.clients();
    while clients.more() {
        let event = listening.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?;
        let asked = ConnParam { private_data: event.private_data().to_vec(), ..event.conn_param() };
        let id = event.id();
        event.ack();
        clients.note(id.peer_name(), play(&id, &asked, args));
    }
    clients.result()
}

fn play(id: &CmId, asked: &ConnParam, args: &Args) -> Result<()> {
    let events = EventChannel::create()?;
    id.migrate_id(&events)?;
    let desk = Desk::lay(id, events, args)?;
    let peer = Metadata::decode(&asked.private_data)?;
    id.set_ack_timeout(ACK_TIMEOUT)?;
    let private_data = Metadata::of(&desk.inbox).encode().to_vec();
    id.accept(&ConnParam { private_data, ..CONN_PARAM.clamped_to(asked) })?;
    desk.events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    Game::new(&desk, peer, args).answer()?;
    desk.events.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    id.disconnect()
}

fn main() -> ExitCode {
    let about = "A message there, a message back: half of a turn is a latency, as perftest has it";
    common::args::run("pingpong", about, &[OP, WAIT, TURNS, SIGNAL], server, client)
}
