// What the pages share that take a reader's capture: explain/ and wireshark/.
"use strict";

const ownCapture = {
  /** An element with attributes and content. All content is text, or an element that was made here: what a capture says never becomes markup. */
  make(name, attributes = {}, ...content) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...content);
    return made;
  },

  /** Opens the file that is chosen with `input`, or dropped on `element`. */
  takes(element, input, open) {
    input.addEventListener("change", () => input.files[0] && open(input.files[0]));
    element.addEventListener("dragover", (event) => {
      event.preventDefault();
      element.classList.add("over");
    });
    element.addEventListener("dragleave", (event) => element.contains(event.relatedTarget) || element.classList.remove("over"));
    element.addEventListener("drop", (event) => {
      event.preventDefault();
      element.classList.remove("over");
      if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
    });
  },
};
