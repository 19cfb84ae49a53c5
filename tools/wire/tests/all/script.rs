//! What two programs ask for, and everything that may differ between two recordings of it: [`encode`] makes a capture of
//! requests, which a comparison must notice, and a [`World`], which it must not.

use roce::field::Header;
use roce::opcode::Operation::{self, *};
use roce::opcode::{Opcode, Part, Service, TABLE};
use std::iter::repeat;
use testkit::frames::{aeth, atomic_eth, ethernet, ip, reth, transport, Ends};

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Work {
    #[default]
    Send,
    Write,
    Read,
    FetchAdd,
}

/// One request. What its work does not need is there without a meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub from: usize,
    pub work: Work,
    /// What a SEND says.
    pub bytes: Vec<u8>,
    /// Of a WRITE or READ; and where it goes, in one of the peer's buffers.
    pub length: usize,
    pub buffer: usize,
    pub offset: u64,
    /// Of a SEND or WRITE.
    pub immediate: Option<u32>,
    pub add: u64,
    pub solicited: bool,
    /// A NAK's syndrome, or 0.
    pub refused: u8,
    /// Uses a key that nobody announced.
    pub wrong_key: bool,
}

/// The buffers that each side announces before anything else, by their lengths.
pub const BUFFERS: [&[u32]; 2] = [&[4096], &[4096, 65_536]];

/// What is new in every run, or is the network's and the devices' business.
#[derive(Clone, Debug)]
pub struct World {
    pub ends: Ends,
    /// Added to keys and addresses.
    pub key: u32,
    pub address: u64,
    /// One ACK for this many requests.
    pub ack_every: usize,
    /// For each request, in turn: what the network does to it.
    pub weather: Vec<Weather>,
    /// For merging the two directions: whose packet comes next.
    pub turns: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weather {
    Fine,
    /// The whole request is sent twice, because its ACK was lost.
    AckLost,
    /// The packet in the middle is lost before it is recorded: NAK, and again from there.
    PacketLost,
    /// No receive was posted, this many times.
    NotReady(usize),
    /// A READ is asked for again from its middle on.
    ResponseLost,
}

type Frames = Vec<Vec<u8>>;

/// The frames of a capture.
pub fn encode(requests: &[Request], world: &World) -> Frames {
    let mut encoder = Encoder { world, next: world.ends.psns };
    let mut frames = Vec::new();
    for from in [CLIENT, SERVER] {
        let announcements = (0..BUFFERS[from].len()).map(|buffer| {
            let (address, key) = encoder.place(from, buffer);
            let bytes = [&address.to_be_bytes()[..], &key.to_be_bytes(), &BUFFERS[from][buffer].to_be_bytes()].concat();
            Request { from, bytes, ..Request::default() }
        });
        let announcements: Vec<Request> = announcements.collect();
        frames.extend(encoder.direction(&announcements, from));
    }
    // The two directions come in any order.
    let [mut client, mut server] = [CLIENT, SERVER].map(|from| encoder.direction(requests, from).into_iter());
    let mut turns = world.turns.iter().copied().chain(repeat(true));
    while client.len() + server.len() > 0 {
        let (first, other) =
            if turns.next() == Some(true) { (&mut client, &mut server) } else { (&mut server, &mut client) };
        frames.extend(first.next().or_else(|| other.next()));
    }
    world.ends.around(frames)
}

struct Encoder<'w> {
    world: &'w World,
    next: [u32; 2],
}

