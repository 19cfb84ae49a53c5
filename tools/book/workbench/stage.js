// The wire between the nodes, and the packets on it. A packet that flies can be touched.

import { el } from "../player/dom.js";
import { rightNode } from "../player/run.js";
import { LOST } from "./schedule.js";

/** Packets closer than this, in milliseconds, are close. */
const CLOSE = 600;
/** How long a lost one takes to fade, and how far from its time a packet may be before it's put right, in milliseconds. */
const FADES = 400;
const OFF = 50;

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

  /** Shows each packet that is under way. `rate` is how fast time passes now; 0 if it stands still. */
  show(at, rate) {
    for (const flight of this.all) {
      const flies = flight.begin <= at && at < flight.end;
      if (flies) this.move(this.flying.get(flight) ?? this.launch(flight), at - flight.begin, rate);
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
        "aria-label": `${event.tag} from ${from} to ${to}${isLost ? ", lost on its way" : about === "again" ? ", sent again" : ""}: touch it`, click: () => this.touched(index),
      },
      el("b", {}, event.tag.replace(/^RDMA /, "").replace(/ \(.*| Only$/, "")), el("small", {}, about),
    );
    const line = el("div", { class: `wb-flight ${way}${isBelow ? " below" : ""}` }, button);
    const pill = { button, way: line, moves: motions(flight).map(([moved, frames, timing]) => animation(moved === "line" ? line : button, frames, timing)) };
    this.flying.set(flight, pill);
    this.packets.append(pill.way);
    return pill;
  }

  /** While time passes, the browser moves a packet by itself; it's only put right if it's elsewhere than it should be. */
  move({ moves }, time, rate) {
    for (const move of moves) {
      const isOff = Math.abs((move.currentTime ?? 0) - time) > (rate ? OFF * rate : 0);
      if (isOff) move.currentTime = time;
      if (rate && move.playbackRate !== rate) move.playbackRate = rate;
      if (rate && move.playState === "paused") move.play();
      else if (!rate && move.playState !== "paused") move.pause();
    }
  }

  land(flight) {
    const { button, way } = this.flying.get(flight);
    // Whoever went there by key stays in the workbench.
    if (button === document.activeElement) this.element.closest(".wb").focus({ preventScroll: true });
    way.remove();
    this.flying.delete(flight);
  }
}

/** How a packet moves: along by the wire's width, and back by its own, so that nothing has to be measured. A lost one stops on its way,
 * and fades. Each is what moves, from where to where, and when; the browser does it without this page's script. */
function motions({ way, begin, end, stays, isLost }) {
  const part = isLost ? LOST : 1;
  const [from, to] = (way === "east" ? [0, part] : [1, 1 - part]).map((place) => place * 100);
  const timing = { duration: stays - begin };
  const fades = { delay: end - begin - FADES, duration: FADES };
  return [
    ["line", { transform: [`translateX(${from}%)`, `translateX(${to}%)`] }, timing],
    ["pill", { transform: [`translateX(${-from}%)`, `translateX(${-to}%)`] }, timing],
    ...(isLost ? [["pill", { opacity: [1, 0] }, fades]] : []),
  ];
}

function animation(element, frames, timing) {
  const made = element.animate(frames, { ...timing, fill: "both" });
  made.pause();
  return made;
}

/** A time as people say it; it's given in microseconds. */
export function duration(us) {
  if (us >= 1e6) return `${Number((us / 1e6).toPrecision(3))} s`;
  if (us >= 1e3) return `${Number((us / 1e3).toPrecision(3))} ms`;
  return `${Number(us.toPrecision(3))} µs`;
}
