//! What the lessons call: safe, owned wrappers around the verbs and the RDMA connection manager, one file per noun.
//!
//! The C names are kept, so that every line of a lesson can be looked up in its man page: `rdma_bind_addr` is
//! [`CmId::bind_addr`], `ibv_reg_mr` is [`ProtectionDomain::reg_mr`]. Four things are hidden here: pointers, errno,
//! deadlines and printing.
//!
//! # Who keeps whom alive
//!
//! In C you must destroy the children before the parents, and only documentation tells you so. Here every child holds
//! an [`Rc`](std::rc::Rc) of its parents, so that dropping in any order is right:
//!
//! ```text
//! QueuePair ──▶ CompletionQueue ──▶ CompletionChannel ──▶ Context ──▶ CmId ──▶ EventChannel
//!     │                                                    ▲        ▲
//!     ├──▶ ProtectionDomain ───────────────────────────────┘        │
//!     │           ▲                                                 │
//!     │     MemoryRegion (──▶ Buffer), SharedReceiveQueue, AddressHandle
//!     └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! It is `Rc` and not `Arc` because librdmacm lets two threads use one id only if they take turns; a type that cannot
//! leave its thread makes that mistake impossible.
//!
//! # Errors
//!
//! There is one type, [`Error`]. A program that goes on after one matches its case, and its [`error::Kind`]; the sections
//! "Errors" name the likely ones by these. Every call of C may fail in more ways: its man page lists them.
//!
//! # What the types forbid
//!
//! Private data lives inside the event. Acknowledging the event frees it, so it must be copied first:
//!
//! ```compile_fail,E0505
//! # fn f(channel: &common::EventChannel) -> common::Result<()> {
//! let event = channel.get_cm_event()?;
//! let private_data = event.private_data();
//! event.ack();
//! println!("{private_data:?}"); // error[E0505]: cannot move out of `event` because it is borrowed
//! # Ok(()) }
//! ```
//!
//! An acknowledged event is gone:
//!
//! ```compile_fail,E0382
//! # fn f(channel: &common::EventChannel) -> common::Result<()> {
//! let event = channel.get_cm_event()?;
//! event.ack();
//! println!("{}", event.status()); // error[E0382]: borrow of moved value: `event`
//! # Ok(()) }
//! ```
//!
//! The device may change the memory of a region at any moment, so there is no slice into it:
//!
//! ```compile_fail,E0599
//! # fn f(region: &common::MemoryRegion) {
//! let bytes: &[u8] = region.as_slice(); // error[E0599]: no method named `as_slice`; `read` copies instead
//! # }
//! ```
//!
//! Nothing here leaves the thread that made it:
//!
//! ```compile_fail,E0277
//! # fn f(qp: common::QueuePair) {
//! std::thread::spawn(move || drop(qp)); // error[E0277]: `Rc<…>` cannot be sent between threads safely
//! # }
//! ```

#![warn(clippy::missing_errors_doc)]

pub mod address;
pub mod ah;
pub mod args;
pub mod async_event;
pub mod buffer;
mod c_enum;
pub mod card;
pub mod cm;
pub mod cm_event_type;
pub mod comp_channel;
pub mod context;
pub mod cq;
pub mod deadline;
pub mod error;
mod ledger;
pub mod metadata;
pub mod mr;
pub mod mtu;
pub mod narrate;
pub mod pd;
pub mod qp;
pub mod qp_attr;
pub mod qp_cap;
pub mod qp_init;
pub mod qp_modify;
mod route;
pub mod sge;
pub mod srq;
pub mod tcp;
pub mod timer;
pub mod wc;
pub mod wc_status;
pub mod wr;
mod wr_id;

pub use ah::{AddressHandle, AhAttr, Destination, UdParam, GRH_LEN};
pub use async_event::AsyncEvent;
pub use buffer::Buffer;
pub use card::Card;
pub use cm::conn_param::ConnParam;
pub use cm::event::CmEvent;
pub use cm::event_channel::EventChannel;
pub use cm::id::CmId;
pub use cm::port_space::PortSpace;
pub use comp_channel::{CompletionChannel, Woken};
pub use context::Context;
pub use cq::CompletionQueue;
pub use error::{Error, Result};
pub use metadata::Metadata;
pub use mr::{Access, MemoryRegion};
pub use mtu::Mtu;
pub use narrate::stage;
pub use pd::ProtectionDomain;
pub use qp::QueuePair;
pub use qp_attr::{QpAttr, QpState};
pub use qp_cap::QpCap;
pub use qp_init::{QpInitAttr, QpType};
pub use qp_modify::ModifyQp;
pub use srq::SharedReceiveQueue;
pub use timer::Timer;
pub use wc::WorkCompletion;
pub use wr::{Operation, SendWr};
