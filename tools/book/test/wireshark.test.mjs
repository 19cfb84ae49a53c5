// Wireshark in the page: it opens a bundled run and a capture of one's own, and shows a packet field by field.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { WRITE } from "./support/lesson04.mjs";
import { Browser } from "./support/browser.mjs";
import { REPOSITORY, start } from "./support/site.mjs";

let browser, site;
before(async () => { [browser, site] = [await Browser.start(), await start()]; });
after(async () => { await browser?.stop(); site?.stop(); });

const said = () => document.querySelector("#wireshark [role=status]").textContent;

/** What a reader sees once a capture is open. */
const seen = () => ({
  status: document.querySelector("#wireshark [role=status]").textContent,
  columns: [...document.querySelectorAll(".ws-list th")].map((cell) => cell.textContent),
  row: [...document.querySelectorAll(".ws-list tr[aria-selected=true] td")].map((cell) => cell.textContent),
  background: document.querySelector(".ws-list tr[aria-selected=true]").style.backgroundColor,
  logs: [...document.querySelectorAll(".ws-list tbody tr")].filter((row) => row.textContent.includes("ibv_post_send")).length,
  tree: document.querySelector(".ws-tree").innerText,
  bytes: document.querySelector(".ws-bytes").textContent,
});

test("nothing of it is loaded before somebody asks", async () => {
  await browser.open(`${site.url}wireshark.html`);
  const big = await browser.run(() => performance.getEntriesByType("resource").filter(({ name }) => name.includes("wiregasm")).length);
  assert.equal(big, 0);
});

test("a bundled run opens at a frame, in our columns and colours, with log lines between the packets", async () => {
  await browser.size(1280, 900);
  await browser.open("about:blank");
  await browser.open(`${site.url}wireshark.html#run=04_rdma_write&frame=${WRITE}`);
  await browser.click("#wireshark button.primary");
  await browser.until(() => document.querySelector(".ws-tree")?.innerText.includes("RETH"));
  const { status, columns, row, background, logs, tree, bytes } = await browser.run(seen);
  assert.match(status, /^04_rdma_write\.pcapng: \d+ packets and log lines/);
  assert.deepEqual(columns.slice(0, 6), ["No.", "Time", "Source", "Destination", "Info", "Step"]);
  assert.deepEqual([row[0], row[2], row[3]], [`${WRITE}`, "client", "server"]);
  assert.match(row[4], /RDMA Write Only/);
  assert.match(row[5], /^Step 8: The client writes/);
  assert.equal(background, "rgb(222, 236, 255)", "the profile's color of a WRITE");
  assert.ok(logs >= 2, "log lines");
  assert.match(tree, /RETH - RDMA Extended Transport Header[^]*DMA Length: 60/);
  assert.match(bytes, /^0000 {2}[0-9a-f]{2} /);
  const last = await browser.run(() => {
    const [list, step] = [document.querySelector(".ws-list"), document.querySelectorAll(".ws-list th")[5]];
    return { seen: list.getBoundingClientRect().right - step.getBoundingClientRect().left, drop: getComputedStyle(document.querySelector(".ws-drop")).borderTopStyle };
  });
  assert.ok(last.seen > 150 && last.drop === "dashed", `of the steps ${last.seen} pixels are seen, the place to drop is ${last.drop}`);
  assert.deepEqual(await browser.complaints(), []);
});

test("a display filter lists what it names, and says what is wrong with it", async () => {
  await browser.run(() => [...document.querySelectorAll(".ws-buttons button")].find((button) => button.textContent === "WRITE").click());
  assert.equal(await browser.run(said), "1 match the filter.");
  await browser.run(() => {
    const filter = document.getElementById("ws-filter");
    filter.value = "no such filter";
    filter.dispatchEvent(new Event("change"));
  });
  assert.match(await browser.run(said), /^No display filter: ./);
});

test("a capture of one's own opens, and one that is none is refused in words", async () => {
  await browser.type("#ws-file", join(REPOSITORY, "captures/05_rdma_read.pcapng"));
  assert.ok(await browser.until(() => document.querySelector("#wireshark [role=status]").textContent.startsWith("05_rdma_read.pcapng: ")));
  assert.match((await browser.run(seen)).tree, /InfiniBand/);
  await browser.type("#ws-file", join(REPOSITORY, "README.md"));
  assert.ok(await browser.until(() => /cannot read README\.md: ./.test(document.querySelector("#wireshark [role=status]").textContent)));
});

const folder = mkdtempSync(join(tmpdir(), "wireshark-"));
after(() => rmSync(folder, { recursive: true }));

/** Opens a file with these bytes. */
async function own(name, bytes) {
  writeFileSync(join(folder, name), bytes);
  await browser.type("#ws-file", join(folder, name));
  return browser.until((name) => {
    const said = document.querySelector("#wireshark [role=status]").textContent;
    return /: \d+ packets|cannot read/.test(said) && said.includes(name) && said;
  }, name);
}

test("of a file that ends too early what came before is shown, and so it is told", async () => {
  const whole = readFileSync(join(REPOSITORY, "captures/04_rdma_write.pcapng"));
  const status = await own("cut.pcapng", whole.subarray(0, 20_000));
  assert.match(status, /^cut\.pcapng: \d+ packets and log lines\. .*the file ends inside a packet/);
  assert.ok(await browser.run(() => document.querySelectorAll(".ws-list tbody tr").length) > 50);
});

/** A run file with one line of a log. */
function line(text) {
  const block = (type, body) => {
    const padded = Buffer.concat([body, Buffer.alloc(-body.length & 3)]);
    const [head, length] = [Buffer.alloc(4), Buffer.alloc(4)];
    head.writeUInt32LE(type);
    length.writeUInt32LE(padded.length + 12);
    return Buffer.concat([head, length, padded, length]);
  };
  const section = Buffer.from("4d3c2b1a01000000ffffffffffffffff", "hex");
  return Buffer.concat([block(0x0a0d0d0a, section), block(9, Buffer.from(`__REALTIME_TIMESTAMP=1\n_HOSTNAME=x\nMESSAGE=${text}\n`))]);
}

test("a long line takes no longer to point at than a short one, and what turns text around does not", async () => {
  const took = [];
  for (const size of [50_000, 1_600_000]) {
    await own(`line-${size}.pcapng`, line(`\u202Erevres ${"x".repeat(size)}`));
    took.push(await browser.run(() => {
      const begin = performance.now();
      const parts = [...document.querySelectorAll(".ws-tree :is(p, summary)")];
      for (let turn = 0; turn < 20; turn++) parts[turn % parts.length].dispatchEvent(new Event("pointerenter"));
      document.querySelector(".ws-bytes").getBoundingClientRect();
      return performance.now() - begin;
    }));
  }
  // 32 times as many bytes.
  assert.ok(took[1] < 8 * Math.max(took[0], 50), `${took} ms`);
  assert.match(await browser.run(() => document.querySelector(".ws-bytes").textContent.slice(-40)), /… 15\d{5} more bytes/);
  assert.doesNotMatch(await browser.run(() => document.getElementById("wireshark").textContent), /\u202e/);
});
