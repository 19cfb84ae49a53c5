//! A queue pair. Its requester sends what's posted, and its responder carries out what the peer's requester asks for
//! (specification, volume 1, chapter 9 and 10.3). The service says what's promised: everything once and in order (RC), in order
//! or not at all (UC), or nothing (UD).
//!
//! It's a machine without input and output. [`Qp::receive`] hands it a packet, [`Qp::post_send`] and [`Qp::post_receive`] work
//! requests, and [`Qp::tick`] the time, and each leaves [effects](crate::outside::Effect) behind. The two halves don't see each
//! other. Packets that ask for something go to the responder, packets that answer go to the requester, and each has PSNs of its
//! own. With every call, both get a [`View`] of the queue pair. A half that returns [`Broken`] moves the queue pair to ERR.

mod completer;
mod congested;
mod duplicates;
mod local;
mod messages;
mod reads;
mod requester;
mod responder;
mod responses;
mod segment;
mod state;
mod unreliable;
mod verdict;
mod view;

use crate::fact::Fact;
use roce::opcode::Operation;
pub use roce::opcode::Service;
pub use state::{mask, Attributes, State};

use crate::completion::Status;
use crate::congestion::notification::Notification;
use crate::datagram::Route;
use crate::errno::Errno;
use crate::outside::{AsyncEvent, Ctx, Effect};
use crate::packet::Packet;
use crate::time::Time;
use crate::work::{Local, ReceiveQueue, ReceiveRequest, SendRequest, Work};
use requester::Requester;
use responder::Responder;
use view::View;

/// How much a queue pair can hold (`ibv_qp_cap`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub send: u32,
    pub receive: u32,
    pub send_sge: u32,
    pub receive_sge: u32,
    /// How many bytes can be posted inline.
    pub inline: u32,
}

/// What a queue pair is made with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    pub number: u32,
    pub service: Service,
    /// The protection domain.
    pub pd: u32,
    pub limits: Limits,
    pub signal_all: bool,
    pub uses_shared: bool,
}

#[derive(Debug)]
pub struct Qp {
    settings: Settings,
    state: State,
    attributes: Attributes,
    receives: ReceiveQueue,
    requester: Requester,
    responder: Responder,
    notification: Notification,
}

/// The connection can't go on, so the queue pair moves to ERR.
#[derive(Debug)]
struct Broken;

impl Qp {
    /// The longest message in bytes. Whatever the MTU, its packets must fit into half of the circle of PSNs.
    pub const LONGEST: u32 = 1 << 30;

