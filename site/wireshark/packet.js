// One packet: its layers as a tree, and its bytes; what is pointed at in the tree is marked in the bytes.
"use strict";

wireshark.packet = () => {
  const tree = document.createElement("div");
  tree.className = "ws-tree";
  tree.tabIndex = 0;
  tree.setAttribute("role", "region");
  tree.setAttribute("aria-label", "The packet, layer by layer");
  const dump = document.createElement("pre");
  dump.className = "ws-bytes";
  dump.tabIndex = 0;
  dump.setAttribute("aria-label", "The packet's bytes");
  const element = document.createElement("div");
  element.className = "ws-packet";
  element.append(tree, dump);
  let sources = [];

  /** A part of the packet, with the parts in it. What is about RDMA is open. */
  function part(node, depth, open) {
    const inner = wireshark.array(node.tree);
    const text = document.createElement(inner.length ? "summary" : "p");
    text.textContent = node.label;
    const about = inner.length ? document.createElement("details") : text;
    if (inner.length) {
      about.open = open;
      about.append(text, ...inner.map((node) => part(node, depth + 1, open && depth < 1)));
    } else {
      text.tabIndex = 0;
    }
    const point = () => mark(node.data_source_idx, node.start, node.length);
    text.addEventListener("focus", point);
    text.addEventListener("pointerenter", point);
    return about;
  }

  /** The bytes of a source, sixteen a line, with some of them marked. */
  function mark(source, start, length) {
    const bytes = sources[source] ?? [];
    const hex = (value, digits) => value.toString(16).padStart(digits, "0");
    const text = (value) => (value > 31 && value < 127 ? String.fromCharCode(value) : "·");
    dump.replaceChildren();
    for (let line = 0; line < bytes.length; line += 16) {
      const row = bytes.slice(line, line + 16);
      const parts = (show, gap) => row.flatMap((value, at) => {
        const here = line + at >= start && line + at < start + length;
        const piece = document.createElement(here ? "mark" : "span");
        piece.textContent = show(value);
        return [piece, at === 15 ? "" : gap];
      });
      dump.append(`${hex(line, 4)}  `, ...parts((value) => hex(value, 2), " "), " ".repeat((16 - row.length) * 3 + 2), ...parts(text, ""), "\n");
    }
  }

  return {
    element,
    show(frame) {
      sources = wireshark.array(frame.data_sources).map(({ data }) => Array.from(atob(data), (letter) => letter.charCodeAt(0)));
      const layers = wireshark.array(frame.tree);
      tree.replaceChildren(...layers.map((layer) => part(layer, 0, /InfiniBand|Systemd Journal/i.test(layer.label))));
      mark(0, 0, 0);
    },
  };
};
