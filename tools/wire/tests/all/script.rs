//! What two programs ask for, and everything that may differ between two recordings of it: [`encode`] makes a capture of
//! requests, which a comparison must notice, and a [`World`], which it must not.

use crate::frames::{self, aeth, atomic_eth, reth, Ends};
use std::iter::repeat;

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

/// One request. What its work does not need stands there without a meaning.
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
    /// One ACK for so many requests.
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
    /// No receive was posted, so many times.
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
                let refused = [packets[0].clone(), self.answer(request, first, 0x2c)];
                [vec![refused.to_vec(); times].concat(), packets.clone()].concat()
            }
            Weather::PacketLost if lost > 0 => {
                // Whether somebody misses it depends on whether another one comes after it.
                let nak = (packets.len() > lost + 1).then(|| self.answer(request, first + lost as u32, 0x60));
                let nak: Vec<_> = nak.into_iter().collect();
                [&packets[..lost], &packets[lost + 1..], &nak, &packets[lost..]].concat()
            }
            Weather::AckLost => [&packets[..], &packets].concat(),
            _ => packets.clone(),
        };
        let (mut last, mut answer) = (first + packets.len() as u32 - 1, Vec::new());
        match request.work {
            _ if request.refused != 0 => answer.push(self.answer(request, last, request.refused)),
            Work::Read => {
                answer = self.responses(request, first, weather);
                last = first + request.length.div_ceil(self.mtu()).max(1) as u32 - 1;
            }
            Work::FetchAdd => {
                let headers = [aeth(0x1f, 1), vec![0; 8]].concat();
                answer.push(self.packet(1 - request.from, 0x12, last, &headers, &[], false));
            }
            _ if due => answer.push(self.answer(request, last, 0x1f)),
            _ => {}
        }
        frames.extend(answer);
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
            let headers = |first, last| if first || last { aeth(0x1f, 1) } else { Vec::new() };
            self.cut(1 - request.from, [0x0d, 0x0e, 0x0f, 0x10], first + at as u32, &data, false, headers)
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
    fn answer(&self, request: &Request, psn: u32, syndrome: u8) -> Vec<u8> {
        self.packet(1 - request.from, 0x11, psn, &aeth(syndrome, 1), &[], false)
    }

    /// The packets of a request.
    fn packets(&self, request: &Request, psn: u32) -> Frames {
        let Request { from, work, length, immediate, solicited, .. } = *request;
        let (start, key) = self.place(1 - from, request.buffer);
        let (va, key) = (start + request.offset, key + u32::from(request.wrong_key) * 0x77);
        let remote = reth(va, key, length as u32);
        let (opcodes, start, payload) = match work {
            Work::Send => ([0x00, 0x01, 0x02, 0x04], Vec::new(), request.bytes.clone()),
            Work::Write => ([0x06, 0x07, 0x08, 0x0a], remote, vec![7; length]),
            Work::Read => return vec![self.packet(from, 0x0c, psn, &remote, &[], solicited)],
            Work::FetchAdd => {
                return vec![self.packet(from, 0x14, psn, &atomic_eth(va, key, request.add, 0), &[], solicited)]
            }
        };
        let end: Vec<u8> = immediate.iter().flat_map(|data| data.to_be_bytes()).collect();
        let opcodes =
            [opcodes[0], opcodes[1]].into_iter().chain([2, 3].map(|i| opcodes[i] + u8::from(!end.is_empty())));
        let opcodes: Vec<u8> = opcodes.collect();
        self.cut(from, opcodes.try_into().unwrap(), psn, &payload, solicited, |first, last| {
            [if first { &start[..] } else { &[] }, if last { &end } else { &[] }].concat()
        })
    }

    /// A message cut by the MTU: the operation codes of First, Middle, Last and Only, and the headers of each.
    fn cut(
        &self,
        from: usize,
        opcodes: [u8; 4],
        psn: u32,
        payload: &[u8],
        solicited: bool,
        headers: impl Fn(bool, bool) -> Vec<u8>,
    ) -> Frames {
        let count = payload.len().div_ceil(self.mtu()).max(1);
        let packet = |i: usize| {
            let (first, last) = (i == 0, i + 1 == count);
            let opcode = opcodes[usize::from(!first) + usize::from(last && !first) + usize::from(first && last) * 3];
            let bytes = &payload[i * self.mtu()..payload.len().min((i + 1) * self.mtu())];
            self.packet(from, opcode, psn + i as u32, &headers(first, last), bytes, solicited && last)
        };
        (0..count).map(packet).collect()
    }

    fn packet(&self, from: usize, opcode: u8, psn: u32, headers: &[u8], payload: &[u8], solicited: bool) -> Vec<u8> {
        let mut bytes = frames::transport(opcode, self.world.ends.qps[1 - from], psn & 0xff_ffff, headers, payload);
        bytes[1] |= u8::from(solicited) << 7;
        frames::ethernet(&frames::ip(self.world.ends.addresses[from], self.world.ends.addresses[1 - from], &bytes))
    }
}
