// What there is to do, as buttons and small forms. Each of them writes a line of the script, and does nothing else.

import { el } from "../player/dom.js";
import { Form, check, choice, number, text, when } from "./form.js";

const PEER = { client: "server", server: "client" };
const RIGHTS = ["LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC"];
/** What's between an operation and the peer's offset. */
const TO = { WRITE: "to", READ: "from", FETCH_ADD: "at" };

const bytes = ({ from, length }) => `${from}..${from + length}`;
const words = (...all) => all.filter(Boolean).join(" ");

/** `ibv_post_send` with one operation, and what that is about. */
function post(operation, about) {
  const sided = operation in TO;
  const atomic = operation === "FETCH_ADD";
  const immediate = ["SEND", "WRITE"].includes(operation);
  const fields = [number("from", "from byte", 0), ...(atomic ? [number("add", "adds", 1)] : [number("length", "length", 60)])];
  if (sided) fields.push(number("there", "offset at the peer", 0), check("wrong", "with a wrong key"));
  if (immediate) fields.push(check("has", "with immediate data"), when(({ has }) => has, number("imm", "immediate data", 7, 0, 2 ** 32 - 1)));
  fields.push(check("unsignaled", "unsignaled (success makes no completion)"));
  const line = (node) => (values) => words(
    node, "ibv_post_send", operation + (values.has ? "_WITH_IMM" : ""), bytes({ length: 8, ...values }),
    sided && `${TO[operation]} ${PEER[node]} ${values.there}`, atomic && `add=${values.add}`, values.has && `imm=${values.imm}`,
    values.wrong && "key=wrong", values.unsignaled && "unsignaled",
  );
  return { name: operation, label: `ibv_post_send ${operation}`, about, fields, line };
}

const simple = (name, call, about, fields = [], rest = () => "") => ({ name, label: call, about, fields, line: (node) => (values) => words(node, call, rest(values)) });
const area = (length) => [number("from", "from byte", 0), number("length", "length", length)];

/** What a node's program can call. */
const CALLS = [
  post("WRITE", "Puts bytes into the other's memory. Its program isn't asked, but the key must be right."),
  post("SEND", "Hands the other program a message, which must have made room for it with RECEIVE."),
  post("READ", "Fetches bytes from the other's memory. Its program isn't asked, but that memory must be open for it."),
  simple("RECEIVE", "ibv_post_recv", "Makes room for one message of the other's. Sends nothing.", area(64), bytes),
  post("FETCH_ADD", "Adds to a number in the other's memory, and brings back what was there."),
  simple(
    "register", "ibv_reg_mr", "Opens memory to the NICs; to whose and for what, the rights say.",
    [...area(4096), ...RIGHTS.map((right) => check(right, right, right === "LOCAL_WRITE"))],
    (values) => words(bytes(values), RIGHTS.filter((right) => values[right]).join("|")),
  ),
  simple("deregister", "ibv_dereg_mr", "Closes that memory again.", area(4096), bytes),
  simple("put text", "memcpy", "Writes into its own memory.", [number("from", "to byte", 0), text("words", "text", "Hello, other side")], ({ from, words }) => `${from} "${words.replaceAll('"', "")}"`),
  simple("wait", "ibv_poll_cq", "Waits until its NIC reports that something is done.", [number("count", "completions", 1, 1, 1000)], ({ count }) => String(count)),
  simple("hang up", "rdma_disconnect", "Ends the connection."),
  simple("die", "dies", "Switches this machine off."),
];

/** What can happen to a packet: the word of a rule, and ours. */
const ACTS = [["drop", "lose"], ["duplicate", "double"], ["delay", "delay"], ["corrupt", "damage"]];

function nth(number) {
  const isTeen = [11, 12, 13].includes(number % 100);
  return `${number}${(!isTeen && { 1: "st", 2: "nd", 3: "rd" }[number % 10]) || "th"}`;
}

