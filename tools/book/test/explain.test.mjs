// `wire explain` in the page: a capture is read, explained and played, and nothing leaves the browser.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { write } from "./support/million.mjs";
import { Browser } from "./support/browser.mjs";
import { REPOSITORY, SITE, start, WIRE } from "./support/site.mjs";

const folder = mkdtempSync(join(tmpdir(), "explain-"));
let browser, site;
before(async () => { [browser, site] = [await Browser.start(), await start()]; });
after(async () => { await browser?.stop(); site?.stop(); rmSync(folder, { recursive: true }); });

const capture = (name) => join(REPOSITORY, `captures/${name}.pcapng`);
const page = () => `${site.url}docs/explain.html`;
const isThere = existsSync(join(SITE, "explain/program.js"));
/** Where there was no compiler for the program, its tests are told as skipped, and not as passed. */
const program = { skip: isThere ? false : "NOT RUN: the book was built without the program, for there was no compiler for WebAssembly" };

test("without its program the page says so", async () => {
  await browser.open(page());
  const said = await browser.run(() => document.getElementById("explain").innerText);
  assert.equal(said.includes("The program is not in this copy"), !isThere, said);
});

/** Chooses a file, and waits until it is read. */
async function choose(path) {
  await browser.run(() => (document.querySelector("#explain [role=status]").textContent = ""));
  await browser.type("#explain-file", path);
  return browser.until(() => {
    const said = document.querySelector("#explain [role=status]").textContent;
    return said && !said.endsWith("…") && said;
  });
}

const told = () => document.querySelector("#explain .told").innerText;

test("a capture is explained as on the command line, and a frame that is named is played", program, async () => {
  await browser.size(1280, 900);
  await browser.open(page());
  const status = await choose(capture("changes/04-wrong-key"));
  assert.match(status, /^04-wrong-key\.pcapng: \d+ RDMA packets in \d+ frames\. Something went wrong\.$/);
  const [, sentence] = / {2}(The client's RC RDMA Write Only of \d+ bytes [^]*?\))\./.exec(readFileSync(join(REPOSITORY, "docs/explain.md"), "utf8"));
  assert.ok((await browser.run(told)).includes(sentence.replace(/\s+/g, " ")), sentence);
  const frame = await browser.run(() => {
    const button = document.querySelector("#explain .finding button");
    button.click();
    return button.textContent;
  });
  assert.match(await browser.run(() => document.querySelector("#explain .rp-clock").textContent), new RegExp(`^frame ${frame}\\b`));
  assert.ok(await browser.run(() => document.querySelectorAll("#explain .rp-ladder *").length) > 20, "the ladder");
  const link = await browser.run(() => document.querySelector("#explain .finding a").href);
  assert.ok(existsSync(join(SITE, link.slice(site.url.length))), link);
  assert.deepEqual(await browser.complaints(), []);
});

test("the verdict is that of the command line, for every recorded change", program, async () => {
  await browser.open(page());
  const wrong = [];
  for (const name of readdirSync(join(REPOSITORY, "captures/changes")).filter((name) => name.endsWith(".pcapng"))) {
    const path = join(REPOSITORY, "captures/changes", name);
    const [status, ends] = [await choose(path), spawnSync(WIRE, ["explain", path]).status];
    if (status.includes("Something went wrong") !== (ends === 1)) wrong.push(`${status}: wire explain ends with ${ends}`);
  }
  assert.deepEqual(wrong, []);
});

test("what a program printed leads to its line, which is shown at once where packets tell nothing", program, async () => {
  await browser.open(page());
  await choose(join(REPOSITORY, "captures/changes/01-nobody-listens.pcapng"));
  const [line, clock] = await browser.run(() => {
    const button = [...document.querySelectorAll("#explain .told button")].find((button) => button.textContent.startsWith("show line"));
    button.click();
    return [button.textContent.match(/\d+/)[0], document.querySelector("#explain .rp-clock").textContent];
  });
  assert.match(clock, new RegExp(`^frame ${line}\\b`));
});

test("nothing leaves the page: not what it does by itself, and not what a script in it would try", program, async (t) => {
  let asked = 0;
  const listener = createServer((_, response) => { asked++; response.end(); }).listen(0, "127.0.0.1");
  t.after(() => { listener.close(); listener.closeAllConnections(); });
  await once(listener, "listening");
  const other = `http://127.0.0.1:${listener.address().port}/`;
  await browser.open(page());
  await browser.until(() => document.querySelector("#explain-file"));
  const fetched = () => performance.getEntriesByType("resource").map(({ name }) => name);
  // All that belongs to the page has come once a second passes without anything new.
  let before;
  for (let now = await browser.run(fetched); now.length !== before?.length; now = await browser.run(fetched)) {
    before = now;
    await sleep(1000);
  }
  await choose(capture("changes/04-wrong-key"));
  await browser.run(() => document.querySelector("#explain .rp-play").click());
  assert.deepEqual(await browser.run(fetched), before);
  const refused = await browser.run(async (other) => {
    const refused = new Set();
    addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => refused.add(`${effectiveDirective} ${new URL(blockedURI).origin === location.origin ? "own" : "other"}`));
    for (const to of [other, location.href]) {
      await fetch(to).catch(() => {});
      const request = new XMLHttpRequest();
      request.open("POST", to);
      request.send("x");
      navigator.sendBeacon(to, "x");
      try { new WebSocket(to.replace("http", "ws")); } catch { /* as it should be */ }
      new EventSource(to);
    }
    new Image().src = other;
    document.head.append(Object.assign(document.createElement("script"), { src: other }));
    document.body.append(Object.assign(document.createElement("iframe"), { src: other }));
    const form = document.body.appendChild(Object.assign(document.createElement("form"), { action: other, method: "post" }));
    form.submit();
    await new Promise((later) => setTimeout(later, 500));
    return [...refused].sort();
  }, other);
  assert.equal(asked, 0);
  const expected = ["connect-src other", "connect-src own", "form-action other", "frame-src other", "img-src other", "script-src-elem other"];
  assert.deepEqual(refused, expected);
  await browser.complaints();
});

