// The wire between the nodes, and the packets on it. A packet that flies can be touched.

import { el } from "../player/dom.js";
import { rightNode } from "../player/run.js";
import { LOST } from "./schedule.js";

/** Packets closer than this, in milliseconds, are close. */
const CLOSE = 600;
/** How long a lost one takes to fade. */
const FADES = 400;

export class Stage {
  /** `touched(index)` is called with the packet that somebody touches. */
  constructor(touched) {
    this.touched = touched;
    this.says = el("p", { class: "wb-passes" });
    this.packets = el("div", { class: "wb-packets" });
    this.menu = el("div", { class: "wb-menu" });
    this.element = el(
      "div",
      { class: "wb-wire", role: "group", "aria-label": "The wire. A packet on it can be touched" },
      el("span", { class: "wb-way east" }), el("span", { class: "wb-way west" }), this.says, this.packets, this.menu,
    );
    this.flying = new Map();
    this.all = [];
  }

  load(data, schedule) {
    [this.data, this.schedule] = [data, schedule];
    this.flying.clear();
    this.packets.replaceChildren();
    const [right, last] = [rightNode(data), {}];
    this.all = schedule.flights.map((flight) => {
      const event = data.events[flight.index];
      const way = event.to === right ? "east" : "west";
      const isBelow = Boolean(last[way] && !last[way].isBelow && flight.begin - last[way].begin < CLOSE);
      return (last[way] = { ...flight, event, way, isBelow });
    });
  }

  /** Puts each packet that is under way to its place. */
  show(at) {
    for (const flight of this.all) {
      const flies = flight.begin <= at && at < flight.end;
      if (flies) this.put(flight, this.flying.get(flight) ?? this.launch(flight), at);
      else if (this.flying.has(flight)) this.land(flight);
    }
    const { passes } = this.schedule.time(at);
    const says = passes ? `${duration(passes)} go by, and nothing comes` : "";
    if (this.says.textContent !== says) this.says.textContent = says;
  }

  launch(flight) {
    const { event, way, isBelow, index, isLost } = flight;
    const [from, to] = [event.node, event.to].map((node) => this.data.nodes[node].split(" ")[0]);
    const about = isLost ? "lost" : event.text.includes("sent again") ? "again" : (/psn (\+?-?\d+)/.exec(event.text)?.[1] ?? "");
    const button = el(
      "button",
      {
        type: "button", class: `wb-packet rp-packet past ${event.sort} ${way}${isLost ? " lost" : ""}`,
        "aria-label": `${from} to ${to}: ${event.tag} ${event.text}. Touch it`, click: () => this.touched(index),
      },
      el("b", {}, event.tag.replace(/^RDMA /, "").replace(/ \(.*/, "")), el("small", {}, about),
    );
    const pill = { button, way: el("div", { class: `wb-flight ${way}${isBelow ? " below" : ""}` }, button) };
    this.flying.set(flight, pill);
    this.packets.append(pill.way);
    return pill;
  }

  /** It's moved along by a part of the wire's width, and back by that part of its own: nothing has to be measured for that. */
  put({ way, begin, end, stays, isLost }, pill, at) {
    const done = Math.min(1, (at - begin) / (stays - begin)) * (isLost ? LOST : 1);
    const along = `${((way === "east" ? done : 1 - done) * 100).toFixed(2)}%`;
    pill.way.style.transform = `translateX(${along})`;
    pill.button.style.transform = `translateX(-${along})`;
    if (isLost) pill.button.style.opacity = String(Math.min(1, (end - at) / FADES));
  }

  land(flight) {
    const { button, way } = this.flying.get(flight);
    // Whoever went there by key stays in the workbench.
    if (button === document.activeElement) this.element.closest(".wb").focus({ preventScroll: true });
    way.remove();
    this.flying.delete(flight);
  }
}

/** A time as people say it; it's given in microseconds. */
export function duration(us) {
  if (us >= 1e6) return `${Number((us / 1e6).toPrecision(3))} s`;
  if (us >= 1e3) return `${Number((us / 1e3).toPrecision(3))} ms`;
  return `${Number(us.toPrecision(3))} µs`;
}
