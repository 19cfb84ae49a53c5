//! A client: PUTs by a request, GETs by READs of the server's table, and a lock that is swapped.

use std::{collections::HashMap, thread::sleep, time::Duration};

use common::{args::Args, cm::*, deadline::Deadline, *};

use crate::plain::{layout::*, terms::*};
use crate::record::Record;

/// How long a client waits before it looks again at a record that's being written, or at a lock that's taken.
pub const AGAIN: Duration = Duration::from_millis(5);

/// What a client works with. Fields are dropped from the top.
pub struct Desk {
    qp: QueuePair,
    /// READs put their bytes here, and SENDs take theirs from here. There's only one request at a time.
    copy: MemoryRegion,
    answer: MemoryRegion,
    cq: CompletionQueue,
    channel: CompletionChannel,
    id: CmId,
    events: EventChannel,
    pub welcome: Welcome,
    /// Where each record was when we last looked.
    places: HashMap<Key, Place>,
    /// How many READs we've made.
    pub reads: u64,
}

impl Desk {
    pub fn create(args: &Args) -> Result<Self> {
        let events = EventChannel::create()?;
        let id = resolve(&events, args)?;
        let _stage = stage("create_resources");
        let context = id.verbs()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = channel.create_cq((QUEUE.max_send_wr + QUEUE.max_recv_wr) as i32)?;
        let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, QUEUE))?;
        let copy = pd.reg_mr(MESSAGE_LEN, Access::LOCAL_WRITE)?;
        let answer = pd.reg_mr(MESSAGE_LEN, Access::LOCAL_WRITE)?;
        let welcome = Welcome { table: Metadata::REFUSAL, lock: Metadata::REFUSAL, number: 0 };
        Ok(Self { qp, copy, answer, cq, channel, id, events, welcome, places: HashMap::new(), reads: 0 })
    }

    pub fn connect(&mut self) -> Result<()> {
        let _stage = stage("connect");
        self.id.connect(&ConnParam { private_data: HELLO.to_vec(), ..CONN_PARAM })?;
        let event = self.events.wait_for(RDMA_CM_EVENT_ESTABLISHED)?;
        self.welcome = Welcome::decode(event.private_data())?;
        event.ack();
        say!("connected as client {}", self.welcome.number);
        Ok(())
    }

    /// Returns the record's version. By then the record is in the server's file and in its table.
    pub fn put(&mut self, key: &Key, value: &str) -> Result<u32> {
        let _stage = stage("put");
        if value.len() > VALUE_MAX {
            return Err(Error::content("the value is too long", "Take at most 1000 bytes"));
        }
        let answer = self.request(&[&[PUT], &key[..], value.as_bytes()].concat())?;
        let refused = || Error::content("the server has no room for it", "Store less");
        answer.map(|record| record.version).ok_or_else(refused)
    }

    /// GET by a request.
    pub fn ask(&mut self, key: &Key) -> Result<Option<Record>> {
        let _stage = stage("ask");
        self.request(&[&[ASK], &key[..]].concat())
    }

    fn request(&mut self, bytes: &[u8]) -> Result<Option<Record>> {
        // Posted before the request goes out, because the answer will need it.
        self.qp.post_recv(&self.answer, 0..MESSAGE_LEN)?;
        self.copy.write(0, bytes)?;
        self.qp.post_send(&SendWr::send(&self.copy, 0..bytes.len()))?;
        // Two completions come, in either order: our SEND's, which gives us its memory back, and the answer's.
        let both = [self.wait("the request, and its answer")?, self.wait("the request, and its answer")?];
        let len = both.iter().find_map(WorkCompletion::byte_len).unwrap_or(0);
        let answer = self.answer.read(0..len)?;
        Ok(answer.strip_prefix(&[1]).and_then(Record::decode))
    }

    /// GET by READs. One is enough if we know where the record is; if not, one more finds its bucket. The server's program sleeps.
    pub fn get(&mut self, key: &Key) -> Result<Option<Record>> {
        let deadline = Deadline::answer("a record that is whole");
        loop {
            if !self.places.contains_key(key) {
                self.read_bucket(key)?;
            }
            let Some(place) = self.places.get(key).cloned() else { return Ok(None) };
            let bytes = self.read_record(&place)?;
            match Record::decode(&bytes) {
                Some(record) if record.key == *key => return Ok(Some(record)),
                None if !bytes.starts_with(&[0; 8]) => {
                    info!("the copy of {} is torn: READ again", name(key));
                    sleep(AGAIN);
                }
                _ => {
                    info!("{} is not there any more: look for it anew", name(key));
                    self.places.remove(key);
                }
            }
            deadline.left()?;
        }
    }

    /// Looks up where the record is.
    fn read_bucket(&mut self, key: &Key) -> Result<()> {
        let _stage = stage("read_bucket");
        for bucket in buckets(key) {
            if let Some((_, place)) = slot_of(key, &self.read(&bucket)?) {
                self.places.extend(place.map(|place| (*key, place)));
                break;
            }
        }
        Ok(())
    }

    fn read_record(&mut self, place: &Place) -> Result<Vec<u8>> {
        let _stage = stage("read_record");
        self.read(place)
    }

    fn read(&mut self, place: &Place) -> Result<Vec<u8>> {
        let from = self.welcome.table.slice(place.start as u32..place.end as u32)?;
        self.qp.post_send(&SendWr::rdma_read(&self.copy, 0..place.len(), &from))?;
        self.reads += 1;
        self.wait("the READ")?;
        self.copy.read(0..place.len())
    }

    /// Takes the lock as soon as it's nobody's.
    pub fn lock(&mut self) -> Result<()> {
        let _stage = stage("lock");
        let (deadline, mine) = (Deadline::answer("the lock"), self.welcome.number.into());
        loop {
            match self.swap(0, mine)? {
                0 => break,
                holder => info!("client {holder} has the lock: try again"),
            }
            sleep(AGAIN);
            deadline.left()?;
        }
        say!("client {mine} has the lock");
        Ok(())
    }

    pub fn unlock(&mut self) -> Result<()> {
        let _stage = stage("unlock");
        let mine = self.welcome.number.into();
        let holder = self.swap(mine, 0)?;
        if holder != mine {
            return Err(Error::content(format!("the lock is not ours: {holder} is in it"), "Lock it first"));
        }
        say!("client {mine} gives the lock back");
        Ok(())
    }

    /// The server's device compares and swaps in a single step, and answers with what was there before.
    fn swap(&mut self, compare: u64, swap: u64) -> Result<u64> {
        let what = Operation::CompareSwap { at: self.welcome.lock, compare, swap };
        self.qp.post_send(&SendWr::new(what, &[(&self.copy, 0..8)]))?;
        self.wait("the swap of the lock")?;
        self.copy.read_u64(0)
    }

    /// Waits for the next completion, or for the server's goodbye, after which there won't be any.
    fn wait(&self, awaited: &str) -> Result<WorkCompletion> {
        loop {
            // Arm, poll, and only then sleep. In any other order a completion could fall between poll and sleep.
            self.cq.req_notify()?;
            if let Some(wc) = self.cq.poll_one()? {
                return wc.into_success();
            }
            if let Woken::CmEvent = self.channel.get_cq_event_or_cm_event(&self.events, awaited)? {
                return Err(self.events.get_cm_event()?.instead_of(awaited));
            }
        }
    }

    /// The client says goodbye first, and the server's answer is the end.
    pub fn disconnect(self) -> Result<()> {
        let _stage = stage("disconnect");
        self.id.disconnect()?;
        self.events.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
        drop(self);
        say!("client clean-up is complete");
        Ok(())
    }
}

/// As in lesson 06, we ask which device leads there, and by which path.
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
