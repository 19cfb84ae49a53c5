//! The device's thread: it sleeps until a packet, the doorbell or a timer wakes it.

use super::bell::Bell;
use super::Device;
use std::os::fd::RawFd;
use std::thread;
use std::time::{Duration, Instant};

/// So many packets are taken before timers and send queues have their turn.
const BATCH: usize = 64;

/// Starts the thread. It ends with the process: with the program ends its device.
pub(super) fn start(device: &'static Device) {
    let thread = thread::Builder::new().name("nic".into()).spawn(move || serve(device));
    if let Err(error) = thread {
        eprintln!("device: no thread for it: {error}");
    }
}

fn serve(device: &'static Device) {
    let socket = device.lock().port.fd();
    loop {
        let wait = {
            let nic = device.lock();
            let due = nic.deadline().map(|time| time.saturating_duration_since(Instant::now()));
            if nic.is_busy() {
                Some(Duration::ZERO)
            } else {
                due
            }
        };
        sleep(socket, &device.doorbell, wait);
        let _ = device.doorbell.take();
        for _ in 0..BATCH {
            let mut nic = device.lock();
            let Some((from, packet)) = nic.port.receive() else { break };
            nic.receive(from, packet);
            crate::rdmacm::deliver(&mut nic);
        }
        let mut nic = device.lock();
        nic.turn();
        crate::rdmacm::deliver(&mut nic);
    }
}

/// Waits for the socket or the doorbell, so long at most.
fn sleep(socket: RawFd, doorbell: &Bell, wait: Option<Duration>) {
    let ready = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut both = [ready(socket), ready(doorbell.fd())];
    let time = wait.map(|wait| libc::timespec {
        tv_sec: wait.as_secs().min(3600) as libc::time_t,
        tv_nsec: libc::c_long::from(wait.subsec_nanos() as i32),
    });
    let time = time.as_ref().map_or(std::ptr::null(), |time| time as *const libc::timespec);
    // SAFETY: two entries and the time live until the call returns; there is no mask of signals.
    unsafe { libc::ppoll(both.as_mut_ptr(), 2, time, std::ptr::null()) };
}
