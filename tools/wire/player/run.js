// A run at one moment: what the events up to there have made of queue pairs and memory.

import { Bytes } from "./bytes.js";

/** Goes forward event by event; back means from the beginning. */
export class Moment {
  constructor(data) {
    this.data = data;
    this.reset();
  }

  reset() {
    /** How many events have happened. */
    this.count = 0;
    this.queuePairs = new Map();
    this.regions = [];
    this.gone = [];
    this.packet = null;
    this.code = null;
  }

  /** The last event; null before the first. */
  get event() {
    return this.data.events[this.count - 1] ?? null;
  }

  goto(count) {
    if (count < this.count) this.reset();
    while (this.count < count) this.next();
  }

  next() {
    const event = this.data.events[this.count++];
    if (isPacket(event)) this.packet = event;
    if (event.code) this.code = event.code;
    for (const region of this.regions) region && (region.changed = null);
    for (const [key, state] of this.queuePairs) state.news && this.queuePairs.set(key, { ...state, news: false });
    for (const state of event.qp ?? []) {
      const key = `${state.node} ${state.qpn}`;
      const attributes = state.attributes || this.queuePairs.get(key)?.attributes || "";
      this.queuePairs.set(key, { ...state, attributes, before: this.queuePairs.get(key)?.state ?? "", news: true });
    }
    for (const change of event.memory ?? []) this.change(event, change);
  }

  change(event, change) {
    if (change.what === "gone") {
      this.gone[change.node] = change.count;
    } else if (change.what === "region") {
      const bytes = this.regions[change.region]?.bytes ?? new Bytes();
      this.regions[change.region] = { ...change, bytes, changed: { from: 0, to: 0, read: false } };
    } else {
      const region = this.regions[change.region];
      const hex = change.hex ?? event.bytes.slice(change.from * 2, (change.from + change.len) * 2);
      region.bytes.put(change.at, hex);
      region.changed = { from: change.at, to: change.at + hex.length / 2, read: change.read === true };
    }
  }

  /** The queue pairs of a node that are there. */
  queuePairsOf(node) {
    return [...this.queuePairs.values()].filter((state) => state.node === node && state.state);
  }

  /** The regions of a node. All are gone when as many were deregistered as registered. */
  regionsOf(node) {
    const all = this.regions.filter((region) => region?.node === node);
    return (this.gone[node] ?? 0) >= all.length ? [] : all;
  }
}

/** The states of a queue pair, in the order in which it passes them. */
export const STATES = ["RESET", "INIT", "RTR", "RTS", "ERR"];

export const isPacket = (event) => event.to !== undefined;

/** The value of a field, and what that means. */
export function field(event, [, bit, bits, way], text) {
  if (way === "text") return (text ?? "\t").split("\t");
  const [first, end] = [bit >> 3, (bit + bits + 7) >> 3];
  const hex = event.bytes.slice(first * 2, end * 2);
  if (hex.length < (end - first) * 2) return ["", "not in this page"];
  const number = (BigInt("0x" + hex) >> BigInt(end * 8 - bit - bits)) & ((1n << BigInt(bits)) - 1n);
  const value = way === "hex" ? "0x" + number.toString(16).padStart(Math.ceil(bits / 4), "0") : number.toString();
  return [value, text ?? ""];
}

/** The parts of a packet: title, start, length, and fields with name, first and last byte, value and meaning. */
export function parts(data, event) {
  return (event.parts ?? []).map(([number, about]) => {
    const { title, start, length, fields } = data.layouts[number];
    const texts = new Map();
    for (let i = 0; i < about.length; i += 2) texts.set(about[i], data.texts[about[i + 1]]);
    const named = fields.map((layout, place) => {
      const [value, meaning] = field(event, layout, texts.get(place));
      const [name, bit, bits] = layout;
      return { name, bit, bits, first: bit >> 3, end: (bit + bits + 7) >> 3, value, meaning };
    });
    return { title, start, length, fields: named };
  });
}

/** Who is drawn on the right; all others are on the left. */
export function rightNode(data) {
  const server = data.nodes.findIndex((name) => name.startsWith("server"));
  return server < 0 ? 1 : server;
}

/** The step of the lesson that an event belongs to. */
export const step = (event) => event.notes?.find((note) => note.startsWith("Step "));

/** An event as the log or the wire has it. */
export function sentence(data, event) {
  const name = (node) => data.nodes[node]?.split(" ")[0] ?? "";
  const lab = event.notes?.find((note) => note.startsWith("lab: "));
  if (isPacket(event)) return `${name(event.node)} → ${name(event.to)}: ${event.tag} ${event.text}${lab ? `; ${lab}` : ""}`;
  const who = name(event.node) ? `${name(event.node)}: ` : "";
  return who + [event.tag, event.text].filter(Boolean).join(" ");
}
