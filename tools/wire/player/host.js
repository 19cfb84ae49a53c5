// A machine: the states of its queue pairs, and its memory.

import { bring, el } from "./dom.js";
import { STATES } from "./run.js";

/** So many queue pairs of a machine are shown. */
const PAIRS = 3;
/** Bytes of a region that are shown at a time, and in one group. */
const SHOWN = 64;
const GROUP = 4;

export class Host {
  constructor(data, side) {
    this.data = data;
    this.name = el("h3", {});
    this.pairs = el("div", { class: "rp-pairs" });
    this.memory = el("div", { class: "rp-memory", tabindex: 0, role: "region" });
    this.element = el("section", { class: `rp-pane rp-host rp-${side}` }, el("header", {}, this.name, this.pairs), this.memory);
  }

  show(moment, node) {
    const [name, address] = (this.data.nodes[node] ?? "").split(" ");
    this.name.replaceChildren(name ?? "", el("small", {}, address ?? ""));
    this.memory.setAttribute("aria-label", `Memory of the ${name}`);
    const pairs = moment.queuePairsOf(node);
    const more = pairs.length > PAIRS ? [el("p", { class: "rp-none" }, `and ${pairs.length - PAIRS} more queue pairs`)] : [];
    const drawn = pairs.slice(-PAIRS).map((state) => pair(state, pairs.length === 1));
    this.pairs.replaceChildren(...(drawn.length ? [...drawn, ...more] : [el("p", { class: "rp-none" }, "no queue pair")]));
    const regions = moment.regionsOf(node);
    const gone = moment.gone[node] ?? 0;
    const blocks = regions.map(region).reverse();
    this.memory.replaceChildren(
      ...(blocks.length ? blocks : [el("p", { class: "rp-none" }, "no memory registered")]),
      ...(blocks.length && gone ? [el("p", { class: "rp-none" }, `${gone} of these ${regions.length} deregistered by now`)] : []),
    );
    const changed = this.memory.querySelector(".changed");
    if (changed) bring(this.memory, changed, false, 0);
    return pairs.some((state) => state.news) || changed !== null;
  }
}

export function pair(state, alone) {
  const words = state.state.startsWith("left") ? [] : state.state.split(" ");
  const pills = STATES.map((name) => {
    const on = words.includes(name);
    return el("li", { class: on ? "on" : "", "aria-current": on ? "true" : null }, name);
  });
  const other = STATES.some((name) => words.includes(name)) ? "" : ` · ${state.state}`;
  const source = state.implied ? "as the packets imply" : state.attributes;
  return el(
    "div",
    { class: `rp-pair${state.news ? " changed" : ""}`, title: source },
    el("span", {}, `QP ${state.qpn}${other}`),
    el("ol", { "aria-label": `State of queue pair ${state.qpn}: ${state.state}` }, ...pills),
    alone && source ? el("small", { class: "rp-attributes" }, source) : null,
  );
}

export function region(region) {
  const { changed } = region;
  const rkey = region.rkey && region.rkey !== "0x0" ? el("span", { class: "rp-key" }, `rkey ${region.rkey}`) : null;
  const how = changed && changed.to > changed.from ? el("em", {}, changed.how ?? (changed.read ? "its device reads" : "its device writes")) : null;
  return el(
    "div",
    { class: `rp-region${changed ? " changed" : ""}${changed?.read ? " read" : ""}` },
    el("p", {}, el("b", {}, region.addr), ` ${region.len} bytes `, rkey),
    el("p", { class: "rp-access" }, region.access.replaceAll("|", " "), how),
    content(region),
  );
}

/** The bytes that are known, from the last change on if there are many; of a fresh region nobody has written one yet. */
function content({ bytes, len, changed, isFresh }) {
  if (!bytes.end) return el("p", { class: "rp-none" }, "content not seen yet");
  const first = changed && changed.to > SHOWN ? changed.from : bytes.start;
  const start = first < SHOWN ? 0 : Math.floor(first / GROUP) * GROUP;
  const shown = bytes.read(start, Math.max(0, Math.min(SHOWN, bytes.end - start)));
  const used = shown.slice(0, shown.findLastIndex((byte) => byte !== "00") + 1);
  const text = used.length > 3 && used.every((byte) => byte !== null && byte >= "20" && byte < "7f");
  const more = len - start - shown.length;
  const rest = el("span", { class: "rp-none" }, start ? `from byte ${start}; ` : "", more > 0 ? `… ${more} more bytes` : "");
  if (text) return el("p", { class: "rp-text" }, `“${used.map((hex) => String.fromCharCode(parseInt(hex, 16))).join("")}” `, rest);
  if (isFresh && !used.length) return el("p", { class: "rp-none" }, "nothing but zeros so far ", rest);
  const groups = [];
  for (let at = 0; at < shown.length; at += GROUP) groups.push(shown.slice(at, at + GROUP).map((byte) => byte ?? "··").join(" "));
  return el("p", { class: "rp-hex" }, ...groups.map((group) => el("span", {}, group)), rest);
}
