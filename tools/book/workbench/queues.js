// What's in a node's queues at a moment: work requests that aren't done, receives that no message has taken, completions.

import { after } from "./schedule.js";

export class Queues {
  /** `node` is what the program says of it at the end of the run, `number` its place in the run. */
  constructor({ lines, nodes }, script, name, number, schedule) {
    const node = nodes.find((node) => node.name === name);
    const texts = script.split("\n");
    const what = ({ line }) => /\bibv_post_(send|recv)\b/.exec(texts[line - 1])?.[1];
    const posts = lines.filter((line) => line.node === name && line.event != null && what(line)).sort((one, other) => one.event - other.event);
    // A program numbers its requests in the order in which it posts them.
    this.posts = posts.map((line, place) => ({ id: place + 1, what: what(line), at: schedule.begins[line.event] }));
    this.done = node.completions.map((completion) => ({ ...completion, at: schedule.when(number, completion.us) }));
    [this.end, this.left] = [schedule.length, node.qp];
    /** When something changes: in between it's all as it was. */
    this.changes = [...this.posts, ...this.done, { at: this.end }].map(({ at }) => at).sort((one, other) => one - other);
  }

  at(at) {
    const change = after(this.changes, at, (begins) => begins);
    if (change !== this.change) [this.change, this.now] = [change, this.count(at)];
    return this.now;
  }

  count(at) {
    const done = this.done.filter((completion) => completion.at <= at);
    const isDone = new Set(done.map(({ wr_id }) => wr_id));
    const isSend = (id) => this.posts[id - 1]?.what === "send";
    // A success that wasn't signaled has no completion of its own; the next one speaks for it.
    const last = Math.max(0, ...[...isDone].filter(isSend));
    const open = this.posts.filter((post) => post.at <= at && !isDone.has(post.id));
    const sends = open.filter(({ id, what }) => what === "send" && id > last).length;
    const receives = open.filter(({ what }) => what === "recv").length;
    return { sends: at < this.end ? sends : Math.min(sends, this.left.sends_waiting), receives, done };
  }
}
