// The player: a run of a lesson, event by event, with the code, the logs, the packets, the queue pairs and the memory.
//
// On a page:
//
//     wire play captures/04_rdma_write.pcapng --lesson lessons/04_rdma_write --data -o 04_rdma_write.json
//
//     <link rel="stylesheet" href="player/player.css">
//     <div id="run"> what is shown without JavaScript: the ladder, from `wire svg` or `wire show` </div>
//     <script type="module">
//       import { mount } from "./player/player.js";
//       const data = await (await fetch("04_rdma_write.json")).json();
//       mount(document.getElementById("run"), data);
//     </script>
//
// A page that is opened from a folder cannot fetch: there put the JSON into the page, as `wire play` does for the page that it
// writes: <script type="application/json" id="data">…</script>, with each `<` in it as \u003c (--data writes it so), and
// call mount(element, JSON.parse(document.getElementById("data").textContent)).
//
// mount(element, data, options) replaces what is in the element. It takes the width it is given: below 700 pixels one
// pane at a time, up to 820 one column, and from there on all in one view. Options: `link: false` leaves the page's
// address alone; otherwise `#frame=57` is the moment that is shown (one player of a page should do so). `keys: true` takes
// keys that are pressed anywhere on the page, not only inside the player. It opens where what the lesson adds begins.
// `moved(player)` is called at each moment. Colours follow prefers-color-scheme, unless a
// parent has the attribute data-theme="light" or "dark", or a class of mdBook's themes.
//
// The data is what `wire` has found out about the run; this only shows it, and only by textContent: nothing that a
// capture says can become markup.

import { el } from "./dom.js";
import { Moment, isPacket, rightNode, sentence, step } from "./run.js";
import { Ladder } from "./ladder.js";
import { Code } from "./code.js";
import { Packet } from "./packet.js";
import { Host } from "./host.js";
import { ask, question } from "./predict.js";
import { Transport, button } from "./transport.js";

/** Shows the run `data` in `element`. */
export function mount(element, data, options = {}) {
  if (!data.events.length) {
    const nothing = "There is nothing to play: no RDMA packet, and no line of a log.";
    element.replaceChildren(el("div", { class: "rp" }, el("h2", {}, data.title), el("p", {}, nothing), el("p", {}, data.left_out)));
    return null;
  }
  return new Player(element, data, { link: true, keys: false, ...options });
}

/** How long an event stays, in milliseconds, at speed 1. */
const STAY = { line: 420, packet: 1500 };

class Player {
  constructor(element, data, options) {
    this.data = data;
    this.options = {};
    this.moment = new Moment(data);
    this.right = rightNode(data);
    this.left = data.nodes.findIndex((_, node) => node !== this.right);
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.build();
    element.replaceChildren(this.element);
    this.goto(data.opens);
    // From now on the address names the moment.
    this.options = options;
    const keys = options.keys ? document : this.element;
    keys.addEventListener("keydown", (key) => this.key(key));
    if (options.link) {
      window.addEventListener("hashchange", () => {
        if (this.follow()) this.element.scrollIntoView({ block: "nearest" });
      });
    }
    if (options.link) this.follow();
  }

  build() {
    const { data } = this;
    this.transport = new Transport(data.events.length, data.events.some((event) => event.begins), {
      play: () => this.toggle(),
      goto: (count) => this.by(() => this.goto(count)),
      move: (by, way) => this.by(() => this.move(by, way)),
      predict: () => this.predicting(),
    });
    this.ladder = new Ladder(data, (count) => this.by(() => this.goto(count)));
    this.code = data.files.length ? new Code(data) : null;
    this.packet = new Packet(data);
    this.hosts = [new Host(data, "left"), new Host(data, "right")];
    this.now = el("div", { class: "rp-now", "aria-live": "polite" });
    const panes = [["run", "Run"], ["code", "Code"], ["packet", "Packet"], ["left", "Client"], ["right", "Server"]];
    this.tabs = panes.filter(([id]) => id !== "code" || this.code).map(([id, name]) => [id, button(`Show: ${name}`, name, () => this.tab(id))]);
    const title = el("div", { class: "rp-title" }, el("h2", {}, data.title), el("p", {}, data.about));
    this.element = el(
      "div",
      { class: `rp${this.code ? "" : " rp-codeless"}` },
      el(
        "div",
        { class: "rp-all" },
        title,
        this.transport.element,
        this.now,
        el("div", { class: "rp-hosts" }, this.hosts[0].element, this.hosts[1].element),
        el("div", { class: "rp-tabs", role: "group", "aria-label": "What is shown below" }, ...this.tabs.map(([, tab]) => tab)),
        this.ladder.element,
        this.code?.element,
        this.packet.element,
        data.left_out ? el("p", { class: "rp-left-out" }, data.left_out) : null,
      ),
    );
    this.tab("run");
    this.playing(false);
  }

  /** On a narrow screen: which of the panes is shown. */
  tab(wanted) {
    this.element.dataset.tab = wanted;
    for (const [id, tab] of this.tabs) tab.setAttribute("aria-pressed", String(id === wanted));
    // A pane that was hidden hasn't scrolled along.
    ({ run: this.ladder, code: this.code, packet: this.packet })[wanted]?.bring();
  }

