// One packet: its layers as a tree, and its bytes; what is pointed at in the tree is marked in the bytes.
"use strict";

wireshark.packet = () => {
  /** So many bytes are shown: the largest that IP carries. A log line may be longer. */
  const MOST = 65536;
  const ROW = 16;

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
  /** The source whose bytes are shown, and the numbers of those of its rows in which some are marked. */
  let [shown, marked] = [-1, []];

  /** A part of the packet, with the parts in it, which are made when it is opened. What is about RDMA is open. */
  function part(node, depth, open) {
    const inner = wireshark.array(node.tree);
    const text = document.createElement(inner.length ? "summary" : "p");
    text.textContent = wireshark.plain(node.label);
    const about = inner.length ? document.createElement("details") : text;
    if (inner.length) {
      const fill = () => about.append(...inner.map((node) => part(node, depth + 1, open && depth < 1)));
      about.open = open;
      about.append(text);
      if (open) fill();
      else about.addEventListener("toggle", fill, { once: true });
    } else {
      text.tabIndex = 0;
    }
    const point = () => mark(node.data_source_idx, node.start, node.length);
    text.addEventListener("focus", point);
    text.addEventListener("pointerenter", point);
    return about;
  }

  /** Marks some bytes of a source. Only the rows that change are written anew. */
  function mark(source, start, length) {
    const bytes = sources[source] ?? [];
    if (shown !== source) {
      shown = source;
      marked = [];
      const rows = Array.from({ length: Math.ceil(bytes.length / ROW) }, (_, row) => line(bytes, row, 0, 0));
      dump.replaceChildren(...rows, bytes.more ? `… ${bytes.more} more bytes` : "");
    }
    const [first, end] = [Math.floor(start / ROW), length > 0 ? Math.ceil(Math.min(start + length, bytes.length) / ROW) : 0];
    for (const row of marked) dump.children[row].replaceWith(line(bytes, row, 0, 0));
    marked = Array.from({ length: Math.max(0, end - first) }, (_, row) => first + row);
    for (const row of marked) dump.children[row].replaceWith(line(bytes, row, start, length));
  }

  /** Sixteen bytes in hexadecimal and as letters, those of them marked that are meant. */
  function line(bytes, row, start, length) {
    const here = Array.from(bytes.subarray(row * ROW, row * ROW + ROW));
    const hex = (value, digits) => value.toString(16).padStart(digits, "0");
    const letter = (value) => (value > 31 && value < 127 ? String.fromCharCode(value) : "·");
    const [first, end] = [start, start + length].map((place) => Math.min(Math.max(place - row * ROW, 0), here.length));
    const pieces = (show, gap) => {
      const text = (from, to) => here.slice(from, to).map(show).join(gap);
      const mark = document.createElement("mark");
      mark.textContent = text(first, end);
      const beside = (one, other) => (one && other ? gap : "");
      return first < end ? [text(0, first) + beside(first, 1), mark, beside(1, end < here.length) + text(end)] : [text(0)];
    };
    const made = document.createElement("span");
    const space = " ".repeat((ROW - here.length) * 3 + 2);
    made.append(`${hex(row * ROW, 4)}  `, ...pieces((value) => hex(value, 2), " "), space, ...pieces(letter, ""), "\n");
    return made;
  }

  /** The first bytes of what Wireshark hands over in base64, four letters for three bytes; `more` is how many are left out. */
  function decoded({ data }) {
    const bytes = Uint8Array.from(atob(data.slice(0, Math.ceil(MOST / 3) * 4)), (letter) => letter.charCodeAt(0));
    const all = (data.length / 4) * 3 - (/=*$/.exec(data.slice(-2))[0].length);
    const first = bytes.subarray(0, MOST);
    first.more = all - first.length;
    return first;
  }

  return {
    element,
    show(frame) {
      sources = wireshark.array(frame.data_sources).map(decoded);
      shown = -1;
      const layers = wireshark.array(frame.tree);
      tree.replaceChildren(...layers.map((layer) => part(layer, 0, /InfiniBand|Systemd Journal/i.test(layer.label))));
      mark(0, 0, 0);
    },
  };
};
