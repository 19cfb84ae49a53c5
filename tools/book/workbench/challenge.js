// A challenge: what to make happen, what helps, and once it has happened, why that's so.

import { el } from "../player/dom.js";
import { keep, recall } from "./kept.js";

/** Which challenges this reader has passed. */
const KEY = "workbench-passed";
const passed = () => new Set(JSON.parse(recall(KEY) ?? "[]"));

/** A text with its names of calls; each paragraph is an element of its own. */
function* prose(text = "") {
  for (const paragraph of text.split("\n\n").filter(Boolean)) {
    yield el("p", {}, ...paragraph.split("`").map((piece, at) => (at % 2 ? el("code", {}, piece) : piece)));
  }
}

export class Challenges {
  /** `chosen(challenge)` is called with the one that the reader wants, or with null to play freely; `about` is
   * the page that says what this is. */
  constructor(all, chosen, about) {
    this.all = all;
    this.chosen = chosen;
    this.done = passed();
    this.list = el("select", { "aria-label": "The challenge" });
    this.list.addEventListener("input", () => chosen(this.all[this.list.selectedIndex - 1] ?? null));
    this.task = el("div", { class: "wb-task" });
    this.hints = el("div", { class: "wb-hints" });
    this.verdict = el("div", { class: "wb-verdict", role: "status" });
    const head = el("div", { class: "wb-choose" }, el("label", {}, el("span", {}, "Challenge"), this.list), el("a", { href: about }, "How this works"));
    this.element = el("section", { class: "wb-challenge", "aria-label": "A challenge" }, head, this.task, this.hints, this.verdict);
    this.options();
  }

  options() {
    const option = ({ name, title }) => el("option", { value: name, selected: name === this.now?.name }, `${this.done.has(name) ? "✓ " : ""}${title}`);
    this.list.replaceChildren(el("option", { value: "" }, "none: just play"), ...this.all.map(option));
  }

  show(challenge) {
    this.now = challenge;
    this.options();
    this.task.replaceChildren(...prose(challenge?.task));
    const hints = (challenge?.hints ?? []).map((hint, at, all) => [all.length > 1 ? `Hint ${at + 1}` : "A hint", hint]);
    if (challenge?.idea) hints.push(["The idea", challenge.idea]);
    this.hints.replaceChildren(...hints.map(([name, text]) => el("details", {}, el("summary", {}, name), ...prose(text))));
    this.judge(null);
  }

  judge(verdict) {
    if (!verdict || !this.now) return this.verdict.replaceChildren();
    if (verdict.passed) {
      this.done.add(this.now.name);
      keep(KEY, JSON.stringify([...new Set([...passed(), ...this.done])]));
      this.options();
    }
    this.verdict.classList.toggle("passed", verdict.passed);
    const next = verdict.passed ? this.all.find(({ name }) => !this.done.has(name)) : null;
    this.verdict.replaceChildren(
      el("p", {}, el("b", {}, verdict.passed ? "Done. " : "Not yet. "), verdict.says),
      ...(verdict.passed ? prose(verdict.afterwards) : []),
      ...(next ? [el("p", {}, el("button", { type: "button", click: () => this.chosen(next) }, `Next: ${next.title}`))] : []),
    );
  }
}
