//! Each frame is decoded and tracked once, here; everybody behind takes the [`Sighting`].

use roce::iwarp::{Brought, Streams};
use roce::nvme::{Capsule, Queues};
use roce::opcode::Operation;
use roce::tcp::Segment;
use roce::track::{Connection, Membership, Side, Tracker};
use roce::{Frame, LinkType, Other, Packet};
use std::net::IpAddr;
use std::ops::Deref;

/// One recorded frame.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Counts every frame and log line of the file from 1, as Wireshark does.
    pub number: u64,
    /// The name of the interface, if the file has it; in a run file that is the node that sent the frame.
    pub node: Option<&'a str>,
    /// Nanoseconds since 1970; None where the file does not tell.
    pub time_ns: Option<u64>,
    /// What the frame begins with.
    pub link: LinkType,
    /// The recorded bytes.
    pub data: &'a [u8],
    /// Bytes on the wire; more than recorded if a snap length cut the frame.
    pub length: usize,
    /// The comment stored with the packet.
    pub comment: Option<&'a str>,
}

/// The workbench's program is compiled with this, so that pages load less: its NICs send only RoCE, and no NVMe in it.
const ONLY_ROCE: bool = cfg!(only_roce);

/// A recorded frame with all that's known of it: what it holds, and which connection and request that is part of.
/// It only borrows, so it's made without an allocation and costs nothing to hand on.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// What was recorded. A sighting dereferences to it.
    pub record: Record<'a>,
    /// What the frame holds.
    pub frame: Frame<'a>,
    /// Which connection it belongs to, and who sent it; None if that isn't known.
    pub seen: Option<Membership>,
    /// That connection, as far as it's known by now.
    pub connection: Option<&'a Connection>,
    /// What it is to NVMe, if the connection is one of NVMe over RDMA.
    pub(crate) nvme: Option<Capsule<'a>>,
    /// What a TCP segment brings to an iWARP connection.
    pub(crate) iwarp: Option<&'a Brought>,
}

impl<'a> Sighting<'a> {
    /// The RoCEv2 packet, if it is one.
    pub fn packet(&self) -> Option<&Packet<'a>> {
        match &self.frame {
            Frame::Roce(packet) => Some(packet),
            Frame::Other(_) => None,
        }
    }

    /// What it is to NVMe, if the connection is one of NVMe over RDMA.
    #[inline(always)]
    pub fn nvme(&self) -> Option<&Capsule<'a>> {
        if ONLY_ROCE {
            None
        } else {
            self.nvme.as_ref()
        }
    }

    /// What a TCP segment brings to an iWARP connection.
    #[inline(always)]
    pub fn iwarp(&self) -> Option<&'a Brought> {
        if ONLY_ROCE {
            None
        } else {
            self.iwarp
        }
    }

    /// The name under which people are told of it: the packet's, or that of the first unit that ends in a TCP segment with
    /// something of an iWARP connection.
    pub fn told(&self) -> Option<&'static str> {
        let segment = self.iwarp().filter(|brought| brought.segment.length > 0);
        let of_iwarp = segment.map(|brought| brought.units.first().map_or("TCP segment", |unit| unit.kind.name()));
        self.packet().map(Packet::told).or(of_iwarp)
    }

    /// The same, seen once more.
    #[must_use]
    pub fn again(self) -> Sighting<'a> {
        Sighting { seen: self.seen.map(|seen| Membership { again: true, ..seen }), ..self }
    }

    /// The same, as the wire has changed it on its way: its place in the connection is what it was.
    #[must_use]
    pub fn with_bytes(self, data: &'a [u8]) -> Sighting<'a> {
        let record = Record { data, length: data.len(), ..self.record };
        Sighting { record, frame: Frame::decode(record.link, data), ..self }
    }

    /// The same with bytes of its own, so that it can wait: in a switch, or until the rest of a file was read. Nobody has to
    /// decode or track it again then.
    pub fn kept(&self) -> Kept {
        let Record { number, node, time_ns, link, data, length, comment } = self.record;
        let record = Record { number, node: None, time_ns, link, data: &[], length, comment: None };
        Kept {
            node: node.map(str::to_owned),
            data: data.to_vec(),
            comment: comment.map(str::to_owned),
            iwarp: self.iwarp().cloned().map(Box::new),
            sighting: self.within(record, None, None),
        }
    }

    /// The same in another copy of its bytes.
    fn within<'b>(
        &self,
        record: Record<'b>,
        connection: Option<&'b Connection>,
        iwarp: Option<&'b Brought>,
    ) -> Sighting<'b> {
        let frame = self.frame.within(record.data);
        let nvme = match (&frame, self.nvme()) {
            (Frame::Roce(packet), Some(nvme)) => Some(nvme.within(packet)),
            _ => None,
        };
        Sighting { record, frame, seen: self.seen, connection, nvme, iwarp }
    }

    /// The queue pair that the packet comes from. Datagrams say it themselves, for others their connection does; a congestion
    /// notification comes from the device as a whole.
    pub fn src_qp(&self) -> Option<u32> {
        let packet = self.packet()?;
        let is_of_queue_pair = packet.opcode.operation != Operation::Congestion;
        packet.src_qp().or_else(|| self.connection?.qps[self.seen?.from as usize].filter(|_| is_of_queue_pair))
    }
}

