//! A conversation as its programs mean it, and everything that may differ between two recordings of it.
//!
//! [`Script`] is what a comparison must notice, [`World`] what it must not; [`encode`] makes a capture of the two.

use crate::frames;

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// What a request does. Buffers are those of the peer.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    Send { bytes: Vec<u8>, immediate: Option<u32> },
    Write { length: usize, immediate: Option<u32>, buffer: usize, offset: u64 },
    Read { length: usize, buffer: usize, offset: u64 },
    FetchAdd { add: u64, buffer: usize, offset: u64 },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub from: usize,
    pub work: Work,
    pub solicited: bool,
    /// A NAK's syndrome, or 0.
    pub refused: u8,
    /// Uses a key that nobody announced.
    pub wrong_key: bool,
}

/// What two programs do.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub requests: Vec<Request>,
    /// Length of the buffers that each side announces before anything else.
    pub buffers: [Vec<u32>; 2],
    pub private_data: Vec<u8>,
    pub initiator_depth: u8,
    pub port_space: u8,
    /// A REJ with this reason instead of a REP.
    pub rejected: Option<u8>,
    pub ready_to_use: bool,
    pub hangs_up: Option<usize>,
    pub goodbye_answered: bool,
}

impl Script {
    pub fn of(requests: Vec<Request>) -> Script {
        Script {
            requests,
            buffers: [vec![4096], vec![4096, 65_536]],
            private_data: vec![1],
            initiator_depth: 1,
            port_space: 0x06,
            rejected: None,
            ready_to_use: true,
            hangs_up: Some(CLIENT),
            goodbye_answered: true,
        }
    }
}

/// What is new in every run, or is the network's and the devices' business.
#[derive(Clone, Debug)]
pub struct World {
    pub addresses: [&'static str; 2],
    pub qps: [u32; 2],
    pub ids: [u32; 2],
    /// The first PSN of each side's requests.
    pub psns: [u32; 2],
    /// Added to keys and addresses.
    pub key: u32,
    pub address: u64,
    pub mtu_code: u8,
    /// One ACK for so many requests.
    pub ack_every: usize,
    /// For each request, in turn: what the network does to it.
    pub weather: Vec<Weather>,
    /// For merging the two directions: whose packet comes next.
    pub turns: Vec<bool>,
    /// How often the REQ is repeated.
    pub req_again: usize,
    pub text: u8,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weather {
    Fine,
    /// The whole request is sent twice, because its ACK was lost.
    AckLost,
    /// The packet in the middle is lost before it is recorded: NAK, and again from there.
    PacketLost,
    /// No receive was posted, so many times.
    NotReady(u8),
    /// A READ is asked for again from its middle on.
    ResponseLost,
}

impl World {
    pub fn mtu(&self) -> usize {
        128 << self.mtu_code
    }

    pub fn key_of(&self, owner: usize, buffer: usize) -> u32 {
        0x100 + self.key + (owner * 16 + buffer) as u32 * 0x100
    }

    pub fn address_of(&self, owner: usize, buffer: usize) -> u64 {
        0x5500_0000_0000 + self.address + (owner * 16 + buffer) as u64 * 0x10_0000
    }
}

/// The frames of a capture.
pub fn encode(script: &Script, world: &World) -> Vec<Vec<u8>> {
    let mut encoder = Encoder { script, world, next: world.psns, frames: Vec::new() };
    if encoder.connect() {
        encoder.requests();
    }
    encoder.disconnect();
    encoder.frames
}

struct Encoder<'a> {
    script: &'a Script,
    world: &'a World,
    next: [u32; 2],
    frames: Vec<Vec<u8>>,
}

impl Encoder<'_> {
    fn connect(&mut self) -> bool {
        let (script, world) = (self.script, self.world);
        let [client, server] = world.ids.map(u32::to_be_bytes);
        let service = (0x0100_1d2f | u64::from(script.port_space) << 16).to_be_bytes();
        let three = |value: u32| value.to_be_bytes()[1..].to_vec();
        let (qp, psn) = (three(world.qps[CLIENT]), three(world.psns[SERVER]));
        let mtu = [world.mtu_code << 4 | 6];
        let request = [
            (0, &client[..]),
            (8, &service),
            (32, &qp),
            (35, &[3]),
            (39, std::slice::from_ref(&script.initiator_depth)),
            (44, &psn),
            (47, &[0xa7, 0xff, 0xff]),
            (50, &mtu),
            (176, &script.private_data),
        ];
        for _ in 0..=world.req_again {
            self.cm(CLIENT, 0x10, &request);
        }
        if let Some(reason) = script.rejected {
            self.cm(SERVER, 0x12, &[(0, &server), (4, &client), (10, &[0, reason]), (84, b"no")]);
            return false;
        }
        let (qp, psn) = (three(world.qps[SERVER]), three(world.psns[CLIENT]));
        self.cm(SERVER, 0x13, &[(0, &server), (4, &client), (12, &qp), (20, &psn), (24, &[3, 3, 0x7b, 0xe0])]);
        if script.ready_to_use {
            self.cm(CLIENT, 0x14, &[(0, &client), (4, &server)]);
        }
        true
    }

