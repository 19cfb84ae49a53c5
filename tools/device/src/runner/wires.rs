//! The wire of a run: it carries every packet, or acts on it as the rules say.
//!
//! Each node has a socket. Between two nodes without rules packets go from one to the other, and only their copies come here.
//! Otherwise this is the wire: a packet goes on when this sends it. So packets of several senders arrive in the order in which
//! they are recorded.

use super::link::{Link, Turn};
use super::record::Recorder;
use anyhow::{bail, ensure, Context, Result};
use device::node::port::{self, Port};
use device::node::tap::Tap;
use nic::datagram::{self, ethernet};
use roce::link;
use roce::LinkType;
use run::sighting::Sighting;
use run::wire::{Ports, Wire};
use std::mem;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// Who sends what comes from no node of the run.
const OUTSIDE: &str = "outside";

pub struct Wires {
    wire: Wire,
    /// The nodes' time if there is a switch between them; then nothing goes through sockets.
    pub link: Option<Link>,
    sockets: Sockets,
}

/// What hangs on the wire.
struct Sockets {
    /// Each node's socket.
    nodes: Vec<(UdpSocket, IpAddr)>,
    /// Nodes do not send to each other: packets go on from here.
    forwards: bool,
    /// What has come out of the switch, for the nodes to be told.
    arrived: Vec<(usize, Vec<u8>)>,
}

impl Wires {
    /// A wire for this many nodes; the first ones have these addresses.
    pub fn new(mut wire: Wire, nodes: usize, addresses: &[IpAddr]) -> Result<Wires> {
        let wanted = addresses.iter().map(|address| match port::bind(*address) {
            Ok(socket) => Ok((socket, *address)),
            Err(error) => bail!(port::taken(*address, &error)),
        });
        let all: Vec<_> = wanted.chain(port::free().map(Ok)).take(nodes).collect::<Result<_>>()?;
        ensure!(all.len() == nodes, port::all_taken());
        let link = wire.switch().map(|switch| Link::new(&switch.settings, nodes)).transpose()?;
        wire.time = link.as_ref().map(|_| Duration::ZERO);
        let sockets = Sockets { nodes: all, forwards: !wire.is_plain() || nodes > 2, arrived: Vec::new() };
        Ok(Wires { wire, link, sockets })
    }

    /// A node's address.
    pub fn address(&self, node: usize) -> IpAddr {
        self.sockets.nodes[node].1
    }

    /// What a node's device is to use.
    pub fn port(&self, node: usize, tap: Tap) -> Result<Port> {
        let (socket, address) = &self.sockets.nodes[node];
        let socket = socket.try_clone().context("cannot share a socket")?;
        let run = self.sockets.nodes.iter().map(|(_, address)| *address).collect();
        Ok(Port::new(socket, *address, self.sockets.forwards, run, tap))
    }

    /// Makes virtual time go on, if nothing is in its way.
    pub fn turn(&mut self, guardian: u32) -> Option<Turn> {
        self.link.as_mut().map(|link| link.turn(&mut self.wire, guardian))
    }

    /// How long nothing is due, but so long at most.
    pub fn wait(&self, most: Duration) -> Duration {
        self.wire.due().map_or(most, |due| due.min(most)).max(Duration::from_millis(1))
    }

    /// How long after the begin it is.
    pub fn now(&self) -> Duration {
        self.wire.now()
    }

    /// Carries what a node's device has sent, from the IP header on.
    pub fn carry(&mut self, node: usize, bytes: &[u8], recorder: &mut Recorder<'_>) -> Result<()> {
        self.wire.carry(node, &ethernet(bytes), &mut self.sockets, recorder).map(drop)
    }

    /// Records what a device that is not in this run has sent to one that is.
    pub fn outside(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) -> Result<()> {
        self.wire.outside(OUTSIDE, &ethernet(bytes), recorder)
    }

    /// Lets packets go on whose time has come.
    pub fn let_go(&mut self, recorder: &mut Recorder<'_>) -> Result<()> {
        self.wire.let_go(&mut self.sockets, recorder)
    }

    /// What is due now at the switch; gives what arrives at the nodes.
    pub fn cross(&mut self, recorder: &mut Recorder<'_>) -> Result<Vec<(usize, Vec<u8>)>> {
        self.wire.cross(&mut self.sockets, recorder)?;
        Ok(mem::take(&mut self.sockets.arrived))
    }

    /// The run is over.
    pub fn end(&self, recorder: &mut Recorder<'_>) -> Result<()> {
        self.wire.end(recorder)
    }
}

impl Ports for Sockets {
    fn target(&mut self, _: usize, sighting: &Sighting<'_>) -> Option<usize> {
        let to = sighting.packet()?.datagram.dst;
        self.nodes.iter().position(|(_, address)| *address == to)
    }

    /// A packet for a group is sent once: the kernel knows who has joined it.
    fn all_but(&self, _: usize) -> Vec<usize> {
        Vec::new()
    }

    fn send(&mut self, from: usize, _: &[usize], frame: &[u8]) -> Option<usize> {
        let (socket, _) = self.nodes.get(from).filter(|_| self.forwards)?;
        let packet = link::datagram(LinkType::ETHERNET, frame).ok()?;
        let payload = packet.ip.get(datagram::payload_offset(packet.dst)..)?;
        port::send(socket, packet.dst, packet.traffic_class(), payload);
        None
    }

    fn arrives(&mut self, to: usize, frame: Vec<u8>) -> bool {
        self.arrived.push((to, frame));
        true
    }
}
