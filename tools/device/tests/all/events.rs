//! Who waits for an event of the connection manager, and how that ends: with the event, with a signal, with the channel. The
//! program is this test itself, started once more; it writes commands to rdma_cm as librdmacm does.

use crate::machine::{acts, again_as, Node, ACTS};
use crate::programs::support::programs;
use bytemuck::{bytes_of, bytes_of_mut, Pod, Zeroable};
use device::face::ucma::abi::{command::*, *};
use device::face::ucma::{Done, Ids};
use device::machine::Asked;
use device::node::Net;
use nic::cm::{Cm, CmEffect, Space};
use nic::time::Time;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{fcntl_setfl, OFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

const ADDRESS: &str = "127.0.0.9";
const PEER: &str = "127.0.0.8";
const PORT: u16 = 7000;

fn open() -> File {
    OpenOptions::new().read(true).write(true).open("/dev/infiniband/rdma_cm").unwrap()
}

/// Writes a command. Its answer, if it has one, is where the command says.
fn command<T: Pod>(file: &File, cmd: u32, command: T) -> io::Result<()> {
    let header = Header { cmd, input: size_of::<T>() as u16, out: size_of::<EventResp>() as u16 };
    let bytes = [bytes_of(&header), bytes_of(&command)].concat();
    (&*file).write(&bytes).map(|length| assert_eq!(length, bytes.len()))
}

/// The address of what an answer is to be written to.
fn room<T: Pod>(answer: &mut T) -> u64 {
    bytes_of_mut(answer).as_mut_ptr() as u64
}

fn get_event(file: &File) -> io::Result<EventResp> {
    let mut event = Box::new(EventResp::zeroed());
    command(file, GET_EVENT, GetEvent { response: room(&mut *event) })?;
    Ok(*std::hint::black_box(event))
}

/// An id that listens.
fn listen(file: &File) -> u32 {
    let mut id = Box::new(0);
    let create = CreateId { uid: 1, response: room(&mut *id), ps: Space::Tcp as u16, ..CreateId::zeroed() };
    command(file, CREATE_ID, create).unwrap();
    let id = *std::hint::black_box(id);
    let to = SocketAddr::from(([0, 0, 0, 0], PORT));
    command(file, BIND_IP, BindIp { addr: Some(to).into(), id, ..BindIp::zeroed() }).unwrap();
    command(file, LISTEN, Listen { id, backlog: 8 }).unwrap();
    id
}

fn is_readable(file: &File) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&now)).unwrap() == 1
}

/// The node of a program. Once it listens, somebody knocks whenever `is_time` says so, which is told how many commands it has written.
fn serve(test: &str, mut is_time: impl FnMut(&Ids, usize) -> bool) {
    let mut node = Node::start(again_as(&format!("events::{test}")), ADDRESS);
    let address = ADDRESS.parse().unwrap();
    let (mut ids, mut cm, mut peer) =
        (Ids::new(address, Default::default(), false), Cm::new(address), Cm::new(PEER.parse().unwrap()));
    let (mut lots, mut listens, mut written) = (1_u64, false, 0);
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "the program does not end");
        lots = lots.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut out = Vec::new();
        let mut net = Net { cm: &mut cm, now: Time::START, out: &mut out, random: lots };
        match node.machine.asked() {
            Some(Asked::Written { call, asker, .. }) => {
                let machine = &mut node.machine;
                let done = ids.command(&mut net, &asker, |fd| machine.file_of(&call, fd as i32));
                written += 1;
                listens |= matches!(done, Ok(Done::Listens));
                ids.answer(&mut cm, machine, call, asker, done);
            }
            Some(Asked::Closed { file, .. }) => ids.closed(&mut net, file),
            Some(Asked::Opened { .. } | Asked::Sleeps { .. } | Asked::WrittenNowhere) => {}
            Some(Asked::Closes { .. } | Asked::ClosesOther { .. }) => {}
            Some(Asked::Maps { call, .. }) => call.pass(),
            Some(Asked::Deserted) => break,
            None => {
                ids.tick();
                if listens && is_time(&ids, written) {
                    knock(&mut peer, &mut net);
                }
                let wait = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
                let _ = poll(&mut [PollFd::new(&node.machine, PollFlags::IN)], Some(&wait));
            }
        }
        for effect in std::mem::take(&mut out) {
            if let CmEffect::Event(event) = effect {
                ids.deliver(&mut Net { cm: &mut cm, now: Time::START, out: &mut out, random: lots }, event);
            }
        }
        ids.settle(&mut cm, &mut node.machine);
    }
    print!("{}", node.end());
}

/// A REQ of the peer's.
fn knock(peer: &mut Cm, net: &mut Net) {
    let mut out = Vec::new();
    let local = peer.open(None, ADDRESS.parse().unwrap(), net.random);
    peer.connect(local, PORT, 4711, &[], net.now, &mut out);
    for effect in out {
        if let CmEffect::Send(_, mad) = effect {
            let payload = mad.packet(Default::default()).payload;
            net.cm.receive(PEER.parse().unwrap(), &payload, net.random, net.now, net.out);
        }
    }
}

