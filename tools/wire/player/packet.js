// A packet's bytes, header by header. Whoever points at bytes, or goes there by key, sees which field they are.

import { bring, el } from "./dom.js";
import { parts } from "./run.js";

export class Packet {
  constructor(data) {
    this.data = data;
    this.title = el("h3", {}, "Packet");
    this.about = el("p", { class: "rp-about" });
    this.bytes = el("div", { class: "rp-bytes", role: "toolbar", "aria-label": "Bytes of the packet; arrow keys go from field to field" });
    this.fields = el("div", { class: "rp-fields", tabindex: 0, role: "region", "aria-label": "Fields of the header" });
    this.element = el("section", { class: "rp-pane rp-pack" }, el("header", {}, this.title, this.about), this.bytes, this.fields);
    this.bytes.addEventListener("keydown", (key) => this.key(key));
  }

  show({ event, packet }) {
    if (packet) this.about.textContent = `frame ${packet.n}, ${packet.length} bytes${event === packet ? "" : "; the last that was sent"}`;
    if (this.packet === packet) return;
    this.packet = packet;
    this.cells = [];
    this.telling = null;
    if (!packet) {
      this.title.textContent = "Packet";
      this.about.textContent = "none has been sent yet";
      this.bytes.replaceChildren();
      this.fields.replaceChildren(el("p", {}, "Each packet will be here byte by byte. Point at bytes to see which field they are."));
      return;
    }
    this.title.textContent = packet.tag;
    const all = parts(this.data, packet);
    this.bytes.replaceChildren(...all.map((part) => this.part(part)));
    // The header that says most is the longest behind the BTH: RETH, AETH, or the message of the connection manager.
    const bth = all.findIndex((part) => part.title.startsWith("BTH"));
    const behind = all.slice(bth + 1).filter((part) => part.fields.length && !part.title.startsWith("ICRC"));
    const telling = behind.sort((one, other) => other.length - one.length)[0] ?? all[bth];
    const cell = this.cells.find((cell) => cell.part === telling) ?? this.cells[0];
    if (cell) this.select(cell, false);
    this.telling = cell;
    this.bring();
  }

  /** Shows the header that says most. */
  bring() {
    if (this.telling) bring(this.bytes, this.telling.button, false);
  }

  part(part) {
    const [short, long] = part.title.split("  ");
    const hex = this.packet.bytes;
    const cell = (first, end, fields) => {
      const text = hex.slice(first * 2, end * 2).replace(/..(?=.)/g, "$& ");
      if (!text) return null;
      const names = fields.map((field) => [field.name, field.value, field.meaning].filter(Boolean).join(" ")).join("; ");
      const button = el("button", { type: "button", tabindex: -1, "aria-label": `${names || short}: ${text}` }, text);
      const made = { button, part, fields, first, end };
      for (const type of ["pointerenter", "focus", "click"]) button.addEventListener(type, () => this.select(made, true));
      this.cells.push(made);
      return button;
    };
    const cells = part.fields.length
      ? groups(part.fields).map((fields) => cell(fields[0].first, fields.at(-1).end, fields))
      : rows(part).map(([first, end]) => cell(first, end, []));
    const title = el("span", { class: "rp-part-title" }, el("b", {}, short), el("small", {}, long ?? `${part.length} bytes`));
    return el("div", { class: "rp-part" }, title, el("span", { class: "rp-cells" }, ...cells));
  }

  select(cell, pointed) {
    for (const { button, part } of this.cells) {
      button.tabIndex = button === cell.button ? 0 : -1;
      button.classList.toggle("on", button === cell.button && pointed);
      button.parentElement?.parentElement?.classList.toggle("on", part === cell.part);
    }
    if (this.listed !== cell.part) {
      this.listed = cell.part;
      this.lines = cell.part.fields.map((field) =>
        el("tr", {}, el("th", { scope: "row" }, field.name), el("td", {}, field.value), el("td", {}, field.meaning)),
      );
      const body = this.lines.length ? el("table", {}, el("tbody", {}, ...this.lines)) : text(this.packet, cell.part);
      const [short, long] = cell.part.title.split("  ");
      this.fields.replaceChildren(el("p", {}, el("b", {}, short), ` ${long ?? ""} · ${cell.part.length} bytes`), body);
    }
    this.lines.forEach((line, index) => line.classList.toggle("on", pointed && cell.fields.includes(cell.part.fields[index])));
    const line = this.lines[cell.part.fields.indexOf(cell.fields[0])];
    if (line && pointed) bring(this.fields, line, false);
    else this.fields.scrollTop = 0;
  }

  key(key) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key.key];
    const at = this.cells.findIndex((cell) => cell.button === document.activeElement);
    if (!step || at < 0) return;
    key.preventDefault();
    key.stopPropagation();
    this.cells[at + step]?.button.focus();
  }
}

/** Fields that share bytes belong together. */
function groups(fields) {
  const all = [];
  for (const field of fields) {
    const last = all.at(-1);
    if (last && field.first < last.at(-1).end) last.push(field);
    else all.push([field]);
  }
  return all;
}

/** Sixteen bytes at a time. */
function rows({ start, length }) {
  return Array.from({ length: Math.ceil(length / 16) }, (_, i) => [start + i * 16, start + Math.min(length, (i + 1) * 16)]);
}

/** Bytes without fields, as the letters that they would be. */
function text(packet, { start, length }) {
  const bytes = packet.bytes.slice(start * 2, (start + length) * 2).match(/../g) ?? [];
  const letters = bytes.map((hex) => (hex >= "20" && hex < "7f" ? String.fromCharCode(parseInt(hex, 16)) : "·")).join("");
  const cut = length > bytes.length ? ` … ${length - bytes.length} more bytes` : "";
  return el("p", { class: "rp-letters" }, letters + cut);
}
