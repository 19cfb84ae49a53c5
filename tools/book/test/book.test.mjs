// What a reader does with a page: the book's own buttons and keys, a phone, paper.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Browser } from "./support/browser.mjs";
import { serve } from "../serve.mjs";
import { pages, REPOSITORY, SITE, start } from "./support/site.mjs";

let browser, site;
before(async () => { [browser, site] = [await Browser.start(), await start()]; });
after(async () => { await browser?.stop(); site?.stop(); });

const lesson = () => `${site.url}docs/04_rdma_write.html`;
/** What is deeper than the lesson's page: its packets, drawn and in the player. */
const more = () => `${site.url}docs/more/04_rdma_write.html`;
const focused = () => document.activeElement.id || document.activeElement.className;

test("code has colours and is copied, the theme is chosen, and keys turn pages, search and help", async () => {
  await browser.size(1280, 900);
  await browser.open(lesson());
  assert.ok(await browser.run(() => document.querySelectorAll("pre .hljs-keyword").length) > 0, "colours");
  assert.ok(await browser.run(() => document.querySelectorAll("pre .clip-button").length) > 3, "copy buttons");
  await browser.click("#mdbook-theme-toggle");
  await browser.click("#mdbook-theme-coal");
  assert.ok(await browser.run(() => document.documentElement.classList.contains("coal")), "the theme");
  await browser.run(() => localStorage.clear());
  await browser.press("?");
  assert.equal(await browser.run(() => getComputedStyle(document.getElementById("mdbook-help-container")).display), "flex");
  await browser.press("Escape", "s");
  assert.ok(await browser.until(() => document.activeElement.id === "mdbook-searchbar"));
  await browser.press("Escape", "ArrowRight");
  assert.ok(await browser.until(() => location.pathname.endsWith("04_rdma_write/steps/1-write.html")), "the lesson's first step");
  assert.deepEqual(await browser.complaints(), []);
});

test("the list of chapters knows which steps are done, and a quotation has its like in C and Python", async () => {
  const folder = mkdtempSync(join(tmpdir(), "progress-"));
  writeFileSync(join(folder, ".steps"), "told 04-1-write\ndone 04-1-write\ntold 04-2-look\n");
  const own = await start(join(folder, ".steps"));
  try {
    await browser.open(`${own.url}docs/04_rdma_write.html`);
    assert.ok(await browser.until(() => document.querySelector("#mdbook-sidebar a[href$='/steps/1-write.html']")?.textContent.includes("✓")));
    assert.ok(await browser.run(() => !document.querySelector("#mdbook-sidebar a[href$='/steps/2-look.html']").textContent.includes("✓")));
    assert.deepEqual(await browser.run(() => [...document.querySelectorAll("details.tab summary")].map((it) => it.textContent).slice(0, 2)), ["In C", "In Python"]);
    assert.deepEqual(await browser.complaints(), []);
  } finally {
    own.stop();
    rmSync(folder, { recursive: true });
  }
});

