// What's deeper than the picture: the run's ladder, a packet's bytes, and what `wire explain` says. It's made when it's opened.

import { el } from "../player/dom.js";
import { Moment } from "../player/run.js";
import { Ladder } from "../player/ladder.js";
import { Packet } from "../player/packet.js";

export class Details {
  /** `goto(count)` is called when the reader wants to see the run up to there. */
  constructor(goto) {
    this.goto = goto;
    this.place = el("div", { class: "wb-deeper" });
    this.element = el("details", { class: "wb-details" }, el("summary", {}, "Every line and packet of this run, byte by byte"), this.place);
    this.element.addEventListener("toggle", () => this.build());
  }

  load(data, explain) {
    [this.data, this.explain, this.ladder] = [data, explain, null];
    this.build();
  }

  build() {
    if (!this.element.open || this.ladder || !this.data) return;
    this.moment = new Moment(this.data);
    this.ladder = new Ladder(this.data, this.goto);
    this.packet = new Packet(this.data);
    const findings = (this.explain?.connections ?? []).flatMap(({ findings, nothing }) => [...findings.map(({ sentence }) => `${sentence}.`), nothing]).filter(Boolean);
    const told = findings.map((sentence) => el("p", {}, sentence));
    this.place.replaceChildren(this.ladder.element, this.packet.element, el("div", { class: "wb-explained" }, el("h4", {}, "What wire explain says about it"), ...told));
    this.show(this.count ?? 0);
  }

  show(count) {
    this.count = count;
    if (!this.element.open || !this.ladder) return;
    this.moment.goto(count);
    this.ladder.show(count, false);
    this.packet.show(this.moment);
  }
}