  goto(count) {
    const before = this.moment.count;
    this.moment.goto(Math.max(0, Math.min(count, this.data.events.length)));
    this.asked = null;
    const { moment, data } = this;
    const { event } = moment;
    const smooth = !this.calm.matches && Math.abs(moment.count - before) < 3;
    this.ladder.show(moment.count, smooth);
    this.code?.show(moment, smooth);
    this.packet.show(moment);
    // Of several clients the one that acts, or is acted upon, is on the left.
    const ends = [event?.node, event?.to].filter((node) => data.nodes[node] && node !== this.right);
    if (ends.length) this.left = ends[0];
    const news = [this.hosts[0].show(moment, this.left), this.hosts[1].show(moment, this.right)];
    for (const [id, tab] of this.tabs) {
      const changed = { code: event?.code, packet: event && isPacket(event), left: news[0], right: news[1] }[id];
      tab.classList.toggle("changed", Boolean(changed));
    }
    this.element.classList.toggle("start", moment.count === 0);
    this.transport.show(moment.count, event, event ? sentence(data, event) : "");
    this.caption();
    if (this.options.link && !this.timer) this.link();
    this.options.moved?.(this);
  }

  /** What happens now, in words. A screen reader hears it when one steps, and not while the run plays. */
  caption() {
    const { event } = this.moment;
    this.now.setAttribute("aria-live", this.timer ? "off" : "polite");
    if (!event) {
      const packets = this.data.events.filter(isPacket).length;
      const counts = `${packets} packets and ${this.data.events.length - packets} lines of both logs.`;
      this.now.replaceChildren(el("p", {}, `${counts} Press play, or go on event by event.`));
      return;
    }
    const [named, why, said] = [step(event) ?? "", this.data.texts[event.why] ?? "", sentence(this.data, event)];
    const verdict = this.verdict ? el("b", { class: `rp-verdict ${this.verdict.good ? "good" : "bad"}` }, this.verdict.text) : null;
    this.verdict = null;
    this.now.replaceChildren(
      el(
        "p",
        { class: event.sort, tabindex: 0 },
        verdict,
        named ? el("strong", {}, `${named}. `) : null,
        el("span", {}, `${why} `),
        el("span", { class: "rp-frame" }, `#${event.n} ${said}`),
      ),
    );
  }

  /** One event on or back; forward may ask first. */
  step(way) {
    const { data, moment } = this;
    if (way > 0 && this.element.classList.contains("predicting") && moment.count < data.events.length) {
      if (this.asked) return;
      const next = data.events[moment.count];
      const asked = question(data, moment, next);
      if (asked) {
        this.pause();
        this.asked = asked;
        this.now.replaceChildren(ask(asked, (answer) => this.answered(answer)));
        return;
      }
    }
    this.goto(moment.count + way);
  }

  answered(answer) {
    const { right } = this.asked;
    if (answer !== null) this.verdict = { good: answer === right, text: answer === right ? "Yes. " : `No: ${right}. ` };
    this.goto(this.moment.count + 1);
    this.transport.focus();
  }

  /** To the next event, packet or step, or the one before. */
  move(by, way) {
    if (by === "event") return this.step(way);
    const { events } = this.data;
    const is = (event) => (by === "packet" ? isPacket(event) : event.begins);
    let count = this.moment.count + way;
    while (count > 0 && count <= events.length && !is(events[count - 1])) count += way;
    this.goto(count);
  }

  predicting() {
    this.transport.predicting(this.element.classList.toggle("predicting"));
    if (this.asked) this.goto(this.moment.count);
  }

  /** Whatever a person does ends the playing. */
  by(act) {
    this.pause();
    act();
  }

  toggle() {
    if (this.timer) return this.pause();
    if (this.moment.count === this.data.events.length) this.goto(0);
    this.playing(true);
    this.timer = setTimeout(() => this.tick(), 0);
  }

  tick() {
    this.step(1);
    if (!this.timer) return;
    if (this.moment.count === this.data.events.length) return this.pause();
    const { event } = this.moment;
    this.timer = setTimeout(() => this.tick(), (isPacket(event) ? STAY.packet : STAY.line) / this.transport.rate);
  }

  pause() {
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.playing(false);
    if (this.options.link) this.link();
  }

  playing(on) {
    this.element.classList.toggle("playing", on);
    this.transport.playing(on);
  }

  key(key) {
    if (key.altKey || key.ctrlKey || key.metaKey || key.defaultPrevented) return;
    // A pane that is scrolled with keys has them.
    const scrolls = ["ArrowDown", "ArrowUp", "Home", "End"].includes(key.key) && key.target.closest?.(".rp-source, .rp-memory, .rp-fields");
    if (scrolls && scrolls.scrollHeight > scrolls.clientHeight) return;
    const pressed = key.target.closest?.("button, a, select, textarea") && [" ", "Enter"].includes(key.key);
    const acts = {
      " ": () => this.toggle(),
      ArrowRight: () => this.by(() => this.move(key.shiftKey ? "step" : "event", 1)),
      ArrowLeft: () => this.by(() => this.move(key.shiftKey ? "step" : "event", -1)),
      ArrowDown: () => this.by(() => this.move("packet", 1)),
      ArrowUp: () => this.by(() => this.move("packet", -1)),
      "?": () => this.transport.keys.click(),
      Home: () => this.by(() => this.goto(0)),
      End: () => this.by(() => this.goto(this.data.events.length)),
    };
    if (pressed || !acts[key.key]) return;
    key.preventDefault();
    key.stopPropagation();
    acts[key.key]();
  }

  /** The address of this moment. */
  link() {
    const { event } = this.moment;
    const hash = event ? `#frame=${event.n}` : "";
    if (location.hash === hash || (!event && !location.hash.startsWith("#frame="))) return;
    history.replaceState(history.state, "", hash || location.pathname + location.search);
  }

  /** To the moment that the address names; says whether it names one. */
  follow() {
    const frame = Number(/^#frame=(\d+)$/.exec(location.hash)?.[1]);
    if (!frame) return false;
    const count = this.data.events.findLastIndex((event) => event.n <= frame) + 1;
    this.by(() => this.goto(count));
    return true;
  }
}
