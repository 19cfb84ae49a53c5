// The ladder: the client's log on the left, the server's on the right, and the packets between them, from top to bottom.

import { bring, el } from "./dom.js";
import { isPacket, rightNode } from "./run.js";

export class Ladder {
  constructor(data, goto) {
    const right = rightNode(data);
    const [stages, regions] = [[], []];
    this.rows = data.events.map((event, index) => {
      const again = stages[event.node] === event.stage;
      if (!isPacket(event) && event.stage) stages[event.node] = event.stage;
      for (const change of event.memory ?? []) if (change.what === "region") regions[change.region] = change;
      const row = isPacket(event) ? packet(data, event, right, regions) : line(data, event, right, !again);
      row.addEventListener("click", () => goto(index + 1));
      return row;
    });
    this.element = el(
      "div",
      { class: "rp-ladder", tabindex: 0, role: "region", "aria-label": "Logs of both sides, and the packets between them" },
      el("ol", {}, ...this.rows),
    );
    this.shown = 0;
  }

  /** So many events have happened. */
  show(count, smooth) {
    const [from, to] = [Math.min(count, this.shown), Math.max(count, this.shown)];
    for (let i = Math.max(0, from - 1); i < Math.min(to + 1, this.rows.length); i++) this.rows[i].classList.remove("now");
    for (let i = from; i < to; i++) this.rows[i].classList.toggle("past", i < count);
    this.rows[this.shown - 1]?.removeAttribute("aria-current");
    const now = this.rows[count - 1];
    now?.classList.add("now");
    now?.setAttribute("aria-current", "step");
    this.shown = count;
    this.bring(smooth);
  }

  /** Shows the last event. */
  bring(smooth = false) {
    const now = this.rows[this.shown - 1];
    if (now) bring(this.element, now, smooth, 0.6);
    else this.element.scrollTop = 0;
  }
}

function line(data, event, right, begins) {
  const who = many(data) && event.node !== right ? data.nodes[event.node].split(" ")[0] : "";
  return el(
    "li",
    { class: `rp-line ${data.nodes[event.node] ? (event.node === right ? "rp-right" : "rp-left") : "rp-both"} ${event.sort}`, "data-n": event.n },
    el("span", { class: "rp-n" }, String(event.n)),
    el(
      "span",
      { class: "rp-said" },
      who ? el("b", { class: "rp-who" }, who) : null,
      begins && event.stage ? el("i", { class: "rp-stage" }, event.stage) : null,
      event.tag ? el("b", { class: "rp-tag" }, event.tag) : null,
      el("span", {}, event.text),
    ),
  );
}

/** At the ends of a packet's arrow: the memory that its bytes come from, and where they go. */
function ends(event, right, regions) {
  const moved = (event.memory ?? []).filter(({ what }) => what === "bytes" || what === "value");
  const end = (read) => {
    const change = moved.find((change) => (change.read ?? false) === read);
    if (!change) return null;
    const { node, addr } = regions[change.region];
    const [count, place] = [change.len ?? change.hex.length / 2, `0x${(BigInt(addr) + BigInt(change.at)).toString(16)}`];
    const what = read ? `${count} bytes read at ` : `${count} bytes written at `;
    return el("span", { class: `rp-end ${node === right ? "rp-at-right" : "rp-at-left"}` }, what, el("b", {}, place));
  };
  return moved.length ? el("span", { class: "rp-ends" }, end(true), end(false)) : null;
}

function packet(data, event, right, regions) {
  const name = (node) => data.nodes[node].split(" ")[0];
  const lost = event.notes?.some((note) => note.startsWith("lab: dropped"));
  const way = event.to === right ? "east" : "west";
  return el(
    "li",
    { class: `rp-packet ${way} ${event.sort}${lost ? " lost" : ""}`, "data-n": event.n },
    el("span", { class: "rp-n" }, String(event.n)),
    el(
      "span",
      { class: "rp-wire" },
      el(
        "span",
        { class: "rp-label" },
        el("span", { class: "rp-spoken" }, `${name(event.node)} to ${name(event.to)}: `),
        many(data) ? `${name(event.node === right ? event.to : event.node)} · ` : null,
        el("b", {}, event.tag),
        el("small", {}, event.text),
      ),
    ),
    ends(event, right, regions),
    ...(event.notes ?? []).filter((note) => note.startsWith("lab: ")).map((note) => el("span", { class: "rp-note" }, note)),
  );
}

/** Whether there are several on the left, whose names must be told. What the lab says of the whole run has no name. */
const many = (data) => data.nodes.filter(Boolean).length > 2;