test("a page that speaks of more than one language shows the reader's, and the book remembers which", async () => {
  const step = `${site.url}lessons/04_rdma_write/steps/3-many-packets.html`;
  /** Which languages' paragraphs, hints, columns and quotations are there to be read. */
  const read = () => browser.run(() => {
    const seen = (part) => part.checkVisibility();
    return {
      about: [...document.querySelectorAll("main p, main li")].filter((part) => seen(part) && /^In (Rust|C|Python), /.test(part.textContent)).map((part) => part.textContent.split(",")[0]),
      columns: [...document.querySelectorAll("main table tr:first-child th")].filter(seen).map((cell) => cell.textContent.trim()),
      quoted: [...document.querySelectorAll("main details.tab")].filter(seen).map((tab) => tab.querySelector("summary").textContent),
      chosen: document.querySelector("[name=language]:checked")?.value,
    };
  });
  await browser.size(1280, 900);
  await browser.open(step);
  await browser.run(() => localStorage.clear());
  await browser.open(step);
  assert.deepEqual(await read(), { about: ["In Rust"], columns: [], quoted: [], chosen: "rust" });
  // With keys alone, which here turn no pages.
  await browser.run(() => document.querySelector("[name=language]:checked").focus());
  await browser.press("ArrowRight");
  assert.deepEqual((await read()).about, ["In C"]);
  await browser.press("ArrowRight");
  const { about, chosen } = await read();
  assert.deepEqual([about, chosen, await browser.run(() => location.pathname.split("/").pop())], [["In Python"], "python", "3-many-packets.html"]);
  await browser.open(`${site.url}lessons/04_rdma_write/steps/1-write.html`);
  assert.deepEqual((await read()).columns, ["C", "pyverbs"], "on the next page, and names that man pages use stay");
  await browser.open(lesson());
  const python = (await read()).quoted;
  assert.ok(python.length > 1 && python.every((name) => name === "In Python"), JSON.stringify(python));
  await browser.run(() => document.querySelector("[name=language][value=rust]").click());
  assert.deepEqual((await read()).quoted, [], "the quotations themselves are in Rust");
  await browser.scripts(false);
  await browser.open(step);
  const bare = await read();
  await browser.scripts(true);
  assert.deepEqual([bare.about, bare.chosen ?? null], [["In Rust", "In C", "In Python"], null], "without scripts all of them are there");
  // From a folder the memory may be another, but the page works.
  await browser.open(`file://${join(SITE, "lessons/04_rdma_write/steps/3-many-packets.html")}`);
  await browser.run(() => document.querySelector("[name=language][value=c]").click());
  assert.deepEqual((await read()).about, ["In C"]);
  assert.deepEqual(await browser.complaints(), []);
});

test("a player is put in its place once, and what is below stays where it is", async () => {
  await browser.size(1280, 900);
  await browser.open(`${site.url}index.html`);
  await browser.run(() => {
    window.moved = 0;
    new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => { window.moved += value; })).observe({ type: "layout-shift", buffered: true });
  });
  // It's made when it comes into view.
  await browser.run(() => document.querySelector(".run").scrollIntoView());
  await browser.until(() => document.querySelector(".run .rp"));
  await browser.run(() => new Promise((done) => setTimeout(done, 300)));
  const seen = await browser.run(() => ({
    players: document.querySelectorAll(".run .rp").length,
    links: document.querySelectorAll(".run a[href*='wireshark.html']").length,
    moved: window.moved,
    unsized: [...document.images].filter((image) => !image.getAttribute("width") || !image.getAttribute("height")).length,
  }));
  assert.deepEqual({ ...seen, moved: seen.moved < 0.1 }, { players: 1, links: 1, moved: true, unsized: 0 }, `moved by ${seen.moved}`);
});

