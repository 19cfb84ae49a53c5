//! The commands of `/dev/infiniband/uverbs0`: a program, or rather its libibverbs, writes them there with write(2), as
//! `rdma/ib_user_verbs.h` says. (Newer ones come by ioctl(2), which is answered with `ENOTTY`: libibverbs then falls back to
//! these.)
//!
//! A command is a header, the address for the response, and a struct; behind the struct of the response the driver's own stands,
//! here that of rxe. What the kernel refuses is refused with the same errno.

mod cq;
mod device;
mod memory;
mod multicast;
mod object;
mod qp;
mod srq;

use crate::abi::{command, Extended, ExtendedHeader, Header, QpDest, ReqNotifyCq, COMMAND, EXTENDED};
use crate::face::failed;
use crate::machine::{Asker, Call, FileId, Machine, Process, RESERVED};
use crate::node::{Context, Nic};
use bytemuck::{bytes_of, AnyBitPattern, Pod};
use nic::fact::Fact;
use object::Object;
use rustix::io::Errno;
use std::mem::size_of;
use std::os::fd::OwnedFd;

/// No command is longer, and no response.
const LONGEST: usize = 1024;

/// A command that a program has written.
pub struct Command<'a> {
    pub file: FileId,
    pub process: &'a Process,
    number: u32,
    row: CommandRow,
    extended: bool,
    /// Behind the headers and the response's address.
    input: Vec<u8>,
    response: u64,
    room: usize,
    call: &'a Call,
    machine: &'a Machine,
}

/// What a command has come to.
#[derive(Default)]
pub struct Done {
    response: Vec<u8>,
    /// What was made, and its handle: it goes again if the program was interrupted, for then it asks again.
    made: Option<(Object, u32)>,
    /// What goes once the program has heard that it is destroyed.
    doomed: Option<(Object, u32)>,
}

type Answer = Result<Done, Errno>;

impl Command<'_> {
    /// The command's struct. What the program has not sent is zero.
    fn input<T: AnyBitPattern>(&self) -> T {
        let mut bytes = vec![0; size_of::<T>()];
        bytes.iter_mut().zip(&self.input).for_each(|(to, from)| *to = *from);
        bytemuck::pod_read_unaligned(&bytes)
    }

    /// The command's name, the handle of what it is about, if it names one, and what it asks for.
    fn told(&self, nic: &Nic) -> Fact {
        let handle = self.row.about.and_then(|at| Some(split::<u32>(self.input.get(at..)?).ok()?.0));
        let call = Fact::new("call").with("call", command::name(self.number).unwrap_or_default());
        let call = call.maybe("about", handle);
        match self.number {
            command::REG_MR => memory::asks(call, self),
            command::DEREG_MR => memory::asks_of_end(call, nic, self),
            command::CREATE_CQ => cq::asks(call, self),
            command::DESTROY_CQ => cq::waiting(call, nic, self),
            command::MODIFY_QP => qp::asks(call, nic, self),
            _ => call,
        }
    }

    /// The one number of a command that has no more.
    fn handle(&self) -> u32 {
        self.input()
    }

    /// This response. That of an extended command also says its length.
    fn done<T: Pod>(&self, response: &T) -> Done {
        let (done, response_length) = (Done::with(response), (size_of::<T>() + size_of::<Extended>()) as u32);
        match self.extended {
            true => done.and(&Extended { comp_mask: 0, response_length }),
            false => done,
        }
    }

    /// Destroys what nothing else depends on.
    fn destroy(&self, nic: &Nic, object: Object) -> Answer {
        let handle = self.handle();
        let is_there = nic.of(object, self.file).contains(&handle);
        is_there.then(|| Done::default().dooms(object, handle)).ok_or(Errno::INVAL)
    }

    /// Gives the program a descriptor, with one of our numbers if there is room: so we hear when it's closed.
    fn give(&mut self, descriptor: &OwnedFd) -> Result<u32, Errno> {
        let mut ours = RESERVED.into_iter().flatten().filter(|number| self.process.inode(*number).is_err());
        let given = ours.next().ok_or(Errno::MFILE).and_then(|number| self.call.give_at(descriptor, number));
        given.or_else(|_| self.call.give(descriptor, true)).map(|number| number as u32)
    }

    fn context<'n>(&self, nic: &'n mut Nic) -> Result<&'n mut Context, Errno> {
        nic.contexts.get_mut(&self.file).ok_or(Errno::INVAL)
    }
}

impl Done {
    fn with(response: &impl Pod) -> Done {
        Done { response: bytes_of(response).to_vec(), ..Done::default() }
    }

    /// Adds what comes after it.
    fn and(mut self, more: &impl Pod) -> Done {
        self.response.extend_from_slice(bytes_of(more));
        self
    }

    fn made(self, object: Object, handle: u32) -> Done {
        Done { made: Some((object, handle)), ..self }
    }

    fn dooms(self, object: Object, handle: u32) -> Done {
        Done { doomed: Some((object, handle)), ..self }
    }
}