#[test]
fn a_call_waits_for_its_event() {
    if acts() {
        let file = open();
        let id = listen(&file);
        let event = get_event(&file).unwrap();
        assert!(event.event == 4 && event.uid == 1 && event.id != id && !is_readable(&file));
        fcntl_setfl(&file, OFlags::RDWR | OFlags::NONBLOCK).unwrap();
        assert_eq!(get_event(&file).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        return;
    }
    serve("a_call_waits_for_its_event", |ids, _| ids.is_waited_for());
}

#[test]
fn events_that_nobody_waits_for_make_the_channel_readable() {
    if acts() {
        let file = open();
        let listener = listen(&file);
        while !is_readable(&file) {
            thread::sleep(Duration::from_millis(1));
        }
        // Its events go along to another channel.
        let other = open();
        let mut reported = Box::new(7);
        let mut migrate = MigrateId { response: room(&mut *reported), id: listener, fd: 4711 };
        assert_eq!(command(&other, MIGRATE_ID, migrate).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        migrate.fd = file.as_raw_fd() as u32;
        command(&other, MIGRATE_ID, migrate).unwrap();
        assert!(!is_readable(&file) && is_readable(&other) && *std::hint::black_box(reported) == 0);
        get_event(&other).unwrap();
        assert!(!is_readable(&other));
        return;
    }
    let mut times = 0..1;
    serve("events_that_nobody_waits_for_make_the_channel_readable", |_, _| times.next().is_some());
}

static SIGNALS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, SeqCst);
}

/// Sends this thread signals, until it has what it waits for. Gives that, and how many have come.
fn under_signals<T>(flags: libc::c_int, wait: impl FnOnce() -> T) -> (T, usize) {
    // SAFETY: the handler only counts.
    let this = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (count as extern "C" fn(libc::c_int) as usize, flags);
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
        libc::pthread_self()
    };
    let is_done = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(SeqCst) {
                thread::sleep(Duration::from_millis(10));
                // SAFETY: the thread waits for this one's end.
                unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
            }
        });
        let result = wait();
        is_done.store(true, SeqCst);
        result
    });
    (result, SIGNALS.load(SeqCst))
}

#[test]
fn a_signal_interrupts_who_waits() {
    if acts() {
        let file = open();
        let (event, signals) = under_signals(0, || get_event(&file));
        assert!(event.unwrap_err().kind() == io::ErrorKind::Interrupted && signals > 0);
        return;
    }
    serve("a_signal_interrupts_who_waits", |_, _| false);
}

/// The whole device, and another thread of the program that leaves it no rest.
#[test]
fn a_signal_interrupts_who_waits_while_others_work() {
    const NAME: &str = "events::a_signal_interrupts_who_waits_while_others_work";
    if acts() {
        let (file, other, is_done) = (open(), open(), AtomicBool::new(false));
        listen(&file);
        let ((event, signals), commands) = thread::scope(|scope| {
            let works = scope.spawn(|| {
                let not_done = (0..).take_while(|_| !is_done.load(SeqCst));
                not_done.filter(|_| command(&other, LISTEN, Listen { id: u32::MAX, backlog: 0 }).is_err()).count()
            });
            let result = under_signals(0, || get_event(&file));
            is_done.store(true, SeqCst);
            (result, works.join().unwrap())
        });
        assert!(event.unwrap_err().kind() == io::ErrorKind::Interrupted && signals > 0);
        // Many seconds' worth would be a thread that was not looked after.
        assert!(commands < 100_000, "{commands}");
        return;
    }
    let program = std::env::current_exe().unwrap();
    programs(&format!("{ACTS}=1 {} --exact {NAME} --nocapture --quiet", program.display()), "true").exits(0, 0);
}

#[test]
fn a_handler_that_restarts_calls_costs_no_event() {
    if acts() {
        let file = open();
        listen(&file);
        let (event, signals) = under_signals(libc::SA_RESTART, || get_event(&file));
        assert!(event.unwrap().event == 4 && signals > 0, "{signals}");
        return;
    }
    // To listen are three. With the first GET_EVENT, and two more that signals have caused, it is six.
    serve("a_handler_that_restarts_calls_costs_no_event", |ids, written| ids.is_waited_for() && written >= 6);
}

/// As with Linux; and it keeps no program from its end.
#[test]
fn who_waits_waits_on_when_the_channel_is_closed() {
    if acts() {
        let file = open();
        let number = file.as_raw_fd();
        let waits = thread::spawn(move || (get_event(&file).map(drop), std::mem::forget(file)));
        thread::sleep(Duration::from_millis(100));
        // SAFETY: the other thread forgets it.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
        thread::sleep(Duration::from_millis(300));
        assert!(!waits.is_finished());
        return;
    }
    serve("who_waits_waits_on_when_the_channel_is_closed", |_, _| false);
}
