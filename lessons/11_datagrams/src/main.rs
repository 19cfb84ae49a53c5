//! Lesson 11: datagrams. One queue pair of the server talks to every client, and nobody tells us when a message is lost. So this
//! program does what a connection's devices would do: it numbers, waits, asks again, and carries out once.
//!
//! ```text
//! client 1 … 8                                     server
//!    │ ─── ServiceRequest: who has this port? ─────▶ │
//!    │ ◀── ServiceReply: queue pair, Q_Key ───────── │  and the client's number in a table
//!    │ ─── SEND: request 1 ───── lost                │
//!    │         (no answer within the time-out)       │
//!    │ ─── SEND: request 1 ────────────────────────▶ │  carried out: 10 coins go into the box
//!    │               lost ──── SEND: 10 are in it ── │
//!    │         (no answer within the time-out)       │
//!    │ ─── SEND: request 1 ────────────────────────▶ │  known: nothing is done
//!    │ ◀── SEND: 10 are in it ────────────────────── │
//! ```
//!
//! Everything that calls the device is in this folder. The rest is in `../plain`.

#[path = "../plain/bank.rs"]
mod bank;
mod client;
mod desk;
mod message;
mod server;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::{process::ExitCode, time::Duration};

use common::{args::Args, args::Opt, args::Side::Both, args::Side::Client, *};

/// The key that librdmacm gives each queue pair for datagrams. Whoever sends to one must know it.
const QKEY: u32 = 0x0123_4567;
/// How long a client waits for an answer before it asks again, and how often it asks.
const TIMEOUT: Duration = Duration::from_millis(1000);
const TRIES: u32 = 6;
/// How long the server stays after the last goodbye. Its answer may be lost, and then the client asks again after `TIMEOUT`.
const LINGER: Duration = Duration::from_millis(2000);
/// Receives that the server keeps posted for all clients together, and those of a client.
const RECEIVES: usize = 16;
const RECEIVES_OF_CLIENT: usize = 4;
/// The group that hears the server's last message, with `--multicast`.
const GROUP: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(239, 47, 91, 11), 0));

/// What a client puts into its box each time.
const COINS: u32 = 10;

/// The device's port; SoftRoCE has one.
const PORT: u8 = 1;
/// How many ServiceRequests, or ConnectRequests, may wait to be looked at.
const BACKLOG: i32 = 16;
/// Requests of a client that may wait to be sent. A connection of the server has as many for its answers.
const QUEUE: QpCap = QpCap { max_send_wr: 4, max_recv_wr: RECEIVES_OF_CLIENT as u32, ..QpCap::SMALL };
/// With `--transport rc`: how often a device sends again, and without end if no receive is there. Nobody READs.
const CONN_PARAM: ConnParam = ConnParam {
    private_data: Vec::new(),
    responder_resources: 0,
    initiator_depth: 0,
    retry_count: 6,
    rnr_retry_count: 7,
};

const TRANSPORT: Opt = Opt::choice(Both, "transport", &["ud", "rc"], "Datagrams; or a connection for each client");
const MULTICAST: Opt = Opt::flag(Both, "multicast", "All join a group, to which the last word goes (not with rc)");
const REQUESTS: Opt = Opt::number_or(Client, "requests", "2", "How often to put coins into the box");
const SIZE: Opt = Opt::number_or(Client, "size", "16", "Bytes of each request, 16 at least: what is more is padding");

/// To the connection manager the transport is a space of ports: `RDMA_PS_UDP`, or `RDMA_PS_TCP`.
fn transport(args: &Args) -> PortSpace {
    match args.text(&TRANSPORT) {
        "rc" => PortSpace::Tcp,
        _ => PortSpace::Udp,
    }
}

fn main() -> ExitCode {
    let about = "Datagrams: one queue pair for all clients, and a protocol of our own that survives loss";
    common::args::run("lesson-11", about, &[TRANSPORT, MULTICAST, REQUESTS, SIZE], server::run, client::run)
}
