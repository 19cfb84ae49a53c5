//! The receiver: lets all senders in, tells them to go, and counts whose messages come.

use std::os::fd::AsFd;

use common::{args::Args, cm::*, deadline::Deadline, wc::IBV_WC_RECV_RDMA_WITH_IMM, *};

use crate::{share::jain, ACK_TIMEOUT, CONN_PARAM, LEN, MESSAGES, MOST, QUEUE, RECEIVES};

/// It reports after each tenth of all messages.
const PARTS: usize = 10;

pub fn run(args: &Args) -> Result<()> {
    let (wanted, len) = (args.count() as usize, args.number(&LEN).unwrap_or(0));
    let messages = args.number(&MESSAGES).unwrap_or(0);
    if !(1..=MOST).contains(&wanted) || len == 0 || messages == 0 {
        return Err(Error::content("-n is 1 to 8, --len and --messages at least 1", "See `lesson-20 server --help`"));
    }
    let events = EventChannel::create()?;
    let _listener = listen(&events, args, wanted)?;
    let mut hall = gather(&events, wanted, len, messages)?;
    go(&hall)?;
    count(&events, &mut hall)?;
    report(&hall)
}

/// A sender, as the receiver sees it. Fields are dropped from the top.
struct Sender {
    id: CmId,
    qp: QueuePair,
    /// Where its messages go, one over the other.
    _room: MemoryRegion,
    came: usize,
    is_gone: bool,
}

/// All senders, and what they share.
struct Hall {
    senders: Vec<Sender>,
    /// Opened on the device that the first sender came through.
    desk: Option<(CompletionQueue, CompletionChannel, ProtectionDomain)>,
    len: usize,
    messages: usize,
    /// How many messages each had delivered when the first was done. Until then all of them compete.
    until_first: Option<Vec<usize>>,
}

fn listen(events: &EventChannel, args: &Args, wanted: usize) -> Result<CmId> {
    let _stage = stage("listen");
    address::try_each(&args.address, args.port, |address| {
        let id = events.create_id()?;
        id.bind_addr(address)?;
        id.listen(MOST as i32)?;
        say!("listening on {address}: the senders go when there are {wanted}");
        Ok(id)
    })
}

/// Lets in as many as we want, and waits until each is ready.
fn gather(events: &EventChannel, wanted: usize, len: usize, messages: usize) -> Result<Hall> {
    let _stage = stage("gather");
    let mut hall = Hall { senders: Vec::new(), desk: None, len, messages, until_first: None };
    let mut ready = 0;
    while ready < wanted {
        let deadline = Deadline::knock("a sender");
        deadline.wait_readable(&[events.as_fd()])?;
        let event = events.get_cm_event()?;
        let (kind, asked, id) = (event.event(), event.conn_param(), event.id());
        match kind {
            RDMA_CM_EVENT_CONNECT_REQUEST if hall.senders.len() < wanted => {
                event.ack();
                hall.admit(id, &asked)?;
            }
            RDMA_CM_EVENT_CONNECT_REQUEST => {
                event.ack();
                id.reject(b"all senders are here")?;
            }
            RDMA_CM_EVENT_ESTABLISHED => {
                event.ack();
                ready += 1;
            }
            _ => return Err(event.instead_of("a sender")),
        }
    }
    Ok(hall)
}

