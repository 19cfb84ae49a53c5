// The workbench: two nodes, a wire, and time that the reader controls. The script is the only truth. A click writes a line into it,
// the whole script runs again, which takes microseconds, and what's drawn is a playhead over the run that it gave.
//
// A page has <div class="workbench" data-page="04">; course.js loads this when that comes into view. Its attributes:
//   data-page       the challenges of this page; without it, all of them
//   data-challenge  the one that it begins with
//   data-script     what it begins with otherwise
//   data-start      for the start page: nothing but the picture, and a button that breaks it. These scripts, with an empty line between
//                   them, are the one that goes well and those that don't; a comment in the first line says what's different

import { el } from "../player/dom.js";
import { isPacket, rightNode } from "../player/run.js";
import { button } from "../player/transport.js";
import { Actions, added } from "./actions.js";
import { captions } from "./captions.js";
import { Challenges } from "./challenge.js";
import { Core } from "./core.js";
import { Details } from "./details.js";
import { Editor } from "./editor.js";
import { keep, recall } from "./kept.js";
import { Node } from "./node.js";
import { Queues } from "./queues.js";
import { Playhead, RATES } from "./playhead.js";
import { Schedule } from "./schedule.js";
import { Stage, duration } from "./stage.js";

/** The page that's about workbenches, from any other. (The book's pages say where its root is.) */
const HOME = `${path_to_root}docs/workbench.html`;

/** What isn't there before the reader asks for more, and how it's remembered that somebody has. */
const REST = { class: "wb-rest" };
const MORE = "workbench-more";

/** The height of the page's own bar, in pixels. */
const BAR = 50;

let core, count = 0;

/** Puts a workbench into an element. */
export async function mount(element) {
  core ??= Core.load();
  const loaded = await core;
  const all = await loaded.challenges();
  const workbench = new Workbench(loaded, all, element.dataset);
  element.replaceChildren(workbench.element);
  await workbench.begin();
  return workbench;
}

class Workbench {
  constructor(core, all, { page, challenge, script, start }) {
    this.core = core;
    this.scripts = start?.split("\n\n") ?? [];
    this.before = [];
    const own = start ? [] : page ? all.filter((one) => one.page === page) : all;
    this.first = { challenge: own.find(({ name }) => name === challenge) ?? (page ? own[0] : null), script: script ?? this.scripts.shift() ?? own[0]?.script ?? "" };
    this.isStart = start !== undefined;
    this.playhead = new Playhead((plays) => this.show(plays));
    this.build(`wb-${count++}`, own);
  }

  build(id, own) {
    this.challenges = new Challenges(own, (challenge) => this.choose(challenge), HOME);
    this.nodes = { client: new Node("left", "Client"), server: new Node("right", "Server") };
    this.stage = new Stage((index) => this.touch(index));
    this.editor = new Editor(id, (script) => this.run(script));
    this.actions = new Actions((line) => this.add(line));
    this.details = new Details((count) => this.playhead.goto(this.schedule.begins[count - 1]));
    this.say = el("div", { class: "wb-say", "aria-live": "polite", tabindex: 0, role: "region", "aria-label": "What happens" });
    this.undo = button("Undo the last change of the script", "Undo", () => this.back());
    this.told = el("p", { class: "wb-told", role: "status" });
    this.breaks = el("p", { class: "wb-first" }, button("Now break it", "Now break it", () => this.breakIt(), { class: "wb-break" }));
    this.faults = 0;
    this.inside = button("Look inside, or from outside: addresses, queue pairs, queues, and the calls as programs make them", "Look inside", () => this.plain(!this.element.classList.contains("wb-plain")));
    this.more = button("More: the wire, settings, keys and flags, the other calls, speed, a link to the script, a file for Wireshark", "More …", () => this.few(false), { class: "wb-more" });
    this.element = el(
      "div",
      { class: `rp wb${this.isStart ? " wb-start wb-plain" : ""}`, tabindex: -1, role: "group", "aria-label": "Workbench: two nodes, a wire, and a script" },
      el(
        "div",
        { class: "wb-all" },
        own.length ? this.challenges.element : null,
        el("div", { class: "wb-stage" }, this.nodes.client.element, this.stage.element, this.nodes.server.element),
        this.say,
        this.isStart ? this.breaks : null,
        this.transport(),
        el(
          "div",
          { class: "wb-bench" },
          this.actions.element,
          el(
            "section",
            { class: "wb-script", "aria-label": "The script" },
            this.editor.element,
            el(
              "div",
              { class: "wb-tools" },
              this.undo,
              button("Start again with the first script", "Start again", () => this.reset()),
              button("Copy a link to this script", "Copy link", () => this.share(), REST),
              button("Save the run as a pcapng file, for Wireshark", "Save pcapng", () => this.save(), REST),
              this.more,
              ...(this.isStart ? [this.inside, button("Back to the faults: what can go wrong", "Back to the faults", () => this.breakAgain())] : []),
            ),
            this.told,
          ),
        ),
        this.details.element,
      ),
    );
    this.element.addEventListener("keydown", (key) => this.key(key));
    this.few(recall(MORE) === null);
  }

