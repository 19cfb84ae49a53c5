// A challenge: what to make happen, what helps, and once it has happened, why that's so.

import { el } from "../player/dom.js";

/** Which challenges this reader has passed. A page that's opened from a folder may have no memory. */
const KEY = "workbench-passed";
function passed() {
  try { return new Set(JSON.parse(localStorage.getItem(KEY) ?? "[]")); } catch { return new Set(); }
}
function remember(name) {
  try { localStorage.setItem(KEY, JSON.stringify([...passed().add(name)])); } catch { /* for this page only */ }
}

export class Challenges {
  /** `chosen(challenge)` is called with the one that the reader wants, or with null to play freely. */
  constructor(all, chosen) {
    this.all = all;
    this.chosen = chosen;
    this.done = passed();
    this.list = el("select", { "aria-label": "The challenge" });
    this.list.addEventListener("input", () => chosen(this.all[this.list.selectedIndex - 1] ?? null));
    this.task = el("p", { class: "wb-task" });
    this.hints = el("div", { class: "wb-hints" });
    this.verdict = el("div", { class: "wb-verdict", role: "status" });
    const head = el("div", { class: "wb-choose" }, el("label", {}, el("span", {}, "Challenge"), this.list));
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
    this.task.textContent = challenge?.task ?? "";
    const hints = challenge?.hints ?? [];
    this.hints.replaceChildren(...hints.map((hint, at) => el("details", {}, el("summary", {}, hints.length > 1 ? `Hint ${at + 1}` : "A hint"), el("p", {}, hint))));
    this.judge(null);
  }

  judge(verdict) {
    if (!verdict || !this.now) return this.verdict.replaceChildren();
    if (verdict.passed) {
      remember(this.now.name);
      this.done.add(this.now.name);
      this.options();
    }
    this.verdict.classList.toggle("passed", verdict.passed);
    const next = verdict.passed ? this.all.find(({ name }) => !this.done.has(name)) : null;
    this.verdict.replaceChildren(
      el("p", {}, el("b", {}, verdict.passed ? "Done. " : "Not yet. "), verdict.says),
      ...(verdict.passed && verdict.afterwards ? [el("p", {}, verdict.afterwards)] : []),
      ...(next ? [el("p", {}, el("button", { type: "button", click: () => this.chosen(next) }, `Next: ${next.title}`))] : []),
    );
  }
}