test("it works from a folder, and on a phone", program, async () => {
  await browser.size(360, 740);
  await browser.open(pathToFileURL(join(SITE, "docs/explain.html")).href);
  assert.match(await choose(capture("changes/13-cut")), /Something went wrong/);
  const wide = await browser.run(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${wide} pixels too wide`);
  assert.match(await browser.run(told), /was sent \d+ times and had no answer/);
  assert.deepEqual(await browser.complaints(), []);
});

test("what is no capture, or a bad one, is said in words", program, async () => {
  await browser.open(page());
  assert.match(await choose(join(REPOSITORY, "README.md")), /^README\.md: not a pcap or pcapng file/);
  const cut = join(folder, "cut.pcapng");
  writeFileSync(cut, readFileSync(capture("04_rdma_write")).subarray(0, 20_000));
  await choose(cut);
  assert.match(await browser.run(told), /the file ends inside/);
});

const MARKUP = "<img src=x onerror=window.hit=1>";

test("what a capture says stays text, whatever it is", program, async () => {
  const bytes = readFileSync(capture("changes/04-wrong-key"));
  // Over whatever a program has said, with as many bytes: the lines of its log, and the names of program and stage.
  let at = 0, lines = 0;
  while ((at = bytes.indexOf("MESSAGE=", at)) > 0) {
    const end = bytes.indexOf("\n", at);
    for (const word of [") ERR   ", "] ERR   ", "] INFO  ", "] DATA  "]) {
      const begin = bytes.indexOf(word, at) + word.length;
      if (begin > word.length && begin + MARKUP.length < end) lines += bytes.write(MARKUP, begin) && 1;
    }
    at = end;
  }
  assert.ok(lines > 5, `${lines} lines`);
  const path = join(folder, `${MARKUP}.pcapng`);
  writeFileSync(path, bytes);
  await browser.open(page());
  await choose(path);
  await browser.press("End");
  const seen = await browser.run(async () => {
    const player = document.querySelector("#explain .rp");
    for (let turn = 0; turn < 60; turn++) player.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    await new Promise((later) => setTimeout(later, 200));
    const element = document.getElementById("explain");
    return { hit: window.hit ?? "not run", images: element.querySelectorAll("img").length, text: element.textContent.split("<img src=x onerror").length - 1 };
  });
  assert.deepEqual([seen.hit, seen.images], ["not run", 0]);
  assert.ok(seen.text > 5, `${seen.text} times as text`);
  assert.deepEqual(await browser.complaints(), []);
});

/** The most memory that any process of this browser has had, of those that run pages; in MB. */
function peak(driver) {
  const parent = (id) => Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/status`, "utf8"))[1]);
  const isOurs = (id) => { while (id > 1 && id !== driver) id = parent(id); return id === driver; };
  const pages = readdirSync("/proc").filter((id) => {
    try { return Number(id) && readFileSync(`/proc/${id}/cmdline`, "utf8").includes("--type=renderer") && isOurs(Number(id)); } catch { return false; }
  });
  return Math.max(...pages.map((id) => Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/status`, "utf8"))[1]) / 1024));
}

test("a million packets take no more memory than the file and a page, and ten times as long as a hundred thousand", program, async (t) => {
  const took = [];
  for (const packets of [100_000, 1_000_000]) {
    const path = join(folder, `${packets}.pcap`);
    write(path, packets);
    await browser.open("about:blank");
    await browser.open(page());
    const begin = Date.now();
    const status = await choose(path);
    took.push(Date.now() - begin);
    assert.equal(status, `${packets}.pcap: ${packets} RDMA packets in ${packets} frames. Nothing that it shows went wrong.`);
    rmSync(path);
  }
  const memory = Math.round(peak(browser.driver.pid));
  t.diagnostic(`100,000 packets: ${took[0]} ms; 1,000,000: ${took[1]} ms, ${memory} MB at the most`);
  assert.ok(memory < 500, `${memory} MB`);
  assert.ok(took[1] < 20 * Math.max(took[0], 200), `${took} ms`);
});
