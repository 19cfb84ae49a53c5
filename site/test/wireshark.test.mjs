// Wireshark in the page: it opens a bundled run and a capture of one's own, and shows a packet field by field.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
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
  await browser.open("about:blank");
  await browser.open(`${site.url}wireshark.html#run=04_rdma_write&frame=100`);
  await browser.click("#wireshark button.primary");
  await browser.until(() => document.querySelector(".ws-tree")?.innerText.includes("RETH"));
  const { status, columns, row, background, logs, tree, bytes } = await browser.run(seen);
  assert.match(status, /^04_rdma_write\.pcapng: \d+ packets and log lines/);
  assert.deepEqual(columns.slice(0, 6), ["No.", "Time", "Source", "Destination", "Info", "Step"]);
  assert.deepEqual([row[0], row[2], row[3]], ["100", "client", "server"]);
  assert.match(row[4], /RDMA Write Only/);
  assert.match(row[5], /^Step 8: The client writes/);
  assert.equal(background, "rgb(222, 236, 255)", "the profile's color of a WRITE");
  assert.ok(logs >= 2, "log lines");
  assert.match(tree, /RETH - RDMA Extended Transport Header[^]*DMA Length: 60/);
  assert.match(bytes, /^0000 {2}[0-9a-f]{2} /);
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
  assert.ok(await browser.until(() => /cannot read README\.md/.test(document.querySelector("#wireshark [role=status]").textContent)));
});
