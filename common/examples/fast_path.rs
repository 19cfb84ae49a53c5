//! For the tests: how often a request allocates memory, and whether its log lines are formatted, while nobody reads the log.
//!
//! ```text
//! fast_path server      fast_path client ADDRESS
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use common::{args::PORT, cm::*, deadline::Deadline, *};

/// Each kind of request is made so often before it counts, so that all lists are as long as they get; and so often then.
const WARM: usize = 50;
const COUNTED: usize = 200;
const BATCH: usize = 8;
const RECEIVES: usize = 16;
/// The server's program is not running for so long: then many completions wait for it, and the client for a receive.
const LATE: Duration = Duration::from_millis(100);
const CAP: QpCap = QpCap { max_send_wr: 16, max_recv_wr: 16, max_inline_data: 64, ..QpCap::SMALL };

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does it all; this one counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Says it if somebody formats it.
struct Formatted<'a>(&'a AtomicUsize);

impl fmt::Display for Formatted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fetch_add(1, Relaxed);
        f.write_str("formatted")
    }
}

/// The log is never started: no tag is on.
fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server"] => server(),
        ["client", address] => client(address),
        _ => Err(Error::content("server or client ADDRESS", "Read the head of fast_path.rs")),
    }
}

struct Desk {
    qp: QueuePair,
    region: MemoryRegion,
    cq: CompletionQueue,
    channel: CompletionChannel,
}

fn desk(id: &CmId) -> Result<Desk> {
    let context = id.verbs()?;
    let pd = context.alloc_pd()?;
    let channel = context.create_comp_channel()?;
    let cq = channel.create_cq(64)?;
    let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, CAP))?;
    let open = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    let region = pd.reg_mr(64, Access::LOCAL_WRITE | open)?;
    Ok(Desk { qp, region, cq, channel })
}

const READS: ConnParam = ConnParam {
    private_data: Vec::new(),
    responder_resources: 4,
    initiator_depth: 4,
    retry_count: 7,
    rnr_retry_count: 7,
};

/// Receives, and counts what that allocates, until the client hangs up.
fn server() -> Result<()> {
    let events = EventChannel::create()?;
    let listener = events.create_id()?;
    listener.bind_addr(SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)))?;
    listener.listen(1)?;
    let event = events.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?;
    let (id, asked) = (event.id(), event.conn_param());
    event.ack();
    drop(listener);
    let desk = desk(&id)?;
    (0..RECEIVES).try_for_each(|_| desk.qp.post_recv(&desk.region, 0..64).map(|_| ()))?;
    id.accept(&ConnParam { private_data: Metadata::of(&desk.region).encode().to_vec(), ..READS.clamped_to(&asked) })?;
    events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    let mut before = 0;
    for taken in 0..WARM + COUNTED {
        if taken == WARM {
            before = ALLOCATIONS.load(Relaxed);
            std::thread::sleep(LATE);
        }
        // On a busy machine the client waits for a receive more than once, 0.66 s each time.
        let deadline = Deadline::answer("the client's message");
        while desk.cq.poll_one()?.map(WorkCompletion::into_success).transpose()?.is_none() {
            deadline.left()?;
        }
        desk.qp.post_recv(&desk.region, 0..64)?;
    }
    verdict("receive", ALLOCATIONS.load(Relaxed) - before)?;
    events.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    id.disconnect()
}

fn client(address: &str) -> Result<()> {
    let events = EventChannel::create()?;
    let id = events.create_id()?;
    id.resolve_addr(address::resolve(address, PORT)?[0])?;
    events.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
    id.resolve_route()?;
    events.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
    let desk = desk(&id)?;
    id.connect(&READS)?;
    let event = events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
    let peer = Metadata::decode(event.private_data())?;
    event.ack();
    let (whole, first) = ([(&desk.region, 0..64)], [(&desk.region, 0..8)]);
    let write = || SendWr::new(Operation::Write(peer), &whole);
    let one = |wr: SendWr| desk.qp.post_send(&wr).map(|_| ());
    count("WRITE", &desk, || one(write()))?;
    count("WRITE inline", &desk, || one(SendWr::inline(Operation::Write(peer), &[1; 64])))?;
    count("READ", &desk, || one(SendWr::new(Operation::Read(peer), &whole)))?;
    count("FETCH_ADD", &desk, || one(SendWr::new(Operation::FetchAdd(peer, 1), &first)))?;
    count("SEND", &desk, || one(SendWr::new(Operation::Send, &whole)))?;
    let batch: Vec<SendWr> = (1..BATCH).map(|_| write().unsignaled()).chain([write()]).collect();
    count("a batch", &desk, || desk.qp.post_send_all(&batch).1)?;
    // As a program sleeps: arm, look, sleep.
    count("WRITE, sleeping", &desk, || {
        desk.cq.req_notify()?;
        one(write())?;
        let asleep = Deadline::answer("a completion event");
        asleep.wait_readable(&[desk.channel.as_fd(), events.as_fd()])?;
        desk.channel.try_get_cq_event().map(|_| ())
    })?;
    let formatted = AtomicUsize::new(0);
    info!("{}", Formatted(&formatted));
    data!("{}", Formatted(&formatted));
    verdict("formatted", formatted.load(Relaxed))?;
    id.disconnect()?;
    events.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
    Ok(())
}

/// Makes the request again and again, each until it is done.
fn count(what: &str, desk: &Desk, mut request: impl FnMut() -> Result<()>) -> Result<()> {
    let mut before = 0;
    for at in 0..WARM + COUNTED {
        if at == WARM {
            before = ALLOCATIONS.load(Relaxed);
        }
        let deadline = Deadline::answer("a completion");
        request()?;
        while desk.cq.poll_one()?.map(WorkCompletion::into_success).transpose()?.is_none() {
            deadline.left()?;
        }
    }
    verdict(what, ALLOCATIONS.load(Relaxed) - before)
}

fn verdict(what: &str, found: usize) -> Result<()> {
    say!("{what}: {found}");
    match found {
        0 => Ok(()),
        _ => {
            Err(Error::content(format!("{what}: {found} where none is wanted"), "Something new allocates, or formats"))
        }
    }
}
