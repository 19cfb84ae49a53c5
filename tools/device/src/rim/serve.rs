//! The device's thread: it sleeps until a packet, the doorbell or a timer wakes it.

use super::bell::Bell;
use super::{Device, Nic};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::net::UdpSocket;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

/// So many packets are taken before timers and send queues have their turn.
const BATCH: usize = 64;

/// Starts the thread. It ends with the process: with the program ends its device.
pub(super) fn start(device: &'static Device, deliver: fn(&mut Nic)) {
    let thread = thread::Builder::new().name("nic".into()).spawn(move || or_abort(|| serve(device, deliver)));
    if let Err(error) = thread {
        eprintln!("device: no thread for it: {error}");
    }
}

/// A program whose device has failed would wait for packets that never come. Where it failed, Rust has said on standard error.
fn or_abort(serve: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(serve)).is_err() {
        eprintln!(
            "device: a fault of the device itself, in the lines above: please report it. The program ends with it"
        );
        process::abort();
    }
}

fn serve(device: &'static Device, deliver: fn(&mut Nic)) {
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
            deliver(&mut nic);
        }
        let mut nic = device.lock();
        nic.turn();
        deliver(&mut nic);
    }
}

/// Waits for the socket or the doorbell, so long at most.
fn sleep(socket: &UdpSocket, doorbell: &Bell, wait: Option<Duration>) {
    let time = wait.and_then(|wait| Timespec::try_from(wait).ok());
    let mut both = [PollFd::new(socket, PollFlags::IN), PollFd::new(doorbell, PollFlags::IN)];
    let _ = poll(&mut both, time.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;
    use std::os::unix::process::ExitStatusExt;

    /// The variable that makes this test the program whose device fails.
    const FAILS: &str = "NIC_TEST_FAILS";

    #[test]
    fn a_device_that_fails_says_where_and_ends_its_program() {
        if env::var_os(FAILS).is_some() {
            let _ = thread::spawn(|| or_abort(|| panic!("planted"))).join();
            return;
        }
        let (_, module) = module_path!().split_once("::").unwrap();
        let name = format!("{module}::a_device_that_fails_says_where_and_ends_its_program");
        let mut program = process::Command::new(env::current_exe().unwrap());
        let output = program.args(["--exact", &name, "--nocapture"]).env(FAILS, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
        assert!(said.contains("serve.rs:") && said.contains("planted") && said.contains("device: a fault"), "{said}");
    }
}