  /** Whether there's only what one needs at first. Somebody who has wanted more gets it on the next page as well. */
  few(isFew) {
    this.element.classList.toggle("wb-few", isFew);
    if (!isFew) keep(MORE, "yes");
  }

  transport() {
    this.play = button("Play (space)", "Play", () => this.playhead.toggle(), { class: "rp-play" });
    this.slider = el("input", { type: "range", min: 0, max: 1, step: 1, "aria-label": "Moment of the run" });
    this.slider.addEventListener("input", () => this.playhead.goto(this.schedule.stops[Number(this.slider.value)].at));
    this.clock = el("span", { class: "wb-clock" });
    this.playhead.rate = this.isStart ? 0.5 : 1;
    this.rate = el("select", { "aria-label": "Speed", ...REST }, ...RATES.map((rate) => el("option", { value: rate, selected: rate === this.playhead.rate }, `${rate}×`)));
    this.rate.addEventListener("input", () => { this.playhead.rate = Number(this.rate.value); });
    return el(
      "div",
      { class: "wb-time", role: "group", "aria-label": "Time" },
      button("To the beginning (Home)", "|‹", () => this.playhead.begin(), REST),
      button("One thing back (←)", "‹", () => this.playhead.step(-1)),
      this.play,
      button("One thing on (→)", "›", () => this.playhead.step(1)),
      button("To the end (End)", "›|", () => this.playhead.goto(this.schedule.length), REST),
      this.slider, this.clock, this.rate,
    );
  }