const WIRE = ACTS.map(([act, name]) => ({
  name, label: `the wire: ${act}`,
  fields: [number("nth", "which packet", 1, 1, 1000), choice("from", "from the", ["client", "server"]), ...(act === "delay" ? [number("by", "by µs", 500, 1, 10_000_000)] : [])],
  line: () => ({ nth: which, from, by }) => words("wire", act, nth(which), "packet from", from, act === "delay" && `by ${by} us`),
}));

/** A queue pair's settings: how far each goes, and what it is if nothing is said. */
const SETTINGS = { timeout: [14, 31], retry_cnt: [7, 7], rnr_retry: [7, 7], min_rnr_timer: [12, 31] };

const settings = (node) => ({
  name: node, label: `${node} ibv_create_qp`, act: "Set it",
  fields: [
    ...(node === "client" ? [choice("mtu", "mtu", ["1024", "256", "512", "2048", "4096"])] : []),
    ...Object.entries(SETTINGS).map(([name, [value, most]]) => number(name, name, value, 0, most)),
  ],
  line: () => (values) => words(node, "ibv_create_qp", node === "client" && `mtu=${values.mtu}`, ...Object.keys(SETTINGS).map((name) => `${name}=${values[name]}`)),
});

const GROUPS = [
  { id: "client", name: "Client", verbs: CALLS, first: 4 },
  { id: "server", name: "Server", verbs: CALLS, first: 4 },
  { id: "wire", name: "Wire", verbs: WIRE },
  { id: "settings", name: "Queue pairs", verbs: ["client", "server"].map(settings) },
];
/** How many groups there are at first; the others, and the calls after the first ones, come with "More". */
const FIRST = 2;

export class Actions {
  /** `write(line)` puts a line into the script. */
  constructor(write) {
    this.write = write;
    this.kept = new Map();
    this.groups = toggles(GROUPS, FIRST, "Who acts", (group) => this.group(group));
    this.verbs = el("div", { class: "wb-verbs" });
    this.place = el("div", {});
    this.element = el("section", { class: "wb-do-it", "aria-label": "Do something" }, this.groups.element, this.verbs, this.place);
    this.groups.choose(GROUPS[0]);
  }

  group(group) {
    const verbs = toggles(group.verbs, group.first, `What the ${group.name} does`, (verb) => this.verb(group, verb));
    this.verbs.replaceChildren(verbs.element);
    verbs.choose(group.verbs[0]);
  }

  verb({ id }, verb) {
    const key = `${id} ${verb.name}`;
    if (!this.kept.has(key)) this.kept.set(key, {});
    const form = new Form({ ...verb, line: verb.line(id) }, this.kept.get(key), (line) => this.write(line));
    form.element.setAttribute("aria-label", verb.label);
    this.place.replaceChildren(form.element);
  }
}

/** Buttons of which one is pressed; the `first` ones are there before somebody asks for more. */
function toggles(all, first, label, chosen) {
  const rest = (place) => (place >= first ? "wb-rest" : null);
  const buttons = new Map(all.map((one, place) => [one, el("button", { type: "button", class: rest(place), click: () => choose(one) }, one.name)]));
  const choose = (wanted) => {
    for (const [one, button] of buttons) button.setAttribute("aria-pressed", String(one === wanted));
    chosen(wanted);
  };
  return { element: el("div", { class: "wb-toggles", role: "group", "aria-label": label }, ...buttons.values()), choose };
}

const isSettings = (line) => /^(client|server) ibv_create_qp\b/.exec(line)?.[1];

/** The script with one more line, and that line's number. Settings take the place of those before; a rule comes before what it's about. */
export function added(script, line) {
  const lines = script.trimEnd() ? script.trimEnd().split("\n") : [];
  const node = isSettings(line);
  const old = node ? lines.findIndex((other) => isSettings(other) === node) : -1;
  const first = lines.findIndex((other) => !other.startsWith("#"));
  const place = old >= 0 ? old : node ? Math.max(0, first) : lines.length;
  lines.splice(place, old >= 0 ? 1 : 0, line);
  return { script: `${lines.join("\n")}\n`, line: place + 1 };
}