/// Answers a write(2) to the device file.
pub fn written(nic: &mut Nic, machine: &Machine, call: &Call, asker: &Asker) {
    let done = read(asker, call, machine).and_then(|mut command| {
        nic.crossing = nic.port.tap.talks.then(|| command.told(nic));
        let done = (command.row.act)(nic, &mut command)?;
        let length = done.response.len().min(command.room);
        if let Err(error) = asker.process.write(command.response, &done.response[..length]) {
            // Nobody knows its handle.
            done.made.into_iter().for_each(|(object, handle)| nic.destroy(object, handle));
            return Err(error);
        }
        Ok(done)
    });
    match &done {
        Ok(Done { made: Some((_, handle)), .. }) => {
            nic.tell_crossing(|call| call.with("made", "handle").with("handle", handle));
        }
        Ok(_) => nic.tell_crossing(|call| call.with("result", 0)),
        Err(error) => nic.tell_crossing(|call| failed(call, *error)),
    }
    match done {
        Ok(done) => {
            let was_heard = call.answer(Ok(asker.length as i64));
            let goes = if was_heard { done.doomed } else { done.made };
            goes.into_iter().for_each(|(object, handle)| nic.destroy(object, handle));
        }
        Err(error) => drop(call.answer(Err(error))),
    }
}

/// The queue that a command arms, if it is one that does.
pub fn arms(asker: &Asker) -> Option<u32> {
    let header: Header = asker.read(0).ok()?;
    let input: ReqNotifyCq = asker.read(size_of::<Header>()).ok()?;
    (header.command == command::REQ_NOTIFY_CQ).then_some(input.cq_handle)
}

/// Takes a command's headers off.
fn read<'a>(asker: &'a Asker, call: &'a Call, machine: &'a Machine) -> Result<Command<'a>, Errno> {
    let bytes = asker.bytes(LONGEST)?;
    let (header, rest) = split::<Header>(&bytes)?;
    let (number, extended) = (header.command & COMMAND, header.command & EXTENDED != 0);
    let row = row(number).ok_or(Errno::OPNOTSUPP)?;
    let (response, room, input) = if extended {
        let (second, rest) = split::<ExtendedHeader>(rest)?;
        (second.response, (usize::from(header.out_words) + usize::from(second.provider_out_words)) * 8, rest)
    } else if row.has_response {
        let (response, rest) = split::<u64>(rest)?;
        (response, usize::from(header.out_words) * 4, rest)
    } else {
        (0, 0, rest)
    };
    let (file, process, input) = (asker.file, &asker.process, input.to_vec());
    Ok(Command { file, process, number, row, extended, input, response, room, call, machine })
}

fn split<T: AnyBitPattern>(bytes: &[u8]) -> Result<(T, &[u8]), Errno> {
    let first = bytes.get(..size_of::<T>()).ok_or(Errno::INVAL)?;
    Ok((bytemuck::pod_read_unaligned(first), &bytes[first.len()..]))
}

type Act = fn(&mut Nic, &mut Command) -> Answer;

/// What a command does. It is `IB_USER_VERBS_CMD_` and its name in [`command`].
#[derive(Clone, Copy)]
struct CommandRow {
    /// The address of a response comes before its struct.
    has_response: bool,
    /// Where in its struct the handle stands of what it is about.
    about: Option<usize>,
    act: Act,
}

fn row(number: u32) -> Option<CommandRow> {
    use command::*;
    /// It makes something, or asks for something that has no handle.
    const NONE: Option<usize> = None;
    const FIRST: Option<usize> = Some(0);
    /// Behind two paths.
    const OF_MODIFY_QP: Option<usize> = Some(2 * size_of::<QpDest>());
    /// Behind a GID.
    const OF_MCAST: Option<usize> = Some(16);
    let (has_response, about, act): (bool, Option<usize>, Act) = match number {
        GET_CONTEXT => (true, NONE, device::get_context),
        QUERY_DEVICE => (true, NONE, device::query),
        QUERY_PORT => (true, NONE, device::query_port),
        ALLOC_PD => (true, NONE, memory::alloc_pd),
        DEALLOC_PD => (false, FIRST, memory::dealloc_pd),
        REG_MR => (true, NONE, memory::register),
        REREG_MR => (true, FIRST, memory::register_again),
        DEREG_MR => (false, FIRST, memory::deregister),
        ALLOC_MW => (true, FIRST, memory::allocate_window),
        DEALLOC_MW => (false, FIRST, |nic, command| command.destroy(nic, Object::Mw)),
        CREATE_COMP_CHANNEL => (true, NONE, cq::create_channel),
        CREATE_CQ => (true, NONE, cq::create),
        RESIZE_CQ => (true, FIRST, cq::resize),
        REQ_NOTIFY_CQ => (false, FIRST, cq::request_notification),
        DESTROY_CQ => (true, FIRST, cq::destroy),
        CREATE_QP => (true, NONE, qp::create),
        MODIFY_QP => (false, OF_MODIFY_QP, qp::modify),
        QUERY_QP => (true, FIRST, qp::query),
        DESTROY_QP => (true, FIRST, qp::destroy),
        POST_SEND => (true, FIRST, qp::post_send),
        CREATE_SRQ | CREATE_XSRQ => (true, NONE, srq::create),
        MODIFY_SRQ => (false, FIRST, srq::modify),
        QUERY_SRQ => (true, FIRST, srq::query),
        DESTROY_SRQ => (true, FIRST, srq::destroy),
        ATTACH_MCAST => (false, OF_MCAST, multicast::attach),
        DETACH_MCAST => (false, OF_MCAST, multicast::detach),
        CREATE_AH => (true, NONE, device::create_address_handle),
        DESTROY_AH => (false, FIRST, |nic, command| command.destroy(nic, Object::Ah)),
        _ => return None,
    };
    Some(CommandRow { has_response, about, act })
}