    fn cm(&mut self, from: usize, attribute: u16, body: &[(usize, &[u8])]) {
        let [src, dst] = self.ends(from);
        // A DREQ and its DREP have a transaction of their own.
        let transaction = u64::from(self.world.ids[CLIENT]) << 8 | u64::from(attribute == 0x15 || attribute == 0x16);
        let deth = [0x80, 0x01, 0, 0, 0, 0, 0, 1];
        let message = frames::cm(attribute, transaction, body);
        self.frames.push(frames::frame(src, dst, 0x64, 1, 77, &deth, &message));
    }

    fn ends(&self, from: usize) -> [&'static str; 2] {
        [self.world.addresses[from], self.world.addresses[1 - from]]
    }

    fn disconnect(&mut self) {
        if self.script.rejected.is_some() {
            return;
        }
        let ids = self.world.ids.map(u32::to_be_bytes);
        if let Some(from) = self.script.hangs_up {
            self.cm(from, 0x15, &[(0, &ids[from]), (4, &ids[1 - from])]);
            if self.script.goodbye_answered {
                self.cm(1 - from, 0x16, &[(0, &ids[1 - from]), (4, &ids[from])]);
            }
        }
    }

    /// First the announcements, the client's and then the server's; then the two directions in any order.
    fn requests(&mut self) {
        for owner in [CLIENT, SERVER] {
            let announcements = self.script.buffers[owner].iter().enumerate().map(|(buffer, length)| {
                let (address, key) = (self.world.address_of(owner, buffer), self.world.key_of(owner, buffer));
                let bytes = [&address.to_be_bytes()[..], &key.to_be_bytes(), &length.to_be_bytes()].concat();
                Request {
                    from: owner,
                    work: Work::Send { bytes, immediate: None },
                    solicited: false,
                    refused: 0,
                    wrong_key: false,
                }
            });
            let announcements: Vec<Request> = announcements.collect();
            let packets = self.direction(announcements.iter());
            self.frames.extend(packets);
        }
        let [client, server] = [CLIENT, SERVER].map(|from| {
            let requests = self.script.requests.iter().filter(|request| request.from == from);
            self.direction(requests)
        });
        self.merge(client, server);
    }

    fn merge(&mut self, client: Vec<Vec<u8>>, server: Vec<Vec<u8>>) {
        let (mut client, mut server) = (client.into_iter().peekable(), server.into_iter().peekable());
        let mut turns = self.world.turns.iter().copied().chain(std::iter::repeat(true));
        while client.peek().is_some() || server.peek().is_some() {
            let first = if turns.next() == Some(true) { &mut client } else { &mut server };
            if let Some(frame) = first.next() {
                self.frames.push(frame);
            } else {
                self.frames.extend(client.by_ref());
                self.frames.extend(server.by_ref());
            }
        }
    }

