//! SoftRoCE machines on this one, two or more, and the wire between them.
//!
//! The machines are emulated by QEMU; this program starts them, is the cable that connects them, and therefore
//! sees every packet. It needs no root, opens no network port, and installs nothing.
//!
//! A run goes through these modules: [`kernel`] finds what to boot, [`initramfs`] builds the first file system,
//! [`state`] boots the machines once and keeps them, [`payload`] brings the programs, [`session`] runs them with
//! [`switch`] as the wire and [rules](::run::rules) for faults on it, [`record`] writes down what happens as it happens, [lanes](::run::lanes)
//! draw it. A shell's run lends a machine the [`terminal`].

mod agent;
mod arch;
mod archive;
mod brought;
mod elf;
mod fault;
mod fetch;
mod files;
mod initramfs;
mod intake;
mod interrupt;
mod kernel;
mod kvm;
mod lab;
mod libs;
mod machine;
mod modules;
mod options;
mod outcome;
mod payload;
mod port;
mod qmp;
mod record;
mod run;
mod seat;
mod session;
mod state;
mod switch;
mod terminal;
mod unpack;
mod usage;

pub use ::run::programs::{CLIENT, SERVER};
pub use brought::Brought;
pub use fault::Trap;
pub use files::program;
pub use interrupt::{Interrupt, Stopped};
pub use lab::Lab;
pub use options::{Fetched, Options};
pub use outcome::{Ended, Outcome, Phases};
pub use run::{address, Run};
pub use terminal::{size as terminal_size, Terminal};
