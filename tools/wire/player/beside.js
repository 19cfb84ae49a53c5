// A run with a change beside the good one. Who moves in one takes the other along, step by step; and before each packet of the
// changed one the reader is asked what it will be.

import { el } from "./dom.js";
import { isPacket, step } from "./run.js";
import { mount } from "./player.js";

/** Shows both runs in `element`; on a narrow screen one of them. */
export function mountBeside(element, good, changed) {
  const halves = [["changed", "With the change"], ["good", "The good run"]].map(([id, name]) => ({ id, name, stage: el("div", {}) }));
  const show = (wanted) => {
    pair.dataset.half = wanted;
    for (const { id, button } of halves) button.setAttribute("aria-pressed", String(id === wanted));
  };
  for (const half of halves) half.button = el("button", { type: "button", click: () => show(half.id) }, half.name);
  const pair = el(
    "div",
    { class: "rp rp-pair-of-runs" },
    el("div", { class: "rp-halves", role: "group", "aria-label": "Which run is shown" }, ...halves.map(({ button }) => button)),
    ...halves.map(({ id, name, stage }) => el("section", { class: `rp-half rp-${id}`, "aria-label": name }, el("h3", {}, name), stage)),
  );
  element.replaceChildren(pair);
  show("changed");

  const players = [];
  let leads = null;
  const moved = (leader) => {
    if (leads || players.length < 2) return;
    leads = leader;
    follow(leader, players.find((player) => player !== leader));
    leads = null;
  };
  for (const [place, data] of [changed, good].entries()) players.push(mount(halves[place].stage, data, { link: false, moved }));
  // Up to where the wire or the lab acts, because the reader predicts what happens then.
  const trouble = changed.events.findIndex((event) => event.notes?.some((note) => note.startsWith("lab: ")));
  if (trouble > 0) players[0].goto(trouble);
  players[0].predicting();
}

/** Goes where the leader is: to the same step, to its packet or to the line that causes it. */
function follow({ moment: { event } }, other) {
  const named = event && step(event);
  const at = named ? other.data.events.findIndex((event_) => step(event_) === named && isPacket(event_) === isPacket(event)) : -1;
  if (at >= 0) other.goto(at + 1);
}
