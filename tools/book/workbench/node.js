// A node: its program, its memory, and its NIC with queue pair and queues.

import { el } from "../player/dom.js";
import { Moment, isPacket } from "../player/run.js";
import { pair, region } from "../player/host.js";

/** How many lines of a program are shown, and how many completions. */
const LINES = 3;
const COMPLETIONS = 6;
/** How lines are tagged that say what a NIC decides. */
const NIC = "NIC";
/** How many bytes of a region are known before anything has come: as many as the picture has room for. */
const KNOWN = 256;

/** A run as one node sees it: its own events, and packets to it, in the order in which it sees them; and what's in its memory. */
class View extends Moment {
  constructor(data, node, order, memory, isPlaced) {
    const owners = new Map(data.events.flatMap(({ memory }) => memory ?? []).filter(({ what }) => what === "region").map((change) => [change.region, change.node]));
    const isOwn = (change) => (change.node ?? owners.get(change.region)) === node;
    // Of a packet's bytes, the sender's NIC reads them and the receiver's writes them; and each node has its own queue pairs.
    const own = ({ index }) => {
      const event = data.events[index];
      const isThere = (change) => isOwn(change) && (change.what !== "bytes" || change.read || isPlaced(index));
      return { ...event, index, memory: event.memory?.filter(isThere), qp: event.qp?.filter((state) => state.node === node) };
    };
    super({ ...data, events: order.map(own) });
    [this.node, this.memory] = [node, memory];
    this.reset();
  }

  reset() {
    super.reset();
    /** All bytes of the node, as far as its own program has written them. */
    this.bytes = this.memory?.bytes.slice();
  }

  next() {
    super.next();
    const { event } = this;
    for (const region of this.regions) {
      const { changed, bytes } = region ?? {};
      if (changed?.to) {
        region.last = { ...changed, index: event.index, how: `its NIC ${changed.read ? "reads" : "writes"}` };
        this.bytes.set(bytes.read(changed.from, changed.to - changed.from).map((byte) => parseInt(byte, 16)), this.offset(region) + changed.from);
      } else if (changed) {
        const from = this.offset(region);
        bytes.put(0, hex(this.bytes.subarray(from, from + Math.min(KNOWN, region.len))));
      }
    }
    if (!isPacket(event) && event.node === this.node) this.write(event);
  }

  offset(region) { return Number(BigInt(region.addr) - this.memory.address); }

  /** What a program puts into its own memory is there at once, also where it's registered already. */
  write({ text, index }) {
    const [, at, what] = /^into its own memory, at (\d+): (.*)/.exec(text) ?? [];
    if (!what) return;
    const written = content(what).subarray(0, this.bytes.length - at);
    this.bytes.set(written, Number(at));
    for (const region of this.regions.filter(Boolean)) {
      const from = Math.max(0, at - this.offset(region));
      const inside = this.bytes.subarray(this.offset(region) + from, Math.min(Number(at) + written.length, this.offset(region) + region.len));
      if (!inside.length || from > KNOWN) continue;
      region.bytes.put(from, hex(inside));
      region.last = { from, to: from + inside.length, index, how: "its program writes" };
    }
  }

  /** The regions, of which the one that was used last comes first; marked is what has happened since an event. */
  regionsSince(since) {
    const all = this.regionsOf(this.node).map((region, order) => ({ ...region, order, isFresh: !region.last, used: region.last?.index ?? -1 }));
    all.sort((one, other) => other.used - one.used || other.order - one.order);
    return all.map((region) => ({ ...region, changed: region.used >= since ? region.last : null }));
  }
}

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** The bytes of what a program says that it writes: a text, or where its memory is, which is an address, a key and a length. */
function content(what) {
  if (what.startsWith('"')) return new TextEncoder().encode(what.slice(1, -1));
  const [address, key, length] = what.matchAll(/=(\w+)/g).map(([, number]) => BigInt(number));
  const view = new DataView(new ArrayBuffer(16));
  view.setBigUint64(0, address);
  view.setUint32(8, Number(key));
  view.setUint32(12, Number(length));
  return new Uint8Array(view.buffer);
}

export class Node {
  constructor(side, name) {
    this.name = name;
    this.title = el("h3", {}, name);
    this.lane = el("ol", { class: "wb-lane", "aria-label": `What the ${name}'s program does` });
    this.memory = el("div", { class: "rp-memory", tabindex: 0, role: "region", "aria-label": `Memory of the ${name}` });
    this.nic = el("div", { class: "wb-nic" });
    const floor = (title, part) => el("div", { class: `wb-floor wb-of-${title.toLowerCase()}` }, el("h4", {}, title), part);
    this.element = el(
      "section",
      { class: `rp-pane rp-host rp-${side} wb-node wb-${side}`, "aria-label": name },
      el("header", {}, this.title), floor("program", this.lane), floor("memory", this.memory), floor("NIC", this.nic),
    );
  }

