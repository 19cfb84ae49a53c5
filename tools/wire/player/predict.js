// "Predict": before a packet or a new state of a queue pair is shown, the reader says what it will be.

import { el } from "./dom.js";
import { STATES, isPacket } from "./run.js";

/** What to ask before an event: the question, the right answer, and wrong ones; null if there is nothing to ask. */
export function question(data, moment, event) {
  const name = (node) => data.nodes[node]?.split(" ")[0] ?? "";
  if (isPacket(event)) {
    const said = (packet) => `${name(packet.node)} → ${name(packet.to)}: ${packet.tag}`;
    const others = data.events.filter(isPacket).map(said);
    return choice("What comes next on the wire?", said(event), others, event.n);
  }
  const state = event.qp?.find((state) => state.state && state.state !== moment.queuePairs.get(`${state.node} ${state.qpn}`)?.state);
  return state ? choice(`What state will the ${name(state.node)}'s queue pair be in?`, state.state, STATES, event.n) : null;
}

/** Three answers in an order that is always the same for the same frame. */
function choice(question, right, others, seed) {
  const wrong = [...new Set(others)].filter((other) => other !== right);
  const picked = [0, 1].map((i) => wrong.splice((seed * 7 + i * 5) % Math.max(1, wrong.length), 1)[0]).filter(Boolean);
  const place = seed % (picked.length + 1);
  picked.splice(place, 0, right);
  return picked.length > 1 ? { question, right, answers: picked } : null;
}

/** The question with its answers as buttons; `answered` is called with the one that was chosen, or null for "show me". */
export function ask({ question, answers }, answered) {
  const button = (answer) => el("button", { type: "button", click: () => answered(answer) }, answer);
  const show = el("button", { type: "button", class: "rp-plain", click: () => answered(null) }, "Show me");
  return el("div", { class: "rp-question", role: "group", "aria-label": question }, el("p", {}, question), ...answers.map(button), show);
}
