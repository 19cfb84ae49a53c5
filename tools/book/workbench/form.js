// A small form whose fields make one line of a script.

import { el } from "../player/dom.js";

export const number = (name, label, value, min = 0, max = 65536) => ({ name, label, value, attributes: { type: "number", min, max, inputmode: "numeric" } });
export const check = (name, label, value = false) => ({ name, label, value, attributes: { type: "checkbox" } });
export const choice = (name, label, options) => ({ name, label, value: options[0], options });
export const text = (name, label, value) => ({ name, label, value, attributes: { type: "text", spellcheck: "false", autocomplete: "off" } });

export class Form {
  /** `line(values)` is the line; `done(line)` is called with it when the reader wants it. */
  constructor({ about, fields, line, act = "Do it" }, kept, done) {
    this.fields = fields;
    this.line = line;
    this.values = kept;
    for (const { name, value } of fields) this.values[name] ??= value;
    this.code = el("code", {});
    this.element = el(
      "form",
      { class: "wb-form", submit: (event) => { event.preventDefault(); done(this.code.textContent); } },
      about ? el("p", { class: "wb-about" }, about) : null,
      ...fields.map((field) => this.field(field)),
      el("p", { class: "wb-line" }, this.code, el("button", { class: "wb-do" }, act)),
    );
    this.write();
  }

  field(field) {
    const { name, label, attributes, options } = field;
    const value = this.values[name];
    const input = options
      ? el("select", {}, ...options.map((option) => el("option", { selected: option === value }, option)))
      : el("input", { ...attributes, ...(attributes.type === "checkbox" ? { checked: value } : { value }) });
    input.addEventListener("input", () => {
      this.values[name] = input.type === "checkbox" ? input.checked : input.type === "number" ? Math.trunc(Number(input.value)) : input.value;
      this.write();
    });
    const made = el("label", { class: `${attributes?.type === "checkbox" ? "wb-check" : "wb-field"}${name === "length" ? "" : " wb-rest"}` });
    made.append(...(attributes?.type === "checkbox" ? [input, label] : [el("span", {}, label), input]));
    field.element = made;
    return made;
  }

  write() {
    for (const { element, when } of this.fields) if (when) element.hidden = !when(this.values);
    this.code.textContent = this.line(this.values);
  }
}

/** A field that is there only in some cases. */
export const when = (test, field) => ({ ...field, when: test });