test("runs that are in a folder play as well, and Wireshark opens them", async () => {
  const found = (await pages()).flatMap((path) => [...readFileSync(join(SITE, path), "utf8").matchAll(/class="run" data-run="(\w+\/[^"]+)"/g)].map(([, name]) => ({ path, name })));
  assert.ok(found.some(({ name }) => name === "protocols/nvme"), JSON.stringify(found));
  for (const { path, name } of found) {
    await browser.open(site.url + path);
    await browser.run((name) => document.querySelector(`.run[data-run="${name}"]`).scrollIntoView(), name);
    await browser.until((name) => document.querySelector(`.run[data-run="${name}"] .rp`), name);
    await browser.open(`${site.url}wireshark.html#run=${name}`);
    assert.equal(await browser.until(() => document.querySelector("select")?.value), name);
  }
});

test("what there isn't says so, and leads on", async () => {
  await browser.open(`${site.url}play.html?run=nonexistent`);
  const said = await browser.until(() => document.querySelector(".run [role=alert]")?.textContent);
  assert.match(said, /no recorded run “nonexistent”/);
  await browser.open(`${site.url}play.html?run=../x`);
  assert.match(await browser.until(() => document.querySelector(".run [role=alert]")?.textContent), /letters, digits/);
  await browser.complaints();
  const alone = await serve(SITE, 0);
  try {
    const root = `http://127.0.0.1:${alone.address().port}/`;
    await browser.open(`${root}no/such/page.html`);
    const links = await browser.run(() => [document.title, ...[...document.links].map((link) => link.href)]);
    assert.match(links[0], /No page here/);
    for (const link of links.slice(1)) assert.equal((await fetch(link)).status, 200, link);
    await browser.complaints();
  } finally {
    alone.close();
    alone.closeAllConnections();
  }
});

test("the start page leads to each lesson", async () => {
  await browser.open(`${site.url}index.html`);
  const lessons = await browser.run(() => [...document.querySelectorAll("main td a")].map(({ pathname }) => pathname).filter((path) => /docs\/\d\d_\w+\.html$/.test(path)));
  assert.ok(lessons.length >= 10, lessons.join());
});

test("each part of a lesson that is broken and repaired is a part of the page", async () => {
  for (const page of ["docs/04_rdma_write.html", "docs/02_resources.html", "docs/09_parameter_server.html"]) {
    await browser.open(site.url + page);
    const parts = await browser.run(() => ["break-it", "repair-it"].map((id) => document.getElementById(id)?.tagName));
    assert.deepEqual(parts, ["H2", "H2"], page);
  }
});

test("each change that was recorded can be played on its lesson's page, beside the good run, and asks before it shows", async () => {
  const recorded = readdirSync(join(REPOSITORY, "captures/changes")).filter((name) => name.endsWith(".pcapng")).map((name) => name.slice(0, -7));
  const there = [];
  for (const path of (await pages()).filter((path) => /^docs\/\d\d_/.test(path))) {
    await browser.open(site.url + path);
    there.push(...await browser.run(() => [...document.querySelectorAll(".beside")].map(({ dataset: { run, good } }) => `${run} ${good}`)));
  }
  assert.deepEqual(there.map((names) => names.split(" ")[0]).sort(), recorded.sort());
  assert.ok(there.includes("04-lost-middle 04_rdma_write-multi-packet"));
  await browser.theme("light", "reduce");
  await browser.open(lesson());
  const open = () => browser.run(() => {
    const place = document.querySelector(".beside[data-run='04-lost-write']");
    place.id = "lost";
    place.querySelector("button").click();
  });
  const look = () => browser.run(() => Object.fromEntries(["changed", "good"].map((half) => {
    const at = document.querySelector(`#lost .rp-${half}`);
    return [half, { row: at.querySelector("li.now").textContent, caption: at.querySelector(".rp-now").textContent, width: at.offsetWidth }];
  })));
  await open();
  await browser.until(() => document.querySelector("#lost .rp-good li.now"));
  const before = await look();
  assert.match(before.changed.row, /WR: .*RDMA_WRITE/);
  assert.match(before.good.row, /ibv_post_send RDMA_WRITE/);
  await browser.press("ArrowRight");
  assert.match((await look()).changed.caption, /^What comes next on the wire\?/);
  await browser.run(() => document.querySelector("#lost .rp-plain").click());
  const { changed, good } = await look();
  assert.match(changed.row, /RDMA Write Only.*dropped/);
  assert.match(changed.caption, /^Step 8: /);
  // The good run has come along.
  assert.match(good.row, /RDMA Write Only/);
  await browser.size(360, 740);
  await browser.until(() => document.querySelector("#lost .rp-halves").offsetHeight);
  assert.deepEqual(Object.values(await look()).map(({ width }) => width > 0), [true, false]);
  await browser.run(() => document.querySelector("#lost .rp-halves button:last-child").click());
  assert.deepEqual(Object.values(await look()).map(({ width }) => width > 0), [false, true]);
  assert.ok(await browser.run(() => document.documentElement.scrollWidth <= innerWidth));
  assert.deepEqual(await browser.complaints(), []);
  await browser.size(1280, 900);
  await browser.theme("");
});

test("keys reach the text at once, and the chapters on a phone", async () => {
  await browser.size(1280, 900);
  await browser.open(lesson());
  await browser.press("Tab");
  assert.equal(await browser.run(focused), "skip");
  await browser.press("Enter");
  assert.equal(await browser.run(focused), "the-text");
  await browser.size(390, 844);
  await browser.open(lesson());
  await browser.press("Tab", "Tab");
  assert.equal(await browser.run(focused), "mdbook-sidebar-toggle");
  const list = () => browser.run(() => document.getElementById("mdbook-sidebar-toggle-anchor").checked);
  assert.equal(await list(), false);
  await browser.press("Enter");
  assert.equal(await list(), true);
});

test("on a phone drawings can be read, and what goes on at the side says so", async () => {
  await browser.size(390, 844);
  await browser.open(`${site.url}index.html`);
  const seen = await browser.run(() => {
    const drawing = document.querySelector("main > p img[src*='images/04_rdma_write'][src$='.svg']");
    const box = drawing.closest("p");
    return {
      // The drawings' letters are 12 pixels high where they are 860 pixels wide.
      letters: drawing.getBoundingClientRect().width / 860 * 12,
      scrolls: box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX === "auto",
      said: getComputedStyle(box, "::after").content,
    };
  });
  assert.ok(seen.letters > 10 && seen.scrolls && seen.said.includes("at the side"), JSON.stringify(seen));
  await browser.open(lesson());
  const shade = await browser.run(() => {
    const code = [...document.querySelectorAll("main pre")].find((pre) => pre.scrollWidth > pre.clientWidth);
    return code && getComputedStyle(code).backgroundAttachment;
  });
  assert.match(shade, /local.*scroll/);
  // What comes of a change is read without scrolling at the side.
  const outcome = await browser.run(() => {
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
    const lanes = [...document.querySelectorAll(".lanes")];
    const status = [...document.querySelectorAll(".lanes p")].find((line) => line.textContent.includes("IBV_WC_REM_ACCESS_ERR"));
    return { right: status?.getBoundingClientRect().right, cut: lanes.filter((box) => box.scrollWidth > box.clientWidth).length, lanes: lanes.length };
  });
  assert.ok(outcome.right <= 390 && outcome.cut === 0 && outcome.lanes > 2, JSON.stringify(outcome));
  await browser.size(1280, 900);
});

test("on paper the text has the width of the sheet, nothing is cut, and there is no list of chapters", async () => {
  await browser.theme("dark");
  await browser.open(lesson());
  await browser.until(() => document.querySelector(".hljs-keyword"));
  const { data } = await browser.devtools("Page.printToPDF", { printBackground: true });
  await browser.theme("");
  const text = execFileSync("pdftotext", ["-raw", "-", "-"], { input: Buffer.from(data, "base64"), encoding: "utf8" });
  assert.doesNotMatch(text, /09 parameter_server|Press play/);
  const words = text.replace(/\s+/g, "");
  // All code of the page, however long its lines are, and the runs, which are folded away.
  const [code, runs] = await browser.run(() => [
    [...document.querySelectorAll("main pre code")].flatMap(({ textContent }) => textContent.split("\n")),
    [...document.querySelectorAll(".lanes p")].map(({ lastChild }) => lastChild.textContent),
  ]);
  const missing = [...code, ...runs].map((line) => line.replace(/\s+/g, "")).filter((line) => !words.includes(line));
  assert.ok(code.length > 50 && runs.length > 10, `${code.length} lines of code, ${runs.length} of runs`);
  assert.deepEqual(missing, []);
  // Black on white, whatever the screen shows; and the ladder, not the player.
  await browser.open(more());
  await browser.until(() => document.querySelector(".hljs-keyword"));
  await browser.run(() => document.querySelector(".run").scrollIntoView());
  await browser.until(() => document.querySelector(".run .rp"));
  await browser.devtools("Emulation.setEmulatedMedia", { media: "print" });
  const printed = await browser.run(() => ({
    colors: ["main p", "pre code", ".hljs-keyword"].map((what) => getComputedStyle(document.querySelector(what)).color),
    ladder: document.querySelector(".ladder img").getBoundingClientRect().width > 0,
  }));
  await browser.devtools("Emulation.setEmulatedMedia", { media: "" });
  assert.deepEqual(printed, { colors: Array(3).fill("rgb(0, 0, 0)"), ladder: true });
});
