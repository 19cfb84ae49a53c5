//! Nobody waits for long without being told for what, and until when: a line on standard error.
//!
//! On a terminal the line counts the seconds, and vanishes as soon as something happens. Elsewhere, in a CI's log, it is printed
//! once.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long one can wait and not wonder.
pub const SILENCE: Duration = Duration::from_secs(2);
/// How often the line is written again.
const SECOND: Duration = Duration::from_secs(1);

/// The line, for a loop that looks at the clock by itself.
#[derive(Debug)]
pub struct Notice {
    is_terminal: bool,
    /// What was told last, and whether it is still to be seen on the terminal.
    told: String,
    is_shown: bool,
}

impl Default for Notice {
    fn default() -> Notice {
        Notice { is_terminal: io::stderr().is_terminal(), told: String::new(), is_shown: false }
    }
}

impl Notice {
    /// Tells what is waited for, if nothing has happened for a while.
    pub fn look(&mut self, since: Instant, what: impl FnOnce() -> String) {
        if since.elapsed() >= SILENCE {
            let text = self.text(what(), since.elapsed());
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }

    /// Something has happened: the terminal belongs to that.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }

    /// What is to be written.
    fn text(&mut self, what: String, so_far: Duration) -> String {
        let is_new = self.told != what;
        self.told.clone_from(&what);
        if self.is_terminal {
            self.is_shown = true;
            format!("\r{what}: {} s so far\x1b[K", so_far.as_secs())
        } else if is_new {
            what + "\n"
        } else {
            String::new()
        }
    }
}

/// The line, while a program does something that it cannot interrupt, as long as this is kept.
#[derive(Debug)]
pub struct Waiting {
    done: Option<Sender<()>>,
    teller: Option<JoinHandle<()>>,
}

/// From now on one waits for this.
pub fn wait_for(what: impl Into<String>) -> Waiting {
    let (what, since, (done, is_done)) = (what.into(), Instant::now(), channel::<()>());
    let tell = move || {
        let (mut notice, mut pause) = (Notice::default(), SILENCE);
        while is_done.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            notice.look(since, || what.clone());
            pause = SECOND;
        }
        notice.clear();
    };
    // Who cannot have a thread more waits in silence.
    let teller = thread::Builder::new().spawn(tell).ok();
    Waiting { done: Some(done), teller }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.done.take());
        let _ = self.teller.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_sees_the_seconds_and_a_file_one_line() {
        let told = |is_terminal: bool| {
            let mut notice = Notice { is_terminal, told: String::new(), is_shown: false };
            [2, 3].map(|second| notice.text("waiting for the server".into(), Duration::from_secs(second)))
        };
        assert_eq!(told(true)[1], "\rwaiting for the server: 3 s so far\x1b[K");
        assert_eq!(told(false), ["waiting for the server\n", ""]);
    }

    #[test]
    fn nothing_is_told_of_what_goes_on() {
        Notice::default().look(Instant::now(), || panic!("too early"));
        drop(wait_for("a moment"));
    }
}
