// The script, beside its picture. What's written here happens, as if it had been clicked.

import { el } from "../player/dom.js";

/** How long after the last key a script is run, in milliseconds. */
const PAUSE = 350;

export class Editor {
  /** `changed(script)` is called when the reader has edited it. */
  constructor(id, changed) {
    this.text = el("textarea", {
      id: `${id}-script`, class: "wb-text", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off",
      "aria-label": "The script: one call a line", "aria-describedby": `${id}-wrong`,
    });
    this.numbers = el("ol", { class: "wb-numbers", "aria-hidden": "true" });
    this.wrong = el("p", { id: `${id}-wrong`, class: "wb-wrong", role: "alert" });
    this.element = el("div", { class: "wb-editor" }, el("div", { class: "wb-paper" }, this.numbers, this.text), this.wrong);
    this.text.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.draw();
      this.timer = setTimeout(() => changed(this.text.value), PAUSE);
    });
    this.text.addEventListener("scroll", () => { this.numbers.scrollTop = this.text.scrollTop; });
    // Its keys are the text's own.
    this.text.addEventListener("keydown", (event) => event.stopPropagation());
  }

  get script() { return this.text.value; }

  set(script) {
    clearTimeout(this.timer);
    if (this.text.value !== script) this.text.value = script;
    this.draw();
  }

  /** One number a line. */
  draw() {
    const count = this.text.value.split("\n").length;
    while (this.numbers.children.length > count) this.numbers.lastChild.remove();
    while (this.numbers.children.length < count) this.numbers.append(el("li", {}, String(this.numbers.children.length + 1)));
    this.text.rows = Math.max(4, Math.min(14, count + 1));
  }

  /** Shows what's wrong, at its line; null if nothing is. */
  error(error) {
    for (const [index, row] of [...this.numbers.children].entries()) row.classList.toggle("wrong", index + 1 === error?.line);
    this.text.setAttribute("aria-invalid", String(Boolean(error)));
    this.wrong.textContent = error ? `Line ${error.line}: ${error.says}.` : "";
  }

  /** The line that has acted last. */
  acts(line) {
    if (line === this.line) return;
    this.line = line;
    for (const [index, row] of [...this.numbers.children].entries()) row.classList.toggle("acts", index + 1 === line);
  }
}
