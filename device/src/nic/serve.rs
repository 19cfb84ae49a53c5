//! The device's thread: it sleeps until a packet, the doorbell or a timer wakes it.

use super::bell::Bell;
use super::Device;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::net::UdpSocket;
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
    let socket = device.lock().port.socket();
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
        sleep(&socket, &device.doorbell, wait);
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
fn sleep(socket: &UdpSocket, doorbell: &Bell, wait: Option<Duration>) {
    let time = wait.and_then(|wait| Timespec::try_from(wait).ok());
    let mut both = [PollFd::new(socket, PollFlags::IN), PollFd::new(doorbell, PollFlags::IN)];
    let _ = poll(&mut both, time.as_ref());
}