  /** `order` is what this node of the run sees, `queues` what's in its queues, see queues.js, `memory` what it holds at the beginning,
   * `dies` when it's switched off, `captions` what there is to say about each event, and `isPlaced` whether a packet's bytes were taken. */
  load(data, number, order, queues, memory, { dies, captions, isPlaced }) {
    [this.dies, this.captions] = [dies, captions];
    // What comes to a machine that's off changes nothing there.
    this.view = new View(data, number, order.filter(({ at }) => at <= dies), memory, isPlaced);
    this.queues = queues;
    this.shown = "";
    this.title.replaceChildren(this.name, el("small", {}, (data.nodes[number] ?? "").split(" ")[1] ?? ""));
  }

  /** Shows the moment at which it has seen `count` things. News is what has happened since an event of the run, if that has begun. */
  show(count, since, hasBegun, at) {
    const queues = this.queues.at(at);
    const isOff = at >= this.dies;
    const now = [count, since, hasBegun, isOff, queues.sends, queues.receives, queues.done.length].join();
    if (now === this.shown) return;
    this.shown = now;
    this.view.goto(Math.min(count, this.view.data.events.length));
    this.program(since, hasBegun, isOff);
    const regions = this.view.regionsSince(since).map(region);
    this.memory.replaceChildren(...(regions.length ? regions : [el("p", { class: "rp-none" }, "nothing is open to the NIC yet")]));
    const pairs = this.view.queuePairsOf(this.view.node).map((state) => pair(state, false));
    this.element.classList.toggle("dead", isOff);
    this.element.classList.toggle("stopped", this.view.queuePairsOf(this.view.node).some(({ state }) => state.includes("ERR")));
    const none = el("p", { class: "rp-none" }, "no queue pair yet");
    const fact = this.events(({ tag, index }) => tag === NIC && this.captions[index].short).at(-1);
    const short = isOff ? "off" : (fact?.index >= since ? this.captions[fact.index].short : "") || (pairs.length ? "connected, nothing to do" : "");
    this.nic.replaceChildren(...(pairs.length ? pairs : [none]), drawn(queues), el("p", { class: "wb-fact", title: fact?.text }, short));
  }

  /** The program's last lines. If it has done nothing since the reader's last act, that's what there is to see. */
  program(since, hasBegun, isOff) {
    const said = this.events((event) => event.stage && event.sort !== "info");
    const lines = said.slice(-LINES).map((event) => {
      const { short } = this.captions[event.index];
      return el(
        "li",
        { class: `${event.sort}${event.index < since ? " old" : ""}` },
        el("span", { class: "wb-call", title: event.text }, event.tag ? el("b", { class: "rp-tag" }, event.tag) : null, event.text),
        el("span", { class: "wb-short" }, short ?? event.text),
      );
    });
    const last = said.at(-1);
    const sleeps = hasBegun && !isOff && !said.some(({ index }) => index >= since) && !(last && this.captions[last.index].isWaiting);
    this.element.classList.toggle("sleeps", sleeps);
    const still = isOff ? "switched off" : sleeps ? "asleep: nothing wakes it" : null;
    this.lane.replaceChildren(...lines, ...(still ? [el("li", { class: "wb-asleep" }, still)] : []));
  }

  /** Of the lines that this node has said so far, some. */
  events(wanted) {
    const all = this.view.data.events.slice(0, this.view.count);
    return all.filter((event) => event.node === this.view.node && !isPacket(event) && wanted(event));
  }
}

/** The queues: one mark for each request that waits, and the last completions. */
function drawn({ sends, receives, done }) {
  const queue = (name, about, ...marks) => el("span", { class: "wb-queue", role: "img", "aria-label": about, title: about }, el("span", {}, name), ...marks);
  const waiting = (count) => el("b", {}, count > 8 ? `${count}` : "▮".repeat(count) || "–");
  const completion = ({ wr_id, name, status }) => el(
    "b", { class: status ? "bad" : "good", title: `wr_id=${wr_id} ${name}` }, status ? `✗${status}` : "✓",
  );
  return el(
    "p",
    { class: "wb-queues" },
    queue("send", `send queue: ${sends || "no"} request${sends === 1 ? "" : "s"} under way`, waiting(sends)),
    queue("receive", `receive queue: room for ${receives || "no"} message${receives === 1 ? "" : "s"}`, waiting(receives)),
    queue("completions", `completion queue: ${done.map(({ name }) => name).join(", ") || "nothing is done yet"}`, ...(done.length ? done.slice(-COMPLETIONS).map(completion) : [waiting(0)])),
  );
}
