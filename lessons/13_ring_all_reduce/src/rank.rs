//! A rank, from its first knock to its last goodbye. All do the same; only the meeting has two roles.

use std::{os::fd::AsFd, time::Duration, time::Instant};

use common::{args::Args, cm::*, cm_event_type::CmEventType, deadline::Deadline, error::Kind, *};

use crate::meeting::{resolve, Door, Seat};
use crate::plan::{in_the_rings_order, to_bytes, to_numbers};
use crate::ring::{Ring, LEFT, RIGHT};
use crate::{conn_param, ACK_TIMEOUT, KNOCK};

pub fn run(args: &Args, listen_on: &str, find_seat: fn(&mut Door, &Args) -> Result<Seat>) -> Result<()> {
    let mut door = Door::listen(listen_on, args.port)?;
    let seat = find_seat(&mut door, args)?;
    let events = EventChannel::create()?;
    let id = resolve(&events, &seat.right, args.port)?;
    let mut ring = Ring::create(&id, &seat, &door)?;
    knock_right(&mut ring, id, events)?;
    accept_left(&mut ring)?;
    join(&mut ring)?;
    let started = Instant::now();
    ring.reduce_scatter()?;
    ring.all_gather()?;
    ring.finish()?;
    let verdict = report(&ring, started.elapsed());
    disconnect(&ring)?;
    verdict
}

/// Knocks, and doesn't wait for the answer yet. All ranks knock at the same time. If each waited for its right neighbour's
/// answer before it answered its left one, they'd wait for each other all round the ring.
fn knock_right(ring: &mut Ring, id: CmId, events: EventChannel) -> Result<()> {
    let _stage = stage("knock_right");
    let Seat { rank, plan, .. } = ring.seat;
    ring.link(plan.right_of(*rank), id, events)?;
    ring.links[RIGHT].id.connect(&conn_param(format!("{KNOCK} {rank}").into()))
}

fn accept_left(ring: &mut Ring) -> Result<()> {
    let _stage = stage("accept_left");
    let rank = ring.seat.plan.left_of(ring.seat.rank);
    let deadline = Deadline::answer(format!("rank {rank}: its knock"));
    let (id, asked) = ring.door.wait_for(&format!("{KNOCK} {rank}\0"), &deadline)?;
    // Its events get a channel of their own, so that nobody takes them for another's.
    let events = EventChannel::create()?;
    id.migrate_id(&events)?;
    ring.link(rank, id, events)?;
    let id = &ring.links[LEFT].id;
    id.set_ack_timeout(ACK_TIMEOUT)?;
    let private_data = [&ring.vector, &ring.slots].map(|region| Metadata::of(region).encode()).concat();
    id.accept(&conn_param(private_data).clamped_to(&asked))
}

/// Waits until the right neighbour has answered and the left one has our answer. The right one's answer says where its memory
/// is.
fn join(ring: &mut Ring) -> Result<()> {
    let _stage = stage("join");
    let event = await_event(ring, RIGHT, RDMA_CM_EVENT_ESTABLISHED)?;
    let slots = event.private_data().get(Metadata::LEN..).unwrap_or_default();
    ring.theirs = [Metadata::decode(event.private_data())?, Metadata::decode(slots)?];
    event.ack();
    await_event(ring, LEFT, RDMA_CM_EVENT_ESTABLISHED).map(|event| event.ack())
}

/// Each says goodbye to its right neighbour, and answers its left one.
fn disconnect(ring: &Ring) -> Result<()> {
    let _stage = stage("disconnect");
    ring.links[RIGHT].id.disconnect()?;
    await_event(ring, LEFT, RDMA_CM_EVENT_DISCONNECTED)?.ack();
    ring.links[LEFT].id.disconnect()?;
    await_event(ring, RIGHT, RDMA_CM_EVENT_DISCONNECTED).map(|event| event.ack())
}

/// Like `EventChannel::wait_for`, but an error names the rank, and whoever knocks meanwhile gets an answer.
fn await_event(ring: &Ring, from: usize, wanted: CmEventType) -> Result<CmEvent> {
    let link = &ring.links[from];
    let here = ring.door.wait_readable(&[link.events.as_fd()], &Deadline::answer(wanted.to_string()));
    here.and_then(|()| link.events.wait_for(wanted)).map_err(|error| link.blame(&error))
}

/// Reports what happened, each number after its name, and fails if the sum isn't what one process gets alone.
fn report(ring: &Ring, all: Duration) -> Result<()> {
    let _stage = stage("report");
    let (Seat { rank, plan, .. }, [right, left]) = (ring.seat, [RIGHT, LEFT].map(|which| &ring.links[which]));
    let ms = [all, left.waited, right.waited].map(|time| time.as_secs_f64() * 1e3);
    let sum = to_numbers(&ring.vector.read(0..plan.bytes())?);
    say!("rank {rank}: began with {}", show(&plan.before(*rank)));
    say!("rank {rank}: ends with seal {:08x}, {}", seal(&sum), show(&sum));
    let (bytes, due) = (plan.bytes(), 2.0 * plan.half() as f64 / plan.ranks as f64);
    let share = right.bytes as f64 / bytes.max(1) as f64;
    let sent = format!("{} bytes in {} WRITEs", right.bytes, right.slices);
    say!("rank {rank}: sent {sent}, {share:.3} × its {bytes}; 2(N-1)/N is {due:.3}");
    let waited = format!("{:.1} ms for rank {}, {:.1} ms for room at rank {}", ms[1], left.rank, ms[2], right.rank);
    say!("rank {rank}: took {:.1} ms, waited {waited}", ms[0]);
    let alone = in_the_rings_order(plan);
    let wrong = sum.iter().zip(alone).filter(|(ours, alone)| ours.to_bits() != alone.to_bits()).count();
    if wrong > 0 {
        let what = format!("rank {rank}: {wrong} of {} numbers are not those that one process gets alone", sum.len());
        return Err(Error::of(Kind::Other, what, "Did a slot change before it was added?"));
    }
    say!("SUCCESS, rank {rank}: the same to the bit as one process gets in the ring's order");
    Ok(())
}

/// The first numbers of a vector.
fn show(numbers: &[f32]) -> String {
    let first: Vec<String> = numbers.iter().take(8).map(f32::to_string).collect();
    first.join(" ") + if numbers.len() > 8 { " …" } else { "" }
}

/// FNV-1a with 32 bits: vectors with the same seal are the same, for people who compare by eye.
fn seal(numbers: &[f32]) -> u32 {
    to_bytes(numbers).iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
