// A node: its program, its memory, and its NIC with queue pair and queues.

import { el } from "../player/dom.js";
import { Moment, isPacket } from "../player/run.js";
import { pair, region } from "../player/host.js";

/** How many lines of a program are shown, and how many completions. */
const LINES = 3;
const COMPLETIONS = 6;
/** How lines are tagged that say what a NIC decides. */
const NIC = "NIC";

/** A run as one node sees it: its own events, and packets to it, in the order in which it sees them. */
class View extends Moment {
  constructor(data, node, order) {
    const owners = new Map(data.events.flatMap(({ memory }) => memory ?? []).filter(({ what }) => what === "region").map((change) => [change.region, change.node]));
    const isOwn = (change) => (change.node ?? owners.get(change.region)) === node;
    // Of a packet's bytes, the sender's NIC reads them and the receiver's writes them; and each node has its own queue pairs.
    const own = ({ index }) => {
      const event = data.events[index];
      return { ...event, index, memory: event.memory?.filter(isOwn), qp: event.qp?.filter((state) => state.node === node) };
    };
    super({ ...data, events: order.map(own) });
    this.node = node;
  }

  next() {
    super.next();
    for (const region of this.regions) if (region?.changed?.to) region.last = { ...region.changed, index: this.event.index };
  }

  /** The regions, of which the one that was used last comes first; marked is what has happened since an event. */
  regionsSince(since) {
    const all = this.regionsOf(this.node).map((region, order) => ({ ...region, order, used: region.last?.index ?? -1 }));
    all.sort((one, other) => other.used - one.used || other.order - one.order);
    return all.map((region) => ({ ...region, changed: region.used >= since ? region.last : null }));
  }
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

  /** `order` is what this node of the run sees, `queues` what's in its queues, see queues.js, `dies` when it's
   * switched off, and `polls` at which events its program begins to wait. */
  load(data, number, order, queues, { dies, polls }) {
    [this.dies, this.polls] = [dies, polls];
    this.view = new View(data, number, order);
    this.queues = queues;
    this.shown = "";
    this.title.replaceChildren(this.name, el("small", {}, (data.nodes[number] ?? "").split(" ")[1] ?? ""));
  }

  /** Shows the moment at which it has seen `count` things. News is what has happened since an event of the run. */
  show(count, since, at) {
    const queues = this.queues.at(at);
    this.element.classList.toggle("dead", at >= this.dies);
    const now = [count, since, queues.sends, queues.receives, queues.done.length].join();
    if (now === this.shown) return;
    this.shown = now;
    this.view.goto(count);
    this.program(since);
    const regions = this.view.regionsSince(since).map(region);
    this.memory.replaceChildren(...(regions.length ? regions : [el("p", { class: "rp-none" }, "none registered")]));
    const pairs = this.view.queuePairsOf(this.view.node).map((state) => pair(state, false));
    const none = el("p", { class: "rp-none" }, "no queue pair");
    const fact = this.events(({ tag }) => tag === NIC).at(-1)?.text ?? "";
    this.nic.replaceChildren(...(pairs.length ? pairs : [none]), drawn(queues), el("p", { class: "wb-fact", title: fact }, fact));
  }

  /** The program's last lines. If it has done nothing since the reader's last act, that's what there is to see. */
  program(since) {
    const said = this.events((event) => event.stage && event.sort !== "info");
    const lines = said.slice(-LINES).map((event) => el(
      "li",
      { class: `${event.sort}${event.index < since ? " old" : ""}`, title: event.text },
      event.tag ? el("b", { class: "rp-tag" }, event.tag) : null, event.text,
    ));
    const sleeps = !said.some(({ index }) => index >= since) && !this.polls.has(said.at(-1)?.index);
    this.element.classList.toggle("sleeps", sleeps);
    this.lane.replaceChildren(...lines, ...(sleeps ? [el("li", { class: "wb-asleep" }, "asleep: nobody calls it")] : []));
  }

  /** Of the lines that this node has said so far, some. */
  events(wanted) {
    const all = this.view.data.events.slice(0, this.view.count);
    return all.filter((event) => event.node === this.view.node && !isPacket(event) && wanted(event));
  }
}

/** The queues: one mark for each request that waits, and the last completions. */
function drawn({ sends, receives, done }) {
  const queue = (name, about, ...marks) => el("span", { class: "wb-queue", title: about }, el("span", {}, name), ...marks);
  const waiting = (count) => el("b", {}, count > 8 ? `${count}` : "▮".repeat(count) || "–");
  const completion = ({ wr_id, name, status }) => el(
    "b", { class: status ? "bad" : "good", title: `wr_id=${wr_id} ${name}` }, status ? `✗${status}` : "✓",
  );
  return el(
    "p",
    { class: "wb-queues" },
    queue("send", `send queue: ${sends} work requests aren't done`, waiting(sends)),
    queue("receive", `receive queue: ${receives} receives wait for a message`, waiting(receives)),
    queue("completions", `completion queue: ${done.length} so far`, ...(done.length ? done.slice(-COMPLETIONS).map(completion) : [waiting(0)])),
  );
}