impl Hall {
    /// Room for one message, receives for many, and an answer that says where the room is.
    fn admit(&mut self, id: CmId, asked: &ConnParam) -> Result<()> {
        let _stage = stage("admit");
        if self.desk.is_none() {
            let context = id.verbs()?;
            let (pd, channel) = (context.alloc_pd()?, context.create_comp_channel()?);
            let cq = channel.create_cq(((QUEUE.max_send_wr + QUEUE.max_recv_wr) as usize * MOST) as i32)?;
            self.desk = Some((cq, channel, pd));
        }
        let Some((cq, _, pd)) = &self.desk else { return Ok(()) };
        let room = pd.reg_mr(self.len, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        let qp = id.create_qp(pd, &QpInitAttr::new(cq, QUEUE))?;
        // They need no memory, because a WRITE itself says where it goes.
        (0..RECEIVES).try_for_each(|_| qp.post_recv_pieces(&[]).map(|_| ()))?;
        id.set_ack_timeout(ACK_TIMEOUT)?;
        let private_data = [&Metadata::of(&room).encode()[..], &(self.messages as u32).to_be_bytes()].concat();
        id.accept(&ConnParam { private_data, ..CONN_PARAM }.clamped_to(asked))?;
        self.senders.push(Sender { id, qp, _room: room, came: 0, is_gone: false });
        Ok(())
    }

    fn came(&self) -> Vec<usize> {
        self.senders.iter().map(|sender| sender.came).collect()
    }

    /// Counts a message, and posts its receive again.
    fn take(&mut self, wc: WorkCompletion) -> Result<()> {
        let Some(sender) = self.senders.iter_mut().find(|sender| sender.qp.qp_num() == wc.qp_num) else {
            return Ok(());
        };
        // The connection has ended, so the receives that are left come back.
        if wc.is_flush() {
            return Ok(());
        }
        let wc = wc.into_success()?;
        if wc.opcode() != Some(IBV_WC_RECV_RDMA_WITH_IMM) {
            return Ok(());
        }
        sender.came += 1;
        sender.qp.post_recv_pieces(&[])?;
        let (is_first, all) = (sender.came == self.messages && self.until_first.is_none(), self.came());
        if is_first {
            self.until_first = Some(all.clone());
        }
        let (sum, whole) = (all.iter().sum::<usize>(), self.messages * all.len());
        if sum * PARTS / whole > (sum - 1) * PARTS / whole {
            say!("{sum} of {whole} messages: {all:?}, Jain's index {:.3}", jain(&all));
        }
        Ok(())
    }
}

/// All begin at the same time, or as close to it as one SEND after the other allows.
fn go(hall: &Hall) -> Result<()> {
    let _stage = stage("go");
    say!("all {} senders are here: go", hall.senders.len());
    hall.senders.iter().try_for_each(|sender| sender.qp.post_send(&SendWr::new(Operation::Send, &[])).map(|_| ()))
}

/// Goes on until all have hung up, whether they're done or their connection has failed, and nothing is left to count. We may
/// hear from the connection manager that a sender has gone before we've polled its last messages.
fn count(events: &EventChannel, hall: &mut Hall) -> Result<()> {
    let _stage = stage("count");
    while let Some((cq, channel, _)) = &hall.desk {
        // Arm, poll, and only then sleep. In any other order a message could fall between poll and sleep.
        cq.req_notify()?;
        let completions = cq.poll()?;
        if completions.is_empty() {
            if hall.senders.iter().all(|sender| sender.is_gone) {
                break;
            }
            Deadline::answer("messages").wait_readable(&[channel.as_fd(), events.as_fd()])?;
            channel.try_get_cq_event()?;
        }
        completions.into_iter().try_for_each(|wc| hall.take(wc))?;
        while let Some(event) = events.try_get_cm_event()? {
            let (kind, id) = (event.event(), event.id());
            event.ack();
            let sender = hall.senders.iter_mut().find(|sender| sender.id == id);
            if let (RDMA_CM_EVENT_DISCONNECTED, Some(sender)) = (kind, sender) {
                sender.is_gone = true;
                sender.id.disconnect()?;
            }
        }
    }
    Ok(())
}

/// Says who got how much through.
fn report(hall: &Hall) -> Result<()> {
    let _stage = stage("report");
    let came = hall.came();
    let fair = hall.until_first.as_ref().unwrap_or(&came);
    say!("when the first sender was done: {fair:?}, Jain's index {:.3}", jain(fair));
    let failed = came.iter().filter(|came| **came < hall.messages).count();
    say!("{} of {} bytes have come", came.iter().sum::<usize>() * hall.len, hall.messages * came.len() * hall.len);
    match failed {
        0 => say!("SUCCESS: all messages of {} senders are here", came.len()),
        failed => say!("{failed} of {} senders gave up: {came:?} messages", came.len()),
    }
    Ok(())
}
