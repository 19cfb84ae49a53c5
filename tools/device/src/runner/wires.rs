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
use nic::datagram;
use roce::link::LinkType;
use roce::{Frame, Packet};
use run::rules::{Passage, Rules};
use run::switch::Switch;
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

const ETHERNET: usize = 14;

pub struct Wires {
    rules: Rules,
    /// The switch between the nodes, if there is one; then nothing goes through sockets.
    pub link: Option<Link>,
    /// Each node's socket.
    sockets: Vec<(UdpSocket, IpAddr)>,
    /// Nodes do not send to each other: packets go on from here.
    pub forwards: bool,
    cut: Vec<usize>,
}

impl Wires {
    /// A wire for so many nodes; the first ones have these addresses.
    pub fn new(rules: Rules, switch: Option<Switch>, nodes: usize, addresses: &[IpAddr]) -> Result<Wires> {
        let wanted = addresses.iter().map(|address| match port::bind(*address) {
            Ok(socket) => Ok((socket, *address)),
            Err(error) => bail!(port::taken(*address, &error)),
        });
        let sockets: Vec<_> = wanted.chain(port::free().map(Ok)).take(nodes).collect::<Result<_>>()?;
        ensure!(sockets.len() == nodes, port::all_taken());
        let link = switch.map(|switch| Link::new(switch, nodes)).transpose()?;
        let forwards = !rules.is_empty() || nodes > 2 || link.is_some();
        Ok(Wires { rules, link, sockets, forwards, cut: Vec::new() })
    }

    /// A node's address.
    pub fn address(&self, node: usize) -> IpAddr {
        self.sockets[node].1
    }

    /// What a node's device is to use.
    pub fn port(&self, node: usize, tap: Tap) -> Result<Port> {
        let (socket, address) = &self.sockets[node];
        let socket = socket.try_clone().context("cannot share a socket")?;
        let run = self.sockets.iter().map(|(_, address)| *address).collect();
        Ok(Port::new(socket, *address, self.forwards, run, tap))
    }

    /// Makes virtual time go on, if nothing is in its way.
    pub fn turn(&mut self, guardian: u32) -> Option<Turn> {
        let held = self.rules.due();
        self.link.as_mut().map(|link| link.turn(held, guardian))
    }

    /// How long nothing is due, but so long at most.
    pub fn wait(&self, most: Duration) -> Duration {
        let wait = self.rules.due().map_or(most, |due| due.saturating_duration_since(Instant::now()).min(most));
        wait.max(Duration::from_millis(1))
    }

    /// Carries what a node's device has sent, from the IP header on.
    pub fn carry(&mut self, node: usize, bytes: &[u8], recorder: &mut Recorder) -> Result<()> {
        let frame = ethernet(bytes);
        if !self.forwards {
            return recorder.packet(node, &frame, None);
        }
        let target = target(&frame).and_then(|to| self.sockets.iter().position(|(_, address)| *address == to));
        let Passage { frame, copies, comment, line, then, cuts } = self.rules.pass(frame, node, target, self.now());
        let is_cut = [Some(node), target].iter().flatten().any(|node| self.cut.contains(node));
        for copy in 1..=copies.max(1) {
            let lost = (is_cut && copies > 0).then_some("lab: dropped, as the cable is cut");
            let comment = lost.or(comment.as_deref().filter(|_| copy >= copies));
            let goes_on = copies > 0 && !is_cut;
            // What crosses a switch is recorded there.
            if self.link.is_none() || !goes_on {
                recorder.packet(node, &frame, comment)?;
            }
            if goes_on {
                self.forward(node, &frame);
            }
        }
        if let Some(line) = line {
            recorder.act(Some(node), "rule", &line)?;
        }
        if let Some(frame) = then {
            self.forward(node, &frame);
        }
        if cuts {
            self.cut.push(node);
        }
        Ok(())
    }

    /// Lets packets go on whose time has come.
    pub fn let_go(&mut self, recorder: &mut Recorder) -> Result<()> {
        while let Some((node, frame, line)) = self.rules.release(self.now()) {
            self.forward(node, &frame);
            recorder.act(Some(node), "rule", &line)?;
        }
        Ok(())
    }

    /// A rule whose packet did not come has tested nothing.
    pub fn check(&self, recorder: &mut Recorder) -> Result<()> {
        self.rules.trouble().map_or(Ok(()), |trouble| recorder.trouble(&trouble))
    }

    fn now(&self) -> Instant {
        self.link.as_ref().map_or_else(Instant::now, Link::instant)
    }

    fn forward(&mut self, node: usize, frame: &[u8]) {
        if let Some(link) = &mut self.link {
            let to = target(frame).and_then(|to| self.sockets.iter().position(|(_, address)| *address == to));
            return link.sends(node, to, frame.to_vec());
        }
        if let (Some((socket, _)), Frame::Roce(packet)) = (self.sockets.get(node), Frame::ethernet(frame)) {
            let to = packet.datagram.dst;
            let payload = &frame[ETHERNET + datagram::payload_offset(to)..];
            port::send(socket, to, packet.datagram.traffic_class(), payload);
        }
    }
}

/// A packet in an Ethernet frame, as run files have them. There was none: the addresses are made of the IP addresses' ends.
pub fn ethernet(ip: &[u8]) -> Vec<u8> {
    let (source, target, kind) = match ip.first().map(|byte| byte >> 4) {
        Some(6) => (20, 36, [0x86, 0xdd]),
        _ => (12, 16, [0x08, 0x00]),
    };
    let end = |at: usize| ip.get(at..at + 4).unwrap_or(&[0; 4]);
    [&[2, 0], end(target), &[2, 0], end(source), &kind, ip].concat()
}

fn target(frame: &[u8]) -> Option<IpAddr> {
    match Frame::decode(LinkType::ETHERNET, frame) {
        Frame::Roce(Packet { datagram, .. }) => Some(datagram.dst),
        Frame::Other(_) => None,
    }
}
