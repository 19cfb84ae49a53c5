// A run in the page's time. In the run's own time a packet is there after a microsecond, and a time-out takes a quarter of a second;
// here each thing takes as long as it takes to see it.

import { isPacket } from "../player/run.js";

/** All in milliseconds at speed 1: from a line to the next, and to one that only says more; from a packet to the next, a packet's
 * way, and how long a node takes to answer. */
const LINE = 170;
const NOTE = 60;
const NEXT = 330;
const FLIGHT = 1150;
const ANSWER = 220;
/** Where on its way a packet is when one stops there, and where a lost one ends; how long that one is seen there. */
const MIDDLE = 0.45;
export const LOST = 0.55;
const GONE = 1500;
/** How long a sentence stays at least: before the next one, and before a packet that says more about the same thing. */
const READS = 1300;
const SAID = 650;
/** What takes longer than this, in microseconds of the run, is a wait. */
const WAIT = 40;

/** `play` is what the player gets, `times` when each event was, in microseconds; `ways` says of each packet by its event when it
 * arrives: never if it's lost, twice if it's doubled; `captions` are the sentences that are read meanwhile. */
export class Schedule {
  constructor(play, times, ways, captions) {
    this.events = play.events;
    this.times = times;
    this.captions = captions;
    /** When the sentence began that's being read, and which one it is; when the last packet has come, or is gone. */
    this.reads = { at: -READS, says: null };
    this.quiet = 0;
    /** When each event begins. */
    this.begins = [];
    /** What's on the wire when: each with the event, and how often it arrives. */
    this.flights = [];
    /** For each node what it sees, and when: its own events as they begin, packets to it as they arrive. */
    this.sees = play.nodes.map(() => []);
    /** Where one can stop, in their order: the middle of a packet's way, its arrival, a line. */
    this.stops = [{ at: 0, index: -1 }];
    /** For each node the packets to it: when they arrive in both times. */
    this.arrivals = play.nodes.map(() => []);
    let at = 0;
    for (const [index, event] of this.events.entries()) {
      const next = Math.max(this.next(index, at), this.answers(event, times[index]));
      at = Math.max(next, this.read(index, next));
      this.begins.push(at);
      const { says, isWaiting } = captions[index];
      if (says && !isWaiting && says !== this.reads.says) this.reads = { at, says };
      this.sees[event.node]?.push({ at, index, time: times[index] });
      // A copy that the wire has made is recorded as well, but it flies with the packet that it's a copy of.
      if (ways.has(index)) this.fly(index, at, ways.get(index));
      else if (!isNote(event) || captions[index].says) this.stops.push({ at, index });
    }
    for (const list of [...this.sees, this.stops]) list.sort((one, other) => one.at - other.at);
    // Of what happens at once, one stops at the last.
    this.stops = this.stops.filter(({ at }, place, all) => !(all[place + 1]?.at - at < 1));
    // What a NIC decides last is no stop of its own, and is seen at the end.
    this.length = Math.max(this.stops.at(-1).at, this.begins.at(-1) ?? 0);
    /** When something is to be drawn. */
    this.changes = [...this.begins, ...this.flights.flatMap(({ begin, end }) => [begin, end]), ...this.sees.flat().map(({ at }) => at)].sort((one, other) => one - other);
  }

  /** The next moment at which something is to be drawn. */
  change(at) { return this.changes[after(this.changes, at, (change) => change)] ?? this.length; }

  fly(index, begin, arrives) {
    const { node, to } = this.events[index];
    if (!arrives.length) {
      const end = begin + FLIGHT * LOST;
      this.flights.push({ index, begin, end: end + GONE, stays: end, isLost: true });
      this.stops.push({ at: end, index });
      this.quiet = Math.max(this.quiet, end + GONE);
    }
    for (const [copy, time] of arrives.entries()) {
      const start = begin + copy * NEXT;
      const end = start + FLIGHT + waited(time - this.times[index]);
      this.flights.push({ index, begin: start, end, stays: end, isLost: false });
      this.quiet = Math.max(this.quiet, end);
      this.stops.push({ at: start + (end - start) * MIDDLE, index }, { at: end, index });
      if (to !== node) this.sees[to]?.push({ at: end, index, time });
      this.arrivals[to]?.push({ time, end });
    }
  }

  /** When a node can do at the earliest what it does at a time of the run: what arrived before has then been seen to arrive. What its
   * NIC decides about that is there at once. */
  answers(event, time) {
    const before = (this.arrivals[event.node] ?? []).filter((arrival) => arrival.time <= time);
    return Math.max(0, ...before.map(({ end }) => end + (isNote(event) ? 0 : ANSWER)));
  }

  /** When an event begins after the one before it. If time passes between them, what was on the wire is gone before that. */
  next(index, at) {
    const [before, event] = [this.events[index - 1], this.events[index]];
    if (!before) return 0;
    const usual = isPacket(event) ? (isPacket(before) ? NEXT : LINE) : isNote(event) ? NOTE : LINE;
    const passes = waited(this.times[index] - this.times[index - 1]);
    return (passes ? Math.max(at, this.quiet) : at) + usual + passes;
  }

  /** When the sentence before an event, which could begin at `next`, has been read. While packets are under way there's no waiting for
   * that, since they'd stand still. */
  read(index, next) {
    const { says } = this.captions[index];
    const { at } = this.reads;
    if (!says || says === this.reads.says || this.quiet > next) return 0;
    return at + (isPacket(this.events[index]) ? SAID : READS);
  }

  /** When one sees what happens at a node at a time of the run. */
  when(node, time) { return this.sees[node].find((seen) => seen.time >= time)?.at ?? this.length; }

  /** How many events have begun, and how many things a node has seen. */
  begun(at) { return after(this.begins, at, (begin) => begin); }

  seenBy(node, at) { return after(this.sees[node] ?? [], at, (seen) => seen.at); }

  /** The stop before a moment, or the one after it. */
  stop(at, way) {
    const near = 0.5;
    if (way > 0) return this.stops.find((stop) => stop.at > at + near)?.at ?? this.length;
    return this.stops.findLast((stop) => stop.at < at - near)?.at ?? 0;
  }

  /** Between which stops one is, as a number for a slider. */
  place(at) { return Math.max(0, after(this.stops, at + 0.5, (stop) => stop.at) - 1); }

  /** The time of the run, in microseconds, and how much of it passes now with nobody acting. */
  time(at) {
    const index = this.begun(at) - 1;
    if (index < 0) return { now: 0, passes: 0 };
    const [time, next] = [this.times[index], this.times[index + 1] ?? this.times[index]];
    const done = (at - this.begins[index]) / Math.max(1, (this.begins[index + 1] ?? at) - this.begins[index]);
    const quiet = waited(next - time) && !this.flights.some(({ begin, end }) => begin <= at && at < end);
    return { now: time + (next - time) * Math.min(1, done), passes: quiet ? next - time : 0 };
  }
}

/** What a NIC decides, and what programs print about a call. */
export const isNote = ({ sort }) => sort === "quiet" || sort === "info";

/** How long one looks at time that passes, in microseconds of the run: the longer it is the longer, but not as long as it is. */
const waited = (passes) => (passes > WAIT ? Math.min(1500, 350 + 220 * Math.log10(passes / WAIT)) : 0);

/** How many of a sorted list aren't after a moment. */
export function after(list, at, key) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
