// The lesson's source, and in it the line that acts.

import { bring, el } from "./dom.js";

export class Code {
  constructor(data) {
    this.data = data;
    this.title = el("h3", {}, "Code");
    this.about = el("p", { class: "rp-about" });
    this.text = el("div", { class: "rp-source", tabindex: 0, role: "region", "aria-label": "The source of the lesson" });
    this.element = el("section", { class: "rp-pane rp-code" }, el("header", {}, this.title, this.about), this.text);
  }

  show({ event, code }, smooth) {
    // Before anybody has said anything, the source that will speak first.
    const begins = !code;
    code ??= this.data.events.find((event) => event.code)?.code;
    if (!code) return;
    const [file, line, exact] = code;
    // From one file to another there's nothing to glide along.
    const same = this.file === file;
    if (!same) {
      this.file = file;
      this.rows = this.data.files[file][1].split("\n").map(source);
      this.text.replaceChildren(...this.rows);
    }
    const acts = event?.code && !event.device;
    this.title.textContent = this.data.files[file][0];
    this.about.textContent = begins ? "" : `line ${line}${about(event, exact)}`;
    this.row?.classList.remove("acts", "acted");
    this.row = this.rows[line - 1];
    if (!this.row) return;
    if (!begins) this.row.classList.add(acts && exact ? "acts" : "acted");
    this.bring(smooth && same);
  }

  /** Shows the line. While the pane is hidden, as on a phone behind another one, there's nowhere to scroll. */
  bring(smooth = false) {
    if (this.row) bring(this.text, this.row, smooth, 0.4);
  }
}

/** What is to be said about a line beside its number. */
function about(event, exact) {
  if (!event.code) return ", the last that acted";
  if (event.device) return " asked for this; now the device answers, and no program";
  return exact ? "" : ", in this function";
}

const WORDS = /(\/\/.*$)|("(?:[^"\\]|\\.)*")|\b(as|break|const|continue|else|enum|fn|for|if|impl|in|let|loop|match|mod|move|mut|pub|return|self|struct|use|while)\b|([A-Za-z_]\w*)(?=!?\()/g;

/** A line with its words coloured. */
function source(text, index) {
  const row = el("span", { class: "rp-row" }, el("span", { class: "rp-n" }, String(index + 1)));
  let at = 0;
  for (const match of text.matchAll(WORDS)) {
    row.append(text.slice(at, match.index));
    const sort = ["comment", "string", "word", "call"].find((_, group) => match[group + 1] !== undefined);
    row.append(el("span", { class: `rp-${sort}` }, match[0]));
    at = match.index + match[0].length;
  }
  row.append(text.slice(at) + "\n");
  return row;
}