impl Encoder<'_> {
    /// Address and key of a buffer.
    fn place(&self, owner: usize, buffer: usize) -> (u64, u32) {
        let number = (owner * 16 + buffer) as u32;
        let address = 0x5500_0000_0000 + self.world.address + u64::from(number) * 0x10_0000;
        (address, 0x100 + self.world.key + number * 0x100)
    }

    /// The packets of one side's requests, and of the answers.
    fn direction(&mut self, requests: &[Request], from: usize) -> Frames {
        let requests: Vec<&Request> = requests.iter().filter(|request| request.from == from).collect();
        let mut frames = Vec::new();
        for (number, request) in (1..).zip(&requests) {
            let weather = self.world.weather[number % self.world.weather.len()];
            let due = number == requests.len() || request.refused != 0 || number % self.world.ack_every == 0;
            frames.extend(self.request(request, weather, due));
            if request.refused != 0 {
                break;
            }
        }
        frames
    }

    fn request(&mut self, request: &Request, weather: Weather, due: bool) -> Frames {
        let first = self.next[request.from];
        let packets = self.packets(request, first);
        let lost = packets.len() / 2;
        let mut frames = match weather {
            Weather::NotReady(times) if request.work == Work::Send => {
                let refused = [packets[..1].to_vec(), self.answer(request, first, 0x2c)].concat();
                [vec![refused; times].concat(), packets.clone()].concat()
            }
            Weather::PacketLost if lost > 0 => {
                // Whether somebody misses it depends on whether another one comes after it.
                let is_missed = packets.len() > lost + 1;
                let nak = if is_missed { self.answer(request, first + lost as u32, 0x60) } else { Vec::new() };
                [&packets[..lost], &packets[lost + 1..], &nak, &packets[lost..]].concat()
            }
            Weather::AckLost => [&packets[..], &packets].concat(),
            _ => packets.clone(),
        };
        let mut last = first + packets.len() as u32 - 1;
        frames.extend(match request.work {
            _ if request.refused != 0 => self.answer(request, last, request.refused),
            Work::Read => {
                last = first + request.length.div_ceil(self.mtu()).max(1) as u32 - 1;
                self.responses(request, first, weather)
            }
            Work::FetchAdd => self.message(1 - request.from, AtomicAcknowledge, last, &[], request, 0x1f),
            _ if due => self.answer(request, last, 0x1f),
            _ => Vec::new(),
        });
        self.next[request.from] = (last + 1) & 0xff_ffff;
        frames
    }

    fn mtu(&self) -> usize {
        128 << self.world.ends.mtu_code
    }

    /// What answers a READ; if the middle is lost, the rest is asked for again.
    fn responses(&self, request: &Request, first: u32, weather: Weather) -> Frames {
        let respond = |at: usize| {
            let data = vec![7; request.length - at * self.mtu()];
            self.message(1 - request.from, ReadResponse, first + at as u32, &data, request, 0x1f)
        };
        let (mut all, half) = (respond(0), request.length.div_ceil(self.mtu()) / 2);
        if weather == Weather::ResponseLost && half > 0 {
            let skipped = half * self.mtu();
            let (length, offset) = (request.length - skipped, request.offset + skipped as u64);
            all.truncate(half);
            all.extend(self.packets(&Request { length, offset, ..request.clone() }, first + half as u32));
            all.extend(respond(half));
        }
        all
    }

    /// An ACK or NAK for a request.
    fn answer(&self, request: &Request, psn: u32, syndrome: u8) -> Frames {
        self.message(1 - request.from, Acknowledge, psn, &[], request, syndrome)
    }

    /// The packets of a request.
    fn packets(&self, request: &Request, psn: u32) -> Frames {
        let (operation, payload) = match request.work {
            Work::Send => (Send, request.bytes.clone()),
            Work::Write => (Write, vec![7; request.length]),
            Work::Read => (ReadRequest, Vec::new()),
            Work::FetchAdd => (FetchAdd, Vec::new()),
        };
        self.message(request.from, operation, psn, &payload, request, 0)
    }

    /// A request's message or an answer to it, cut by the MTU.
    fn message(&self, from: usize, operation: Operation, psn: u32, payload: &[u8], of: &Request, say: u8) -> Frames {
        let (start, key) = self.place(1 - of.from, of.buffer);
        let (va, key) = (start + of.offset, key + u32::from(of.wrong_key) * 0x77);
        let count = payload.len().div_ceil(self.mtu()).max(1);
        let packet = |i: usize| {
            let part = match (i == 0, i + 1 == count) {
                (true, true) => Part::Only,
                (true, false) => Part::First,
                (false, true) => Part::Last,
                (false, false) => Part::Middle,
            };
            let (is_own, ends) = (from == of.from, matches!(part, Part::Only | Part::Last));
            let immediate = of.immediate.filter(|_| is_own && ends && matches!(operation, Send | Write));
            let row = row(operation, part, immediate.is_some());
            let header = |header: &&Header| match header.name {
                "RETH" => reth(va, key, of.length as u32),
                "AtomicETH" => atomic_eth(va, key, of.add, 0),
                "ImmDt" => immediate.unwrap_or_default().to_be_bytes().to_vec(),
                "AETH" => aeth(say, 1),
                _ => vec![0; header.length],
            };
            let headers: Vec<u8> = row.headers.iter().flat_map(header).collect();
            let bytes = &payload[i * self.mtu()..payload.len().min((i + 1) * self.mtu())];
            let Ends { addresses, qps, .. } = &self.world.ends;
            let mut bytes = transport(row.code, qps[1 - from], (psn + i as u32) & 0xff_ffff, &headers, bytes);
            bytes[1] |= u8::from(of.solicited && is_own && ends) << 7;
            ethernet(&ip(addresses[from], addresses[1 - from], &bytes))
        };
        (0..count).map(packet).collect()
    }
}

/// The operation code of a part of a message.
fn row(operation: Operation, part: Part, has_immediate: bool) -> &'static Opcode {
    let has = |row: &Opcode| row.headers.iter().any(|header| header.name == "ImmDt");
    let mut of_rc = TABLE.iter().filter(|row| (row.service, row.operation, row.part) == (Service::Rc, operation, part));
    of_rc.find(|row| has(row) == has_immediate).unwrap()
}
