// What one plays with: buttons, the slider, the clock.

import { el } from "./dom.js";

/** A button that says what it is for; `label` has the text on it in it. */
export function button(label, text, click, more = {}) {
  return el("button", { type: "button", "aria-label": label, title: label, click, ...more }, text);
}

export class Transport {
  /** `acts` are what is to be done: play, goto, step, jump, predict. */
  constructor(count, acts) {
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
    this.element = el(
      "div",
      { class: "rp-transport", role: "group", "aria-label": "Playing" },
      button("Start of the run (Home)", "Start", () => acts.goto(0), { class: "rp-far" }),
      button("‹ Step back (left arrow)", "‹ Step", () => acts.step(-1)),
      this.play,
      button("Step › on (right arrow)", "Step ›", () => acts.step(1)),
      button("Packet » next on the wire (down arrow)", "Packet »", acts.jump),
      this.slider,
      this.clock,
      this.speed,
      this.predict,
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