  /** Begins with what the address says, or the page. */
  async begin() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const shared = this.isStart ? null : asked.get("script");
    const named = this.challenges.all.find(({ name }) => name === asked.get("challenge"));
    this.challenges.show((shared !== null ? named : named ?? this.first.challenge) ?? null);
    this.start = this.challenges.now?.script ?? this.first.script;
    await this.run(shared ?? this.start);
    // A link may have a script that isn't understood: then there's a picture all the same, and what's wrong is said.
    if (!this.schedule) {
      await this.run(this.start);
      await this.run(shared);
    }
    this.playhead.play();
  }

  choose(challenge) {
    this.challenges.show(challenge);
    this.start = challenge?.script ?? this.first.script;
    return this.run(this.start);
  }

  reset() { return this.run(this.start); }

  back() { if (this.before.length) return this.run(this.before.pop(), { undoing: true }); }

  /** What a click does. */
  async add(line) {
    this.element.classList.remove("wb-unasked");
    const { script } = added(this.editor.script, line);
    await this.run(script);
    // On a phone the picture is above what was pressed, and the page's own bar covers what's at the very top.
    const picture = this.element.querySelector(".wb-stage");
    if (picture.getBoundingClientRect().top < BAR) bring(picture, "start");
  }

  /** Whether there's only what can be understood without the words of the course. */
  plain(isPlain) {
    this.element.classList.toggle("wb-plain", isPlain);
    this.inside.textContent = isPlain ? "Look inside" : "Look from outside";
  }

  /** On the start page: one fault after the other, as long as somebody likes; or it's the reader's turn. */
  breakIt() {
    const which = this.faults++ % this.scripts.length;
    const script = this.scripts[which];
    const more = button("Break it differently", "Break it differently", () => this.breakIt(), { class: "wb-break" });
    const turn = button("Your turn: all that there is to press, and the script", "Your turn", () => this.open(), { class: "wb-turn" });
    this.breaks.replaceChildren(more, " ", turn);
    // It begins like the run before, so it has to be said that it's another one.
    const [, what] = /^# (.*)/.exec(script) ?? [];
    return this.run(script, { whole: true, opening: `${which + 1} of ${this.scripts.length}: ${what}` });
  }

  async breakAgain() {
    this.element.classList.remove("wb-unasked");
    this.element.classList.add("wb-start");
    this.plain(true);
    await this.breakIt();
    bring(this.element.querySelector(".wb-stage"), "start");
    this.breaks.querySelector("button").focus({ preventScroll: true });
  }

  /** The reader's turn. The two are connected and nothing else has happened, since what one does to a dead connection, or what has been
   * done already, would change nothing that can be seen. */
  async open() {
    this.element.classList.remove("wb-start");
    this.start = this.start.replace(/^.*\bibv_(post_send|poll_cq)\b.*\n?/gm, "");
    await this.run(this.start, { opening: "Your turn: choose what a program asks of its network card, and press Do it." });
    this.playhead.pause();
    this.playhead.goto(this.schedule.length);
    // There's nothing to play before something is asked.
    this.element.classList.add("wb-unasked");
    // The picture may be as high as a phone's screen, and what there is to press is below it.
    bring(this.actions.element, "end");
    this.actions.element.querySelector("button").focus({ preventScroll: true });
  }

  /** Runs a script, and plays what's different from the run before; or the whole. What `opening` says stands before all else that's said. */
  async run(script, { undoing = false, whole = false, opening } = {}) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.editor.set(script);
    const said = await this.core.run(script, this.challenges.now?.name ?? null);
    // Somebody has changed it again meanwhile.
    if (turn !== this.turn) return;
    this.editor.error(said.error ?? null);
    if (said.error) return;
    if (!undoing && this.script !== undefined && this.script !== script) this.before.push(this.script);
    this.script = script;
    this.undo.disabled = this.before.length === 0;
    const [before, at] = [this.data, this.playhead.at];
    [this.said, this.opening] = [said, opening];
    this.data = said.play;
    this.flights = flights(said);
    this.captions = captions(this.data);
    const ways = new Map([...this.flights].map(([event, { arrives_us }]) => [event, arrives_us]));
    this.schedule = new Schedule(this.data, said.times_us, ways, this.captions);
    const opens = this.opens();
    const differs = before && !whole ? difference(before, this.data) : opens;
    // What both programs do to set up is no news.
    this.since = Math.max(differs, opens);
    // What comes before that is there for whoever goes back to it.
    this.playhead.home = Math.max(0, (this.schedule.begins[opens] ?? this.schedule.length) - 1);
    this.menuFor(null);
    const server = rightNode(this.data);
    this.numbers = { client: 1 - server, server };
    for (const [name, node] of Object.entries(this.nodes)) this.load(node, name);
    this.stage.load(this.data, this.schedule);
    this.details.load(this.data, said.explain);
    this.slider.max = this.schedule.stops.length - 1;
    this.challenges.judge(null);
    const begin = Math.max(0, (this.schedule.begins[differs] ?? this.schedule.length) - 1);
    this.playhead.load(this.schedule, before ? Math.min(at, begin) : begin);
    if (differs < this.data.events.length && before) {
      this.playhead.at = begin;
      this.playhead.play();
    } else {
      this.show(false);
    }
  }

  load(node, name) {
    const number = this.numbers[name];
    const queues = new Queues(this.said, this.script, name, number, this.schedule);
    const made = (call) => this.made(call).filter((line) => line.node === name).map(({ event }) => event);
    const dies = this.schedule.begins[made(/\bdies\b/)[0]] ?? Infinity;
    const { address, size, text } = this.said.nodes.find((node) => node.name === name).memory;
    const memory = { address: BigInt(address), bytes: Uint8Array.from({ length: size }, (_, at) => text.charCodeAt(at % text.length) || 0) };
    node.load(this.data, number, this.schedule.sees[number], queues, memory, { dies, captions: this.captions, isPlaced: (index) => this.isPlaced(index) });
  }

  /** Whether the bytes of a packet that has come were put into memory: the NIC that got it says so. A packet alone doesn't tell, because
   * it may have been damaged, or come to a queue pair that has stopped. */
  isPlaced(index) {
    const { arrives_us, comes_us = arrives_us } = this.flights.get(index) ?? {};
    const { to } = this.data.events[index];
    const isIt = ({ node, tag, text }, at) => node === to && tag === "NIC" && text.includes("placed") && comes_us.some((time) => Math.abs(time - this.said.times_us[at]) < 0.001);
    return !comes_us || this.data.events.some(isIt);
  }

  /** The lines of the script that are calls like this, and were made. */
  made(call) {
    const texts = this.script.split("\n");
    return this.said.lines.filter(({ line, event }) => event != null && call.test(texts[line - 1]));
  }

  /** The event at which something is first asked of a NIC: what comes before it only prepares that. */
  opens() { return this.made(/\bibv_post_send\b/)[0]?.event ?? this.data.opens; }

  /** Draws the moment. */
  show(plays) {
    const { at } = this.playhead;
    const { schedule } = this;
    const hasBegun = schedule.begins[this.since] <= at;
    for (const [name, node] of Object.entries(this.nodes)) node.show(schedule.seenBy(this.numbers[name], at), this.since, hasBegun, at);
    this.stage.show(at, plays && !this.playhead.calm.matches ? this.playhead.rate : 0);
    const begun = schedule.begun(at);
    this.slider.min = at < this.playhead.home - 1 ? 0 : schedule.place(this.playhead.home);
    this.slider.value = schedule.place(at);
    this.clock.textContent = duration(schedule.time(at).now);
    const ended = !plays && at >= schedule.length - 0.5;
    const now = [begun, plays, ended, this.turn].join();
    if (now === this.shown) return;
    this.shown = now;
    this.play.textContent = plays ? "Pause" : "Play";
    for (const name of ["aria-label", "title"]) this.play.setAttribute(name, plays ? "Pause (space)" : "Play (space)");
    this.element.classList.toggle("playing", plays);
    this.caption(begun, plays, ended);
    this.details.show(begun);
    this.editor.acts(this.lineOf(begun));
  }

  /** What happens, in words; a screen reader hears it when time stands still. */
  caption(begun, plays, ended) {
    this.say.setAttribute("aria-live", plays ? "off" : "polite");
    // A program that begins to wait is no news while other things happen.
    const isTold = ({ says, isWaiting }, index) => says && index < begun && !(plays && isWaiting);
    const { says } = this.captions.findLast(isTold) ?? { says: "Nothing has happened yet." };
    const words = ended && this.said.sentence ? el("strong", {}, this.said.sentence) : says;
    const opening = this.opening ? [el("b", {}, this.opening), " "] : [];
    this.say.replaceChildren(...opening, words);
    this.slider.setAttribute("aria-valuetext", `${this.clock.textContent}: ${says}`);
    this.challenges.judge(ended ? this.said.verdict : null);
  }

  /** The line of the script that has acted last by the time that `begun` events have begun. */
  lineOf(begun) {
    const made = this.said.lines.filter(({ event }) => event != null && event < begun);
    return made.sort((one, other) => one.event - other.event).at(-1)?.line;
  }

  /** A packet was touched: time stands still, and there's what can be done to it. */
  touch(index) {
    this.playhead.pause();
    this.menuFor(index);
  }

  menuFor(index) {
    const event = this.data?.events[index];
    const rules = this.flights?.get(index)?.rules;
    if (!event || !rules) {
      // Whoever was there by key stays in the workbench.
      if (this.stage.menu.contains(document.activeElement)) this.element.focus({ preventScroll: true });
      return this.stage.menu.replaceChildren();
    }
    const act = (name) => el("button", { type: "button", click: () => this.add(`wire ${rules[name]}`) }, name);
    this.stage.menu.replaceChildren(
      el("p", {}, el("b", {}, event.tag), ` ${event.length} bytes`),
      ...["lose", "double", "delay", "damage"].map(act),
      el("button", { type: "button", click: () => this.inside() }, "look inside"),
      el("button", { type: "button", "aria-label": "Leave it alone", click: () => this.menuFor(null) }, "✕"),
    );
    this.stage.menu.querySelector("button").focus({ preventScroll: true });
  }

  inside() {
    this.menuFor(null);
    this.details.element.open = true;
    this.details.build();
    this.details.packet.element.scrollIntoView({ block: "nearest" });
  }

  /** The address of this script, in the clipboard if the page may, and in the page's own address in any case. */
  async share() {
    const hash = new URLSearchParams({ script: this.script, ...(this.challenges.now ? { challenge: this.challenges.now.name } : {}) });
    const link = new URL(`${HOME}#${hash}`, location.href).href;
    if (location.pathname.endsWith("/workbench.html")) history.replaceState(history.state, "", `#${hash}`);
    try {
      await navigator.clipboard.writeText(link);
      this.told.textContent = "The link is in your clipboard. Whoever opens it gets this script.";
    } catch {
      this.told.replaceChildren(el("a", { href: link }, "The link to this script"), " (your browser lets this page copy nothing)");
    }
  }

  async save() {
    const bytes = await this.core.file(this.script, this.challenges.now?.name ?? null);
    const link = el("a", { href: URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" })), download: "workbench.pcapng" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    this.told.textContent = `workbench.pcapng: ${bytes.length} bytes, with every packet and line of this run.`;
  }

  key(key) {
    // The arrows that are pressed here are not for turning the book's pages.
    key.stopPropagation();
    if (key.altKey || key.ctrlKey || key.metaKey || key.defaultPrevented) return;
    if (key.target.closest("input:not([type=range], [type=checkbox]), select, textarea, .rp-bytes, .rp-ladder, .rp-fields")) return;
    if (key.target.closest("button, summary, a, [type=checkbox]") && [" ", "Enter"].includes(key.key)) return;
    const acts = {
      " ": () => this.playhead.toggle(),
      ArrowRight: () => this.playhead.step(1),
      ArrowLeft: () => this.playhead.step(-1),
      Home: () => this.playhead.begin(),
      End: () => this.playhead.goto(this.schedule.length),
      Escape: () => this.menuFor(null),
    };
    if (!acts[key.key]) return;
    key.preventDefault();
    acts[key.key]();
  }
}

/** Scrolls to where an element is seen. The page's bar is told once more when that's done, because after a jump up it can be left
 * hanging in the middle of the text. */
function bring(element, block) {
  element.scrollIntoView({ block });
  requestAnimationFrame(() => document.dispatchEvent(new Event("scroll")));
}

/** What's on the wire, by the events of the packets. With a switch a packet is recorded when it comes out, so that its event says
 * whether it does, and not when it was sent: then each is found by its sender, its name and its turn. A doubled one comes out twice. */
function flights({ play: { events, nodes }, times_us, in_flight }) {
  if (in_flight.every(({ event }) => events[event]?.to !== undefined)) return new Map(in_flight.map((flight) => [flight.event, flight]));
  const sent = in_flight.flatMap((flight) => new Array(Math.max(1, flight.arrives_us.length)).fill(flight));
  const name = ({ tag }) => /\((\w+)\)/.exec(tag)?.[1] ?? tag;
  const own = (event) => {
    const at = sent.findIndex((flight) => flight.name === name(event) && nodes[event.node].startsWith(flight.from));
    return at < 0 ? null : sent.splice(at, 1)[0];
  };
  const packets = [...events.entries()].filter(([, event]) => isPacket(event));
  return new Map(packets.map(([index, event]) => {
    const isLost = event.notes?.some((note) => note.includes("dropped"));
    const flight = own(event);
    return [index, { arrives_us: isLost ? [] : [times_us[index]], comes_us: flight?.arrives_us ?? [], rules: flight?.rules }];
  }));
}

/** How many events two runs have in common from their beginning. */
function difference(before, after) {
  const same = (one, other) => ["node", "to", "tag", "text", "ms", "bytes"].every((name) => one[name] === other[name]) && String(one.notes) === String(other.notes);
  const at = after.events.findIndex((event, index) => !before.events[index] || !same(before.events[index], event));
  return at < 0 ? after.events.length : at;
}
