//! How a program ended: by itself, with a status, or killed by a signal.

use std::fmt;

/// A shell's status for a command that a signal killed is this and the signal's number.
const OF_SHELL: i32 = 128;

/// The names of signals 1 to 31, which are the same on x86-64 and arm64 (signal(7)).
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The name of a signal, or its number if it has no name.
pub fn signal_name(signal: i32) -> String {
    let known = usize::try_from(signal - 1).ok().and_then(|at| SIGNALS.get(at));
    known.map_or_else(|| format!("signal {signal}"), |name| (*name).to_owned())
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself, with this status.
    Status(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Exit {
    /// What a shell's `$?` says of the command before it. A program may end with such a status by itself, but hardly any does.
    pub fn of_shell(status: i32) -> Exit {
        match status - OF_SHELL {
            signal @ 1..=64 => Exit::Signal(signal),
            _ => Exit::Status(status),
        }
    }

    /// As [`Exit::word`] and [`Exit::value`] have it.
    pub fn read(word: &str, value: &str) -> Option<Exit> {
        let value = value.parse().ok()?;
        match word {
            "exited" => Some(Exit::Status(value)),
            "killed" => Some(Exit::Signal(value)),
            _ => None,
        }
    }

    /// Which of the two it is, in systemd's words.
    pub fn word(self) -> &'static str {
        match self {
            Exit::Status(_) => "exited",
            Exit::Signal(_) => "killed",
        }
    }

    /// The status, or the signal's number.
    pub fn value(self) -> i32 {
        match self {
            Exit::Status(value) | Exit::Signal(value) => value,
        }
    }

    /// One number for it, as a shell has it: 139 for a program that SIGSEGV (11) killed.
    pub fn number(self) -> i32 {
        match self {
            Exit::Status(status) => status,
            Exit::Signal(signal) => OF_SHELL + signal,
        }
    }

    /// The signal that killed it.
    pub fn signal(self) -> Option<i32> {
        match self {
            Exit::Status(_) => None,
            Exit::Signal(signal) => Some(signal),
        }
    }

    /// Whether it ended by itself, and says that all went well.
    pub fn is_good(self) -> bool {
        self == Exit::Status(0)
    }

    /// In a few words, for a list: a status is its number.
    pub fn brief(self) -> String {
        match self {
            Exit::Status(_) => self.to_string().replace("exit status ", ""),
            Exit::Signal(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Status(status) => match Exit::of_shell(*status) {
                Exit::Signal(signal) if signal_name(signal).starts_with("SIG") => {
                    write!(f, "exit status {status} ({}, as a shell reports it)", signal_name(signal))
                }
                _ => write!(f, "exit status {status}"),
            },
            Exit::Signal(signal) => match signal_name(*signal) {
                name if name.starts_with("SIG") => write!(f, "killed by signal {signal} ({name})"),
                name => write!(f, "killed by {name}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_its_name_and_a_shells_status_is_taken_apart() {
        let told = |exit: Exit| exit.to_string();
        assert_eq!(told(Exit::Signal(11)), "killed by signal 11 (SIGSEGV)");
        assert_eq!(
            (told(Exit::Signal(31)), told(Exit::Signal(40))),
            ("killed by signal 31 (SIGSYS)".into(), "killed by signal 40".into())
        );
        assert_eq!(
            (Exit::of_shell(139), Exit::of_shell(1), Exit::of_shell(128), Exit::of_shell(255)),
            (Exit::Signal(11), Exit::Status(1), Exit::Status(128), Exit::Status(255))
        );
        assert_eq!(told(Exit::Status(139)), "exit status 139 (SIGSEGV, as a shell reports it)");
        for exit in [Exit::Status(3), Exit::Signal(9)] {
            assert_eq!(Exit::read(exit.word(), &exit.value().to_string()), Some(exit));
            assert_eq!(Exit::of_shell(exit.number()), exit);
        }
    }
}
