// The wire between the nodes, and the packets on it. A packet that flies can be touched.

import { el } from "../player/dom.js";
import { rightNode } from "../player/run.js";

/** Where in the wire's height each direction has its way, and how far below it a packet flies that's close behind another. */
const WAYS = { east: 0.3, west: 0.74 };
const BELOW = 36;
const HEIGHT = 44;
/** Packets closer than this, in milliseconds, are close. */
const CLOSE = 600;

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
    new ResizeObserver(() => this.measure()).observe(this.packets);
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

  measure() {
    [this.width, this.height] = [this.packets.clientWidth, this.packets.clientHeight];
    for (const pill of this.flying.values()) pill.width = 0;
    if (this.schedule) this.show(this.at ?? 0);
  }

  /** Puts each packet that is under way to its place. */
  show(at) {
    this.at = at;
    for (const flight of this.all) {
      const flies = flight.begin <= at && at < flight.end;
      if (flies) this.put(flight, this.flying.get(flight) ?? this.launch(flight));
      else if (this.flying.has(flight)) this.land(flight);
    }
    const { passes } = this.schedule.time(at);
    this.says.textContent = passes ? `nobody acts: ${duration(passes)} pass` : "";
  }

  launch(flight) {
    const { event, way, index, isLost } = flight;
    const [from, to] = [event.node, event.to].map((node) => this.data.nodes[node].split(" ")[0]);
    const button = el(
      "button",
      {
        type: "button", class: `wb-packet rp-packet past ${event.sort} ${way}${isLost ? " lost" : ""}`,
        "aria-label": `${from} to ${to}: ${event.tag} ${event.text}. Touch it`, click: () => this.touched(index),
      },
      el("b", {}, event.tag.replace(/^RDMA /, "").replace(/ \(.*/, "")), el("small", {}, /psn (\+?-?\d+)/.exec(event.text)?.[1] ?? ""),
    );
    const pill = { button, width: 0 };
    this.flying.set(flight, pill);
    this.packets.append(button);
    return pill;
  }

  put({ way, isBelow, begin, end, until = 1, isLost }, pill) {
    pill.width ||= pill.button.offsetWidth;
    const done = (this.at - begin) / (end - begin);
    const along = done * until * (this.width - pill.width);
    const x = way === "east" ? along : this.width - pill.width - along;
    const y = WAYS[way] * this.height - HEIGHT / 2 + (isBelow ? BELOW : 0);
    pill.button.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
    if (isLost) pill.button.style.opacity = String(Math.min(1, (1 - done) * 4));
  }

  land(flight) {
    const { button } = this.flying.get(flight);
    // Whoever went there by key stays in the workbench.
    if (button === document.activeElement) this.element.closest(".wb").focus({ preventScroll: true });
    button.remove();
    this.flying.delete(flight);
  }
}

/** A time as people say it; it's given in microseconds. */
export function duration(us) {
  if (us >= 1e6) return `${Number((us / 1e6).toPrecision(3))} s`;
  if (us >= 1e3) return `${Number((us / 1e3).toPrecision(3))} ms`;
  return `${Number(us.toPrecision(3))} µs`;
}
