// The workbench's program by itself, without a page: it's small, and what it answers is a run.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { SITE } from "./support/site.mjs";

const path = join(SITE, "workbench/program.js");
/** Where there was no compiler for the program, its tests are told as skipped, and not as passed. */
const program = { skip: existsSync(path) ? false : "NOT RUN: the book was built without the workbench, for there was no compiler for WebAssembly" };

const MOST_BYTES = 350 * 1024;

/** What a function of the program answers. */
async function ask(name, request) {
  const [, text] = /"([^"]*)"/.exec(readFileSync(path, "utf8"));
  const { instance } = await WebAssembly.instantiate(gunzipSync(Buffer.from(text, "base64")));
  const { allocate, memory, [name]: call } = instance.exports;
  const asked = new TextEncoder().encode(JSON.stringify(request));
  const at = allocate(asked.length) >>> 0;
  new Uint8Array(memory.buffer, at, asked.length).set(asked);
  const answer = call(at, asked.length) >>> 0;
  const length = new DataView(memory.buffer).getUint32(answer, true);
  return Buffer.from(memory.buffer, answer + 4, length);
}

test("the program is as small as it has to be", program, (t) => {
  const size = gzipSync(readFileSync(path), { level: 9 }).length;
  t.diagnostic(`${size} bytes, packed`);
  assert.ok(size <= MOST_BYTES, `${size} bytes`);
});

test("a script is run, judged, and is a run file", program, async () => {
  const request = { script: "client ibv_post_send WRITE 0..60 to server 0\nclient ibv_poll_cq\n", challenge: "first-write" };
  const run = JSON.parse(await ask("run", request));
  assert.equal(run.sentence, "The client's 60 bytes are in the server's memory, and the server's program heard nothing of it.");
  assert.ok(run.verdict.passed, run.verdict.says);
  const file = await ask("file", request);
  assert.equal(file.readUInt32LE(0), 0x0a0d0d0a);
  assert.deepEqual(file, await ask("file", request));
  const challenges = JSON.parse(await ask("challenges", {}));
  assert.ok(challenges.length >= 30 && challenges.every(({ name, task }) => name && task), challenges.length);
  assert.equal(JSON.parse(await ask("run", { script: "client dances" })).error.line, 1);
});
