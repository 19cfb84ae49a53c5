// The list of packets and log lines.
"use strict";

/** The content of one of the program's vectors. */
wireshark.array = (vector) => Array.from({ length: vector.size() }, (_, at) => vector.get(at));

/** Text of a capture, without the characters that turn around what stands beside them: Unicode Standard Annex 9, section 2. */
wireshark.plain = (text) => text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** A list whose selected entry is handed to `select` as its number. */
wireshark.list = (select) => {
  const head = document.createElement("tr");
  const body = document.createElement("tbody");
  const table = document.createElement("table");
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", "Packets and log lines");
  table.createTHead().append(head);
  table.append(body);
  const element = document.createElement("div");
  element.className = "ws-list";
  element.append(table);

  function choose(row, focus) {
    if (!row || row.parentElement !== body) return;
    for (const other of body.querySelectorAll("[aria-selected=true]")) {
      other.setAttribute("aria-selected", "false");
      other.tabIndex = -1;
    }
    row.setAttribute("aria-selected", "true");
    row.tabIndex = 0;
    if (focus) row.focus();
    // Only the list scrolls, not the page.
    const head = table.tHead.offsetHeight;
    if (row.offsetTop - head < element.scrollTop) element.scrollTop = row.offsetTop - head;
    if (row.offsetTop + row.offsetHeight > element.scrollTop + element.clientHeight) {
      element.scrollTop = row.offsetTop + row.offsetHeight - element.clientHeight;
    }
    select(Number(row.dataset.number));
  }

  body.addEventListener("click", (event) => choose(event.target.closest("tr")));
  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling, Home: body.firstElementChild, End: body.lastElementChild }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    choose(next, true);
  });

  return {
    element,
    columns(names) {
      head.replaceChildren(...names.map((name) => {
        const cell = document.createElement("th");
        cell.scope = "col";
        cell.textContent = name;
        return cell;
      }));
    },
    /** Lists entries and selects the one with this number, or the first WRITE, or the first. */
    fill(frames, number) {
      const color = (value) => `#${value.toString(16).padStart(6, "0")}`;
      body.replaceChildren(...frames.map((frame) => {
        const row = document.createElement("tr");
        row.dataset.number = frame.number;
        row.tabIndex = -1;
        row.setAttribute("aria-selected", "false");
        row.style.background = color(frame.bg);
        row.style.color = color(frame.fg);
        row.append(...wireshark.array(frame.columns).map((text) => {
          const cell = document.createElement("td");
          cell.textContent = wireshark.plain(text);
          if (text.length > 30) cell.title = cell.textContent.slice(0, 500);
          return cell;
        }));
        return row;
      }));
      const rows = [...body.children];
      const wanted = rows.find((row) => Number(row.dataset.number) === number);
      choose(wanted ?? rows.find((row) => row.textContent.includes("RDMA Write")) ?? rows[0]);
    },
  };
};
