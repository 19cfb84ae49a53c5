// The search: what it finds for lines of public threads, and what a reader sees of it.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Browser } from "./support/browser.mjs";
import { finder, lines, ranks } from "./support/lines.mjs";
import { REPOSITORY, SITE, start } from "./support/site.mjs";

const NCCL = "NCCL WARN NET/IB : Got completion from peer 192.0.2.7<54862> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid ::ffff:192.0.2.7";
const first = (text) => finder().find(text).found.slice(0, 3).map(({ url }) => url);

let browser, site;
before(async () => { [browser, site] = [await Browser.start(), await start()]; });
after(async () => { await browser?.stop(); site?.stop(); });

/** How many of a list are found at the first place, and among the first three. */
function measure(name) {
  const all = ranks(finder(), lines(name));
  return [all.length, ...[1, 3].map((place) => all.filter(({ rank }) => rank <= place).length)];
}

test("a line of a public thread finds its page, as often as the list of errors says", () => {
  const [many, one, three] = measure("lines.txt");
  assert.ok(many >= 44 && one >= many * 40 / 44 && three >= many * 43 / 44, `${one} and ${three} of ${many}`);
  const page = readFileSync(join(REPOSITORY, "docs/errors/README.md"), "utf8");
  // Each edit of any page shifts every page's weight a bit, so one more line may be found than when it was measured; one less may not.
  for (const name of ["lines.txt", "kept_back.txt"]) {
    const [all, ...now] = measure(name);
    const [, ...said] = page.match(new RegExp(`^\\| ${all} \\| (\\d+) \\| (\\d+) \\|$`, "m")) ?? [];
    const holds = said.length === 2 && said.every((many, at) => now[at] >= Number(many) && now[at] <= Number(many) + 1);
    assert.ok(holds, `docs/errors/README.md says ${said} of the ${all} lines in ${name}, and it's ${now}: write that`);
  }
});

test("a word and a question lead to the glossary, a status and a whole line to the error", () => {
  for (const text of ["rkey", "what is a queue pair"]) assert.match(first(text)[0], /^docs\/glossary/, text);
  const errors = ["completion with error 12", "wc status 12", "Got completion with status 12, vendor error 129", "IBV_WC_RETRY_EXC_ERR", NCCL];
  for (const text of errors) assert.equal(first(text)[0], "docs/errors/retry_exceeded.html", text);
  // Addresses, times, numbers of processes and queue pairs change nothing.
  const noisy = "[2026-03-13 22:26:02] host-01:5771:5783 [5] net_ib.cc:839 QP 0x10e55 10.0.0.1:4791 fe80::1 wr_id 0x140642870038424 transport retry counter exceeded";
  assert.equal(first(noisy)[0], "docs/errors/retry_exceeded.html");
});

test("the index has no recorded run in it", () => {
  // The prose of all pages is a million letters.
  assert.ok(statSync(join(SITE, "search/index.js")).size < 1_100_000);
  const text = readFileSync(join(SITE, "search/index.js"), "utf8");
  assert.doesNotMatch(text, /───▶|◀───/);
});

const results = () => [...document.querySelectorAll("#mdbook-searchresults a")].map(({ href }) => href.replace(/.*\/some\/course\//, "").replace(/\?[^#]*/, ""));
const header = () => document.getElementById("mdbook-searchresults-header").textContent;

/** Opens the search of a page and puts a text into it, as somebody who pastes does. */
async function paste(text) {
  await browser.run((text) => {
    const bar = document.getElementById("mdbook-searchbar");
    bar.value = text;
    bar.dispatchEvent(new Event("input", { bubbles: true }));
  }, text);
  const said = text.length > 60 ? text.slice(0, 60) : text;
  await browser.until((said) => document.getElementById("mdbook-searchresults-header").textContent.includes(said), said);
}

test("keys open the search, go through what it finds, and lead there; the words are marked, and one comes back", async () => {
  await browser.size(1280, 900);
  await browser.open(`${site.url}docs/lab.html`);
  await browser.press("s");
  assert.ok(await browser.until(() => document.activeElement.id === "mdbook-searchbar"));
  await paste(NCCL);
  assert.equal((await browser.run(results))[0], "docs/errors/retry_exceeded.html");
  await browser.press("ArrowDown", "ArrowDown", "ArrowUp");
  assert.match(await browser.run(() => document.activeElement.href), /retry_exceeded/);
  await browser.press("ArrowUp");
  assert.equal(await browser.run(() => document.activeElement.id), "mdbook-searchbar");
  await browser.press("Enter");
  await browser.until(() => location.pathname.endsWith("docs/errors/retry_exceeded.html"));
  assert.ok(await browser.until(() => CSS.highlights.get("searched")?.size > 0), "marks");
  await browser.run(() => history.back());
  await browser.until(() => location.pathname.endsWith("docs/lab.html") && document.querySelector("#mdbook-searchresults a"));
  await browser.press("Escape");
  assert.deepEqual(await browser.run(() => [document.getElementById("mdbook-search-wrapper").className, location.search]), ["hidden", ""]);
  assert.deepEqual(await browser.complaints(), []);
});

test("a search that finds nothing says so, and offers what is near", async () => {
  await browser.open(`${site.url}docs/lab.html`);
  await browser.press("/");
  await paste("rkye");
  assert.match(await browser.run(header), /Nothing has “rkye”.*“rkey”/);
  assert.match((await browser.run(results))[0], /glossary.html#lkey-rkey/);
  await paste("远程访问错误");
  assert.match(await browser.run(header), /Nothing found.*in English/);
  assert.equal((await browser.run(results))[0], "docs/errors/index.html");
  await paste("<img src=x onerror=alert(1)>");
  assert.equal(await browser.run(() => document.querySelectorAll("#mdbook-searchresults img").length), 0);
  assert.deepEqual(await browser.complaints(), []);
});

test("a page that's opened from a folder, and a phone, search as well", async () => {
  await browser.size(390, 844);
  await browser.open(pathToFileURL(join(SITE, "docs/lab.html")).href);
  await browser.click("#mdbook-search-toggle");
  await paste(NCCL);
  assert.match((await browser.run(results))[0], /errors\/retry_exceeded\.html$/);
  assert.ok(await browser.run(() => document.documentElement.scrollWidth <= innerWidth));
  assert.deepEqual(await browser.complaints(), []);
  await browser.size(1280, 900);
});
