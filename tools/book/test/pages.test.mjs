// Every page as a browser sees it.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Browser } from "./support/browser.mjs";
import { pages, REPOSITORY, SITE, start, TOOLS } from "./support/site.mjs";

let browser, site;
before(async () => { [browser, site] = [await Browser.start(), await start()]; });
after(async () => { await browser?.stop(); site?.stop(); });

/** One page of each sort of code is enough where pages are made from one template. */
const isCode = (path) => /\.(rs|toml|txt|sh|py|c|yml)\.html$|^(lessons|common|tools|captures)\/.*\/?/.test(path) && !path.startsWith("docs/");
const SAMPLES = ["lessons/04_rdma_write/src.html", "captures/index.html"];
const read = async () => (await pages()).filter((path) => !isCode(path) || SAMPLES.includes(path));

/** Text of the page that should have become something else. */
function markdown() {
  const [texts, found] = [document.createTreeWalker(document.querySelector("main") ?? document.body, NodeFilter.SHOW_TEXT), []];
  while (texts.nextNode()) {
    const { textContent, parentElement } = texts.currentNode;
    if (!parentElement.closest("pre, code, script, .rp") && /(^|\s)#{2,6} \S|\*\*|\]\(|```|<!--/.test(textContent)) found.push(textContent.trim().slice(0, 60));
  }
  return found;
}

test("every page loads without a complaint, asks nobody else, does not scroll sideways on a phone, and its links lead somewhere", async () => {
  await browser.size(390, 800);
  const [wrong, links, parts] = [[], [], new Map()];
  for (const path of await pages()) {
    await browser.open(site.url + path);
    await browser.devtools("Runtime.evaluate", { expression: `var markdown = ${markdown}` });
    const { wide, foreign, images, markdown: raw, to, ids } = await browser.run(() => ({
      to: [...document.querySelectorAll("a[href]")].map(({ href }) => href),
      ids: [...document.querySelectorAll("[id]")].map(({ id }) => id),
      wide: document.documentElement.scrollWidth - innerWidth,
      foreign: performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => !name.startsWith(location.origin)),
      images: [...document.images].filter((image) => image.complete && image.naturalWidth === 0).map((image) => image.src),
      markdown: markdown(),
    }));
    if (wide > 0) wrong.push(`${path} is ${wide} pixels too wide`);
    if (raw.length) wrong.push(`${path}: raw Markdown: ${raw}`);
    if (foreign.length + images.length) wrong.push(`${path}: ${foreign} ${images}`);
    wrong.push(...(await browser.complaints()).map((complaint) => `${path}: ${complaint}`));
    parts.set(site.url + path, new Set(ids));
    links.push(...to.filter((link) => link.startsWith(new URL(site.url).origin)).map((link) => ({ path, link })));
  }
  for (const { path, link } of links) {
    const [page, part] = link.replace(/\?[^#]*/, "").split("#").map(decodeURIComponent);
    const isThere = page.startsWith(site.url) && !page.endsWith("/") && existsSync(join(SITE, page.slice(site.url.length)));
    const hasPart = !part || part.includes("=") || (parts.get(page)?.has(part) ?? true);
    if (!isThere || !hasPart) wrong.push(`${path}: ${link} leads nowhere`);
  }
  assert.deepEqual(wrong, []);
});

for (const scheme of ["light", "dark"]) {
  test(`axe finds nothing serious, ${scheme}`, async () => {
    await browser.size(1280, 900);
    await browser.theme(scheme);
    const axe = await readFile(join(TOOLS, "axe-core/axe.min.js"), "utf8");
    const wrong = [];
    for (const path of await read()) {
      await browser.open(site.url + path);
      await browser.devtools("Runtime.evaluate", { expression: axe });
      const found = await browser.run(async () => (await axe.run({ resultTypes: ["violations"] })).violations
        .filter(({ impact }) => ["serious", "critical"].includes(impact))
        .map(({ id, nodes }) => `${id}: ${nodes.length} times, first ${nodes[0].html.slice(0, 120)} ${nodes[0].any[0]?.message ?? ""}`));
      wrong.push(...found.map((what) => `${path}: ${what}`));
    }
    await browser.theme("");
    assert.deepEqual(wrong, []);
  });
}

test("without JavaScript a page shows the ladder, the text and the list of chapters", async () => {
  await browser.scripts(false);
  await browser.open(`${site.url}docs/more/04_rdma_write.html`);
  const seen = await browser.run(() => ({
    ladder: document.querySelector(".run[data-run='04_rdma_write'] img")?.getBoundingClientRect().width,
    chapters: document.querySelectorAll("nav iframe, nav a").length,
    text: document.querySelector("main").innerText.includes("RDMA doesn't encrypt"),
  }));
  await browser.scripts(true);
  assert.ok(seen.ladder > 300 && seen.chapters > 0 && seen.text, JSON.stringify(seen));
});

test("the book opens from a folder, too", async () => {
  await browser.open(pathToFileURL(join(SITE, "docs/04_rdma_write.html")).href);
  assert.ok(await browser.until(() => document.querySelectorAll("#mdbook-sidebar a").length > 20));
  assert.deepEqual(await browser.complaints(), []);
});

test("a line that a program has printed leads to its page, whatever its numbers are", async () => {
  const folder = join(REPOSITORY, "docs/errors");
  const wrong = [];
  for (const name of readdirSync(folder).filter((name) => name !== "README.md")) {
    const [, block] = /^```text\n([^]*?)^```/m.exec(readFileSync(join(folder, name), "utf8"));
    const line = block.split("\n")[0].replace(/\d{3,}/g, (digits) => digits.replace(/\d/g, (digit) => (Number(digit) + 3) % 10));
    await browser.open(`${site.url}docs/index.html?search=${encodeURIComponent(`[ 4929.694630] host1: ${line}`)}`);
    await browser.until(() => document.querySelector("#mdbook-searchresults a"));
    const found = await browser.run(() => [...document.querySelectorAll("#mdbook-searchresults a")].slice(0, 3).map(({ pathname }) => pathname.split("/").at(-1)));
    if (!found.includes(name.replace(".md", ".html"))) wrong.push(`${line}: ${found}`);
  }
  assert.deepEqual(wrong, []);
});

test("what is searched is found", async () => {
  await browser.size(1280, 900);
  await browser.open(`${site.url}docs/index.html?search=responder_resources`);
  assert.ok(await browser.until(() => document.querySelector("#mdbook-searchresults a")?.textContent));
});