/// A [`Sighting`] that owns what it's about.
#[derive(Clone, Debug)]
pub struct Kept {
    node: Option<String>,
    /// The frame's bytes. A switch takes them along, and may mark them.
    pub(crate) data: Vec<u8>,
    /// What is to be recorded with it.
    pub(crate) comment: Option<String>,
    iwarp: Option<Box<Brought>>,
    /// The rest.
    sighting: Sighting<'static>,
}

impl Kept {
    /// What was kept, with its connection as somebody else has it.
    pub fn sighting<'a>(&'a self, connection: Option<&'a Connection>) -> Sighting<'a> {
        let Kept { node, data, comment, iwarp, sighting } = self;
        let record = Record { node: node.as_deref(), data, comment: comment.as_deref(), ..sighting.record };
        sighting.within(record, connection, iwarp.as_deref())
    }
}

impl<'a> Deref for Sighting<'a> {
    type Target = Record<'a>;

    fn deref(&self) -> &Record<'a> {
        &self.record
    }
}

/// Looks at the frames of a run or a capture, each once and in their order. It's also the one to say who the client is: the
/// connection manager knows, else the names of a run's nodes, else the TCP connection of the two machines; and what's
/// left is a guess.
#[derive(Debug, Default)]
pub struct Lookout {
    tracker: Tracker,
    queues: Queues,
    streams: Streams,
    /// What the last frame has brought to an iWARP connection.
    brought: Option<Brought>,
    /// The client and the server of the last packet, as the nodes' names have them.
    named: Option<[IpAddr; 2]>,
}

impl Lookout {
    /// The next frame.
    #[inline(always)]
    pub fn see<'a>(&'a mut self, record: Record<'a>) -> Sighting<'a> {
        let frame = Frame::decode(record.link, record.data);
        let mut nvme = None;
        self.brought = None;
        let seen = match &frame {
            Frame::Roce(packet) => {
                self.named(packet, record.node);
                let seen = self.tracker.see(packet);
                if !ONLY_ROCE {
                    nvme = self.queues.see(packet, seen);
                }
                seen
            }
            Frame::Other(Other::TCP) if !ONLY_ROCE => {
                if let Some(segment) = Segment::read(record.link, record.data) {
                    self.tracker.tcp(&segment);
                    self.brought = self.streams.see(&segment, record.data);
                }
                None
            }
            Frame::Other(_) => None,
        };
        let connection = seen.map(|seen| &self.tracker.connections()[seen.connection]);
        Sighting { record, frame, seen, connection, nvme, iwarp: self.brought.as_ref() }
    }

    /// The next frame of a run that isn't recorded yet; a [`Recorder`](crate::recorder::Recorder) gives it number and time.
    pub fn live<'a>(&'a mut self, node: Option<&'a str>, data: &'a [u8]) -> Sighting<'a> {
        let (link, length) = (LinkType::ETHERNET, data.len());
        self.see(Record { number: 0, node, time_ns: None, link, data, length, comment: None })
    }

    /// A frame that was seen before, with what's known of its connection by now.
    pub fn recall<'a>(&'a self, kept: &'a Kept) -> Sighting<'a> {
        kept.sighting(kept.sighting.seen.map(|seen| &self.connections()[seen.connection]))
    }

    /// The connections so far, in the order in which they began.
    pub fn connections(&self) -> &[Connection] {
        self.tracker.connections()
    }

    /// A run file says whose machine the sender is.
    fn named(&mut self, packet: &Packet, node: Option<&str>) {
        let Some(side) = node.and_then(|node| Side::BOTH.into_iter().find(|side| side.is_at(node))) else { return };
        let (src, dst) = (packet.datagram.src, packet.datagram.dst);
        if dst.is_multicast() {
            return;
        }
        let [client, server] = if side == Side::Client { [src, dst] } else { [dst, src] };
        if self.named.replace([client, server]) != Some([client, server]) {
            self.tracker.name(client, server);
        }
    }
}