    pub fn new(settings: Settings) -> Qp {
        Qp {
            settings,
            state: State::Reset,
            attributes: Attributes { mtu: 1024, ..Attributes::default() },
            receives: ReceiveQueue::new(settings.limits.receive as usize, settings.pd),
            requester: Requester::default(),
            responder: Responder::default(),
            notification: Notification::default(),
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn view(&self) -> View {
        let Settings { number, service, pd, signal_all, .. } = self.settings;
        View { attributes: self.attributes, number, pd, service, signal_all, state: self.state }
    }

    /// Posts to the send queue. Nothing is sent yet; [`Qp::tick`] does that, just as a NIC waits for a doorbell.
    ///
    /// # Errors
    /// The `errno` that `ibv_post_send` returns.
    pub fn post_send(&mut self, request: SendRequest, ctx: &mut Ctx) -> Result<(), Errno> {
        let Limits { send, send_sge, inline, .. } = self.settings.limits;
        let fits = match &request.local {
            // The eight bytes of an ATOMIC WRITE are always part of the request.
            Local::Inline(bytes) if matches!(request.work, Work::AtomicWrite(_)) => bytes.len() == 8,
            Local::Inline(bytes) => bytes.len() <= inline as usize && !request.work.wants_response(),
            Local::SgList(sge) => sge.len() <= send_sge as usize,
        };
        let is_number = request.work.is_atomic() || matches!(request.work, Work::AtomicWrite(_));
        let wrong_length = request.length > Qp::LONGEST || (is_number && request.length != 8);
        if !fits || wrong_length || matches!(self.state, State::Reset | State::Init | State::Rtr) {
            return Err(Errno::EINVAL);
        }
        if self.requester.waiting() >= send as usize {
            return Err(Errno::ENOMEM);
        }
        if self.state == State::Err {
            self.view().complete_send(&request, Status::WrFlushErr, ctx);
        } else {
            self.requester.post(request);
        }
        Ok(())
    }

    /// Posts to the receive queue.
    ///
    /// # Errors
    /// The `errno` that `ibv_post_recv` returns.
    pub fn post_receive(&mut self, request: ReceiveRequest, ctx: &mut Ctx) -> Result<(), Errno> {
        let too_many = request.sge.len() > self.settings.limits.receive_sge as usize;
        if self.settings.uses_shared || too_many || self.state == State::Reset {
            return Err(Errno::EINVAL);
        }
        if self.state == State::Err {
            self.view().complete_unfilled(&request, Status::WrFlushErr, ctx);
        } else if !self.receives.post(request) {
            return Err(Errno::ENOMEM);
        }
        Ok(())
    }

    /// Posts something that isn't a valid request. When its turn comes it completes with an error, and the queue pair moves to
    /// ERR.
    pub fn refuse(&mut self, wr_id: u64, ctx: &mut Ctx) {
        let (local, work) = (Local::SgList(Vec::new()), Work::Unknown);
        let request = SendRequest {
            wr_id,
            work,
            local,
            length: 0,
            immediate: None,
            signaled: true,
            solicited: false,
            fence: true,
        };
        let _ = self.post_send(request, ctx);
    }

    /// How many sends aren't complete, and how many receives haven't begun to be filled.
    pub fn waiting(&self) -> (usize, usize) {
        (self.requester.waiting(), self.receives.len())
    }

    /// Takes a packet for this queue pair. In a state that takes none, packets are dropped without a word.
    pub fn receive(&mut self, route: Route, packet: Packet, ctx: &mut Ctx) {
        let (qp, row) = (self.view(), packet.row());
        let is_stranger = qp.service.is_connected() && qp.attributes.peer != Some(route.from);
        if row.operation == Operation::Congestion && !is_stranger {
            return self.slow_down(ctx);
        }
        if row.service != qp.service || is_stranger {
            let why = if is_stranger { "does not come from its peer" } else { "is of another service" };
            ctx.say(|| Fact::new("strange").with("qp", qp.number).with("packet", row.name).with("why", why));
            return;
        }
        self.tell_if_marked(&packet, ctx);
        let receives = &mut self.receives;
        let done = match self.state {
            State::Rts | State::Sqd if row.is_response() => self.requester.receive_response(packet, &qp, ctx),
            State::Rtr | State::Rts | State::Sqd if !row.is_response() => match qp.service {
                Service::Rc => self.responder.receive_request(packet, &qp, receives, ctx),
                Service::Uc => self.responder.receive_unanswered(packet, &qp, receives, ctx),
                _ => self.responder.receive_datagram(route, packet, &qp, receives, ctx),
            },
            _ => Ok(()),
        };
        self.settle(done, ctx);
    }

    /// Does whatever has become possible because time has passed or something was posted: timers, responses that had to wait,
    /// requests.
    pub fn tick(&mut self, ctx: &mut Ctx) {
        let done = self.requester.timers(&self.view(), ctx);
        self.settle(done, ctx);
        let done = self.responder.send_responses(&self.view(), ctx);
        self.settle(done, ctx);
        let done = self.requester.transmit(&self.view(), ctx);
        self.settle(done, ctx);
    }

    /// Settles what one of the halves has done.
    fn settle(&mut self, done: Result<(), Broken>, ctx: &mut Ctx) {
        if done.is_err() {
            self.enter(State::Err, ctx);
        }
        self.tell_if_drained(ctx);
    }

    /// When [`Qp::tick`] must be called again, at the latest.
    pub fn deadline(&self) -> Option<Time> {
        self.requester.deadline().into_iter().chain(self.responder.pace.waits_until).min()
    }

    /// Whether [`Qp::tick`] has more to do at once.
    pub fn is_busy(&self) -> bool {
        self.responder.is_busy() || self.requester.is_busy(&self.view())
    }

    /// A completion didn't fit into its queue, so nobody will learn any more how this queue pair's requests end.
    pub fn lost_completion(&mut self, ctx: &mut Ctx) {
        if !matches!(self.state, State::Reset | State::Err) {
            ctx.push(Effect::Raise(AsyncEvent::QpFatal));
            self.enter(State::Err, ctx);
        }
    }

    /// Every request that's left comes back untried. The cause of the error has completed already, so these are its echoes.
    fn flush(&mut self, ctx: &mut Ctx) {
        let (sends, receive) = (self.requester.take_all(), self.responder.stop());
        let mut receives: Vec<_> = receive.into_iter().collect();
        receives.extend(std::iter::from_fn(|| self.receives.take()));
        let (qp, sent, received) = (self.view(), sends.len(), receives.len());
        if sent + received > 0 {
            ctx.say(|| Fact::new("flushed").with("qp", qp.number).with("sends", sent).with("receives", received));
        }
        sends.iter().for_each(|request| qp.complete_send(request, Status::WrFlushErr, ctx));
        receives.iter().for_each(|request| qp.complete_unfilled(request, Status::WrFlushErr, ctx));
        if self.settings.uses_shared {
            ctx.push(Effect::Raise(AsyncEvent::LastWqeReached));
        }
    }
}

/// How many packets a message of this many bytes takes. A message without bytes takes one.
fn packets(length: u32, mtu: u32) -> u32 {
    length.div_ceil(mtu).max(1)
}