    /// The packets of one side's requests, and of the answers.
    fn direction<'r>(&mut self, requests: impl Iterator<Item = &'r Request>) -> Vec<Vec<u8>> {
        let requests: Vec<&Request> = requests.collect();
        let mut frames = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            let weather = self.world.weather[number % self.world.weather.len()];
            let last = number + 1 == requests.len();
            let due = last || request.refused != 0 || (number + 1) % self.world.ack_every == 0;
            frames.extend(self.request(request, weather, due));
            if request.refused != 0 {
                break;
            }
        }
        frames
    }

    fn request(&mut self, request: &Request, weather: Weather, due: bool) -> Vec<Vec<u8>> {
        let first = self.next[request.from];
        let packets = self.packets(request, first);
        let count = packets.len() as u32;
        let mut frames = Vec::new();
        match (&request.work, weather) {
            (Work::Read { length, .. }, _) => {
                let responses = length.div_ceil(self.world.mtu()).max(1) as u32;
                self.next[request.from] = (first + responses) & 0xff_ffff;
                frames.extend(packets);
                self.read_responses(request, first, *length, weather, &mut frames);
                return frames;
            }
            (Work::Send { .. }, Weather::NotReady(times)) => {
                for _ in 0..times {
                    frames.push(packets[0].clone());
                    frames.push(self.answer(request.from, first, 0x2c));
                }
                frames.extend(packets);
            }
            (_, Weather::PacketLost) if count > 1 => {
                let lost = count / 2;
                frames.extend_from_slice(&packets[..lost as usize]);
                frames.extend_from_slice(&packets[lost as usize + 1..]);
                if count > lost + 1 {
                    frames.push(self.answer(request.from, first + lost, 0x60));
                }
                frames.extend_from_slice(&packets[lost as usize..]);
            }
            (_, Weather::AckLost) => {
                frames.extend(packets.clone());
                frames.extend(packets);
            }
            _ => frames.extend(packets),
        }
        self.next[request.from] = (first + count) & 0xff_ffff;
        let last = first + count - 1;
        match (&request.work, request.refused) {
            (_, 1..) => frames.push(self.answer(request.from, last, request.refused)),
            (Work::FetchAdd { .. }, 0) => {
                let headers = [frames::aeth(0x1f, 1), vec![0; 8]].concat();
                frames.push(self.packet(1 - request.from, 0x12, last, &headers, &[], false));
            }
            (_, 0) if due => frames.push(self.answer(request.from, last, 0x1f)),
            _ => {}
        }
        frames
    }

    fn read_responses(
        &self,
        request: &Request,
        first: u32,
        length: usize,
        weather: Weather,
        frames: &mut Vec<Vec<u8>>,
    ) {
        if request.refused != 0 {
            frames.push(self.answer(request.from, first, request.refused));
            return;
        }
        let mtu = self.world.mtu();
        let data = vec![self.world.text; length];
        let count = length.div_ceil(mtu).max(1);
        let again = if weather == Weather::ResponseLost && count > 1 { count / 2 } else { 0 };
        let respond = |from: usize, to: usize, frames: &mut Vec<Vec<u8>>| {
            for i in from..to {
                let opcode = match (i == from, i + 1 == count) {
                    (true, true) => 0x10,
                    (true, false) => 0x0d,
                    (false, true) => 0x0f,
                    (false, false) => 0x0e,
                };
                let headers = if opcode == 0x0e { Vec::new() } else { frames::aeth(0x1f, 1) };
                let piece = &data[(i * mtu).min(length)..((i + 1) * mtu).min(length)];
                frames.push(self.packet(1 - request.from, opcode, first + i as u32, &headers, piece, false));
            }
        };
        if again > 0 {
            respond(0, again, frames);
            let Work::Read { length, buffer, offset } = request.work else { return };
            let rest = Work::Read { length: length - again * mtu, buffer, offset: offset + (again * mtu) as u64 };
            frames.extend(self.packets(&Request { work: rest, ..request.clone() }, first + again as u32));
        }
        respond(again, count, frames);
    }

    /// An ACK or NAK for a request of `requester`.
    fn answer(&self, requester: usize, psn: u32, syndrome: u8) -> Vec<u8> {
        self.packet(1 - requester, 0x11, psn, &frames::aeth(syndrome, 1), &[], false)
    }

    fn packet(&self, from: usize, opcode: u8, psn: u32, headers: &[u8], payload: &[u8], solicited: bool) -> Vec<u8> {
        let [src, dst] = self.ends(from);
        let mut bytes = frames::transport(opcode, self.world.qps[1 - from], psn & 0xff_ffff, headers, payload);
        bytes[1] |= u8::from(solicited) << 7;
        frames::ethernet(&frames::ip(src, dst, &bytes))
    }

    /// The packets of a request, cut by the MTU.
    fn packets(&self, request: &Request, psn: u32) -> Vec<Vec<u8>> {
        let from = request.from;
        let place = |buffer: usize, offset: u64| {
            let key = self.world.key_of(1 - from, buffer) + u32::from(request.wrong_key) * 0x77;
            (self.world.address_of(1 - from, buffer) + offset, key)
        };
        let (opcodes, reth, immediate, payload) = match &request.work {
            Work::Send { bytes, immediate } => ([0x00, 0x01, 0x02, 0x04], Vec::new(), *immediate, bytes.clone()),
            Work::Write { length, immediate, buffer, offset } => {
                let (va, key) = place(*buffer, *offset);
                let payload = vec![self.world.text; *length];
                ([0x06, 0x07, 0x08, 0x0a], frames::reth(va, key, *length as u32), *immediate, payload)
            }
            Work::Read { length, buffer, offset } => {
                let (va, key) = place(*buffer, *offset);
                let headers = frames::reth(va, key, *length as u32);
                return vec![self.packet(from, 0x0c, psn, &headers, &[], request.solicited)];
            }
            Work::FetchAdd { add, buffer, offset } => {
                let (va, key) = place(*buffer, *offset);
                let headers = frames::atomic_eth(va, key, *add, 0);
                return vec![self.packet(from, 0x14, psn, &headers, &[], request.solicited)];
            }
        };
        let mtu = self.world.mtu();
        let count = payload.len().div_ceil(mtu).max(1);
        let piece = |i: usize| {
            let (first, last) = (i == 0, i + 1 == count);
            let opcode = match (first, last) {
                (true, true) => opcodes[3],
                (true, false) => opcodes[0],
                (false, true) => opcodes[2],
                (false, false) => opcodes[1],
            };
            let immediate = immediate.filter(|_| last);
            let mut headers = if first { reth.clone() } else { Vec::new() };
            headers.extend(immediate.iter().flat_map(|data| data.to_be_bytes()));
            let bytes = &payload[(i * mtu).min(payload.len())..((i + 1) * mtu).min(payload.len())];
            let opcode = opcode + u8::from(immediate.is_some());
            self.packet(from, opcode, psn + i as u32, &headers, bytes, request.solicited && last)
        };
        (0..count).map(piece).collect()
    }
}
