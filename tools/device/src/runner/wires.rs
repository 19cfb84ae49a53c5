//! The wire of a run: it carries every packet, or acts on it as the rules say.
//!
//! Between two nodes without rules packets go from device to device, and only their copies come here. Otherwise this is the
//! wire: it holds the devices' sockets, each device gets a second handle of its own as standard input, and a packet goes on when
//! this sends it. So packets of several senders arrive in the order in which they are recorded; and what a program has sent
//! before it ended goes on like any other.

use super::record::Recorder;
use anyhow::{ensure, Context, Result};
use device::rim::port;
use nic::datagram;
use roce::link::{LinkType, ROCE_PORT};
use roce::{Frame, Packet};
use run::rules::{Passage, Rules};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const ETHERNET: usize = 14;

pub struct Wires {
    rules: Rules,
    /// Each node's socket, if this is the wire.
    sockets: Vec<(UdpSocket, IpAddr)>,
    cut: Vec<usize>,
}

impl Wires {
    /// A wire for so many nodes.
    pub fn new(rules: Rules, nodes: usize) -> Result<Wires> {
        let mut wires = Wires { rules, sockets: Vec::new(), cut: Vec::new() };
        if !wires.rules.is_empty() || nodes > 2 {
            wires.sockets = port::free().take(nodes).collect();
            ensure!(wires.sockets.len() == nodes, port::all_taken());
        }
        Ok(wires)
    }

    /// What a node's device is to use as its socket, if this is the wire.
    pub fn socket(&self, node: usize) -> Result<Option<UdpSocket>> {
        let socket = self.sockets.get(node).map(|(socket, _)| socket.try_clone());
        socket.transpose().context("cannot share a socket")
    }

    /// How long nothing is due, but so long at most.
    pub fn wait(&self, most: Duration) -> Duration {
        let wait = self.rules.due().map_or(most, |due| due.saturating_duration_since(Instant::now()).min(most));
        wait.max(Duration::from_millis(1))
    }

    /// Carries what a node's device has sent, from the IP header on.
    pub fn carry(&mut self, node: usize, bytes: &[u8], recorder: &mut Recorder) -> Result<()> {
        let frame = ethernet(bytes);
        let target = target(&frame).and_then(|to| self.sockets.iter().position(|(_, address)| *address == to));
        let Passage { frame, copies, comment, line, then, cuts } = self.rules.pass(frame, node, target, Instant::now());
        let is_cut = [Some(node), target].iter().flatten().any(|node| self.cut.contains(node));
        for copy in 1..=copies.max(1) {
            let lost = (is_cut && copies > 0).then_some("lab: dropped, as the cable is cut");
            let comment = lost.or(comment.as_deref().filter(|_| copy >= copies));
            recorder.packet(node, &frame, comment)?;
            if copies > 0 && !is_cut {
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
        while let Some((node, frame, line)) = self.rules.release(Instant::now()) {
            self.forward(node, &frame);
            recorder.act(Some(node), "rule", &line)?;
        }
        Ok(())
    }

    /// A rule whose packet did not come has tested nothing.
    pub fn check(&self, recorder: &mut Recorder) -> Result<()> {
        self.rules.trouble().map_or(Ok(()), |trouble| recorder.trouble(&trouble))
    }

    fn forward(&self, node: usize, frame: &[u8]) {
        if let (Some((socket, _)), Some(to)) = (self.sockets.get(node), target(frame)) {
            let payload = &frame[ETHERNET + datagram::payload_offset(to)..];
            let _ = socket.send_to(payload, SocketAddr::new(to, ROCE_PORT));
        }
    }
}

/// A packet in an Ethernet frame, as run files have them. There was none: the addresses are made of the IP addresses' ends.
fn ethernet(ip: &[u8]) -> Vec<u8> {
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
