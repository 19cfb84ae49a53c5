//! SoftRoCE machines on this one, two or more, and the wire between them.
//!
//! The machines are emulated by QEMU; this program starts them, is the cable that connects them, and therefore
//! sees every packet. It needs no root, opens no network port, and installs nothing.
//!
//! A run goes through these modules: [`kernel`] finds what to boot, [`initramfs`] builds the first file system,
//! [`state`] boots the machines once and keeps them, [`payload`] brings the programs, [`session`] runs them with
//! [`switch`] as the wire and [`rules`] for faults on it, [`record`] writes down what happens as it happens, [`wire::lanes`]
//! draws it. A shell's run lends a machine the [`terminal`].

pub mod agent;
pub mod arch;
pub mod cpio;
pub mod elf;
pub mod fetch;
pub mod files;
pub mod initramfs;
mod intake;
pub mod interrupt;
pub mod kernel;
pub mod kvm;
mod lab;
pub mod libs;
pub mod lines;
pub mod machine;
pub mod modules;
pub mod options;
mod outcome;
pub mod payload;
mod phases;
pub mod port;
pub mod qmp;
pub mod record;
pub mod rules;
mod run;
mod seat;
pub mod session;
pub mod state;
pub mod summary;
pub mod switch;
pub mod terminal;
pub mod unpack;
pub mod usage;

pub use interrupt::{Interrupt, Interrupted};
pub use lab::Lab;
pub use options::{Fetched, Options};
pub use outcome::{Ended, Outcome};
pub use payload::Brought;
pub use phases::Phases;
pub use run::{address, Fault, Node, Run, CLIENT, SERVER};
pub use terminal::Terminal;
pub use usage::Usage;
