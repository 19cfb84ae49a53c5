// What one plays with: buttons, the slider, the clock.

import { el } from "./dom.js";

/** A button that says what it is for; `label` has the text on it in it. */
export function button(label, text, click, more = {}) {
  return el("button", { type: "button", "aria-label": label, title: label, click, ...more }, text);
}

/** By what one moves: the name, what it is for, and its keys back and on. */
const WAYS = [
  ["event", "Event", "log line or packet", "←", "→"],
  ["packet", "Packet", "packet on the wire", "↑", "↓"],
  ["step", "Step", "step of the lesson", "Shift ←", "Shift →"],
];

/** What is told about what one sees. */
const SIGNS = [
  ["SLOW", "sets up and tears down: once per connection"],
  ["FAST", "arms and waits for data"],
  ["DATA", "the operation itself, and its completion"],
  ["INFO", "what the program knows now"],
  ["psn", "a packet's number, from the queue pair's first"],
  ["INIT", "the queue pair takes receives"],
  ["RTR", "it knows its peer, and takes packets"],
  ["RTS", "it sends, too"],
  ["ERR", "it has ended, by a goodbye or a failure"],
];

export class Transport {
  /** `acts` are what is to be done: play, goto, move, predict; `hasSteps` says whether there are any. */
  constructor(count, hasSteps, acts) {
    this.rate = 1;
    this.play = button("Play", "", acts.play, { class: "rp-play" });
    this.slider = el("input", { type: "range", min: 0, max: count, step: 1, "aria-label": "Moment of the run" });
    this.slider.addEventListener("input", () => acts.goto(Number(this.slider.value)));
    this.clock = el("output", { class: "rp-clock" });
    this.speed = button("1×: the speed", "1×", () => this.faster(), { class: "rp-speed" });
    this.predict = button("Predict: stop before each packet and ask what it will be", "Predict", acts.predict, {
      class: "rp-predict",
      "aria-pressed": "false",
    });
    this.legend = legend(hasSteps);
    this.keys = button("Keys and signs (?)", "?", () => this.legend.togglePopover(), { class: "rp-keys" });
    const ways = WAYS.filter(([by]) => hasSteps || by !== "step");
    this.element = el(
      "div",
      { class: "rp-transport", role: "group", "aria-label": "Playing" },
      button("Start of the run (Home)", "Start", () => acts.goto(0), { class: "rp-far" }),
      this.play,
      ...ways.map(([by, name, what, back, on]) =>
        el(
          "span",
          { class: "rp-way", role: "group", "aria-label": `By ${by}` },
          button(`‹ ${name} back (${back})`, "‹", () => acts.move(by, -1), { "data-by": by }),
          el("span", { "aria-hidden": "true" }, name),
          button(`${name} on › (${on}): the next ${what}`, "›", () => acts.move(by, 1), { "data-by": by }),
        ),
      ),
      this.slider,
      this.clock,
      this.speed,
      this.predict,
      this.keys,
      this.legend,
    );
  }

  /** So many events have happened, and this is the last one. */
  show(count, event, sentence) {
    const time = event?.ms == null ? "" : ` · ${event.ms.toFixed(1)} ms`;
    this.slider.value = count;
    this.clock.textContent = event ? `frame ${event.n}${time}` : "";
    this.slider.setAttribute("aria-valuetext", event ? `frame ${event.n}${time}: ${sentence}` : "before the run");
  }

  focus() {
    this.slider.focus({ preventScroll: true });
  }

  playing(on) {
    this.play.textContent = on ? "Pause" : "Play";
    this.play.setAttribute("aria-label", on ? "Pause (space)" : "Play (space)");
  }

  predicting(on) {
    this.predict.setAttribute("aria-pressed", String(on));
  }

  faster() {
    this.rate = this.rate < 8 ? this.rate * 2 : 1;
    this.speed.textContent = `${this.rate}×`;
    this.speed.setAttribute("aria-label", `${this.rate}×: the speed`);
  }
}

/** What is pressed, and what is seen; it opens on tap, over everything else. */
function legend(hasSteps) {
  const ways = WAYS.filter(([by]) => hasSteps || by !== "step").map(([, , what, back, on]) => [`${back}   ${on}`, `one ${what} back, or on`]);
  const keys = [["Space", "play, and pause"], ...ways, ["Home   End", "before the run, and its end"], ["?", "this list"]];
  const rows = (all) => el("dl", {}, ...all.flatMap(([sign, what]) => [el("dt", {}, sign), el("dd", {}, what)]));
  return el("div", { class: "rp-legend", popover: true }, el("h3", {}, "Keys"), rows(keys), el("h3", {}, "Signs"), rows(SIGNS));
}
