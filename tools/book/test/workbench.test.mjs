// The workbench as a reader uses it: everything is pressed, and each time the script, the run and the picture are asked what happened.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Browser } from "./support/browser.mjs";
import { REPOSITORY, SITE, start, TOOLS, WIRE } from "./support/site.mjs";

const folder = mkdtempSync(join(tmpdir(), "workbench-"));
let browser, site;
before(async () => { [browser, site] = [await Browser.start(), await start()]; });
after(async () => { await browser?.stop(); site?.stop(); rmSync(folder, { recursive: true }); });

const isThere = existsSync(join(SITE, "workbench/program.js"));
/** Where there was no compiler for the program, its tests are told as skipped, and not as passed. */
const program = { skip: isThere ? false : "NOT RUN: the book was built without the workbench, for there was no compiler for WebAssembly" };

const page = () => `${site.url}docs/workbench.html`;

/** Opens a page, and waits until its workbench has run its script. */
async function open(url = page(), motion = "reduce", isFew = false) {
  await browser.theme("light", motion);
  await browser.open("about:blank");
  await browser.open(url);
  await browser.run((isFew) => { if (isFew) localStorage.removeItem("workbench-more"); else localStorage.setItem("workbench-more", "yes"); }, isFew);
  await browser.open("about:blank");
  await browser.open(url);
  await browser.run(() => document.querySelector(".workbench").scrollIntoView());
  await browser.until(() => document.querySelector(".wb .wb-clock")?.textContent);
  await press("[aria-label^='To the end']");
}

/** Presses the first thing in the workbench that a selector names, and of these the one with this text. */
async function press(selector, text = null) {
  const pressed = await browser.run((selector, text) => {
    const all = [...document.querySelectorAll(`.wb ${selector}`)].filter((it) => !it.closest("[hidden]") && (text === null || it.textContent === text));
    all[0]?.click();
    return all.length;
  }, selector, text);
  assert.ok(pressed, `there is no ${selector} ${text ?? ""}`);
  await settled();
}

/** Waits until what was pressed has been run and drawn. */
const settled = () => browser.run(() => new Promise((done) => setTimeout(done, 120)));

/** Writes a script, as if it had been typed. */
async function write(script) {
  await browser.run((script) => {
    const text = document.querySelector(".wb-text");
    text.value = script;
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }, script);
  // It's run once nothing has been typed for a moment.
  await browser.run(() => new Promise((done) => setTimeout(done, 600)));
}

const look = () => browser.run(() => {
  const text = (selector) => document.querySelector(`.wb ${selector}`)?.textContent ?? "";
  return {
    script: document.querySelector(".wb-text").value,
    wrong: text(".wb-wrong"), line: text(".wb-numbers .wrong"), says: text(".wb-say"), clock: text(".wb-clock"), verdict: text(".wb-verdict"),
    client: text(".wb-left"), server: text(".wb-right"), places: Number(document.querySelector(".wb-time input").max),
    packets: [...document.querySelectorAll(".wb-packet")].map((packet) => packet.textContent),
  };
});

const SETUP = "client ibv_reg_mr 0..4096 LOCAL_WRITE\nserver ibv_reg_mr 0..4096 LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC\n";
const WRITE = `${SETUP}at 20 us client ibv_post_send WRITE 0..60 to server 0\nclient ibv_poll_cq\n`;

test("before the program is there, and without scripts, the start page shows what one run of it does", program, async () => {
  await browser.scripts(false);
  await browser.open(`${site.url}index.html`);
  const { said, moves, styled } = await browser.run(() => ({
    said: document.querySelector(".workbench").innerText, moves: document.querySelector(".wb-still .wb-flight").getAnimations().length,
    styled: getComputedStyle(document.querySelector(".wb-still .wb-stage")).display,
  }));
  await browser.scripts(true);
  assert.match(said, /asleep[^]*the other side's processor never knows[^]*The client's 60 bytes are in the server's memory/);
  assert.ok(moves > 0 && styled === "grid", `${moves} ${styled}`);
});

test("each moment of a run is said in a sentence for somebody who doesn't know the words", program, async () => {
  await open();
  await write(`${WRITE}wire drop 1st RDMA Write Only from client\n`);
  const said = new Set();
  await press("[aria-label^='To the end']");
  await press("[aria-label^='To the beginning']");
  await press("[aria-label^='To the beginning']");
  for (let step = 0; step < 60; step++) {
    await press("[aria-label^='One thing on']");
    said.add((await look()).says);
  }
  const all = [...said].join("\n");
  for (const words of [
    /^The client's program asks for a connection, because/m, /asks its NIC to put 60 bytes into the server's memory/, /The wire loses this packet/,
    /No answer has come, so the client's NIC sends its packet again. .Retries left after that: 7/, /sends the same packet once more/, /checks the key and puts the bytes into memory; its program isn't asked/,
  ]) assert.match(all, words);
  assert.doesNotMatch(all, /ibv_|rdma_|psn|as this side sees it|by the rule|PSN/);
});

test("what a program puts into its memory is seen before it's sent", program, async () => {
  await open();
  await write(`${SETUP}client memcpy 0 "seen at once"\nat 20 us client ibv_post_send WRITE 0..60 to server 0\n`);
  await press("[aria-label^='To the end']");
  await press("[aria-label^='To the beginning']");
  const { client, server } = await look();
  assert.match(client, /seen at once/);
  assert.match(server, /nothing but zeros/);
});

test("bytes are in memory only if the NIC that got them has put them there", program, async () => {
  await open();
  const end = async (script) => { await write(script); await press("[aria-label^='To the end']"); return (await look()).server; };
  const WAY = "at 20 us client ibv_post_send WRITE 0..60 to server 0";
  assert.match(await end(`${SETUP}${WAY}\n`), /One side writes/);
  // Refused, and what comes after that to a queue pair that has stopped.
  assert.match(await end(`${SETUP}${WAY} key=wrong\nclient ibv_post_send WRITE 0..60 to server 0\n`), /nothing but zeros/);
  assert.match(await end(`${SETUP}client ibv_create_qp retry_cnt=0\n${WAY}\nwire corrupt every RDMA Write Only from client\n`), /nothing but zeros/);
  assert.match(await end(`${SETUP}wire link 1 Gbit/s 5 us\nclient ibv_post_send WRITE 0..60 to server 0\n`), /One side writes/);
  assert.match(await end(`${SETUP}server memcpy 0 "what the server has"\nat 20 us client ibv_post_send READ 0..20 from server 0\n`), /what the server has/);
});

test("there's little to press at first, and the rest with one press", program, async () => {
  const count = () => browser.run(() => [...document.querySelectorAll(".wb :is(button, select, input, textarea, summary, a)")].filter((it) => it.checkVisibility() && !it.disabled).length);
  await open(page(), "reduce", true);
  const few = await count();
  assert.ok(few <= 20, `${few} at first`);
  await press(".wb-more");
  assert.ok(await count() > few + 12, `${await count()} then`);
  assert.ok(await browser.run(() => document.querySelector("[aria-label^='Copy a link']").checkVisibility()));
});

test("without its program the page says so, and without scripts it can be read", async () => {
  await browser.scripts(false);
  await browser.open(page());
  const said = await browser.run(() => document.querySelector("main").innerText);
  await browser.scripts(true);
  assert.match(said, isThere ? /they need JavaScript/ : /The workbench is not in this copy/);
});

test("each action writes a line that is understood, and the script can be taken back to where it was", program, async () => {
  await browser.size(1366, 768);
  await open();
  await write(WRITE);
  const first = (await look()).script;
  const buttons = (at) => browser.run((at) => [...document.querySelectorAll(`.wb .wb-toggles${at} button`)].map((button) => button.textContent), at);
  const tried = [];
  for (const group of await buttons(":not(.wb-verbs .wb-toggles)")) {
    await press(".wb-toggles:not(.wb-verbs .wb-toggles) button", group);
    for (const verb of await browser.run(() => [...document.querySelectorAll(".wb-verbs button")].map((button) => button.textContent))) {
      await press(".wb-verbs button", verb);
      // With everything that can be ticked, and without.
      for (const ticked of [false, true]) {
        const boxes = await browser.run((ticked) => {
          const boxes = [...document.querySelectorAll(".wb-form [type=checkbox]")].filter((box) => box.checked !== ticked);
          for (const box of boxes) box.click();
          return boxes.length;
        }, ticked);
        if (ticked && !boxes) continue;
        const line = await browser.run(() => document.querySelector(".wb-line code").textContent);
        await press(".wb-do");
        const { script, wrong } = await look();
        assert.equal(wrong, "", line);
        assert.ok(script.split("\n").includes(line), line);
        tried.push(line);
        await press("[aria-label^='Undo']");
        assert.equal((await look()).script, first, `undoing ${line}`);
      }
    }
  }
  for (const call of ["SEND", "SEND_WITH_IMM", "WRITE", "READ", "FETCH_ADD", "key=wrong", "unsignaled", "ibv_post_recv", "ibv_reg_mr", "ibv_dereg_mr", "dies", "drop", "duplicate", "delay", "corrupt", "mtu=", "timeout=", "retry_cnt=", "min_rnr_timer="]) {
    assert.ok(tried.some((line) => line.includes(call)), `nothing to press for ${call}`);
  }
  assert.deepEqual(await browser.complaints(), []);
});

test("a WRITE lands in the other memory, and the other program sleeps", program, async () => {
  await open();
  await write(`client memcpy 0 "from the client's memory"\n${WRITE}`);
  await press("[aria-label^='To the end']");
  const { client, server, wrong } = await look();
  assert.equal(wrong, "");
  assert.match(server, /from the client's memory/);
  assert.match(server, /asleep/);
  assert.match(client, /WC: wr_id=1 status=IBV_WC_SUCCESS/);
});

test("an edited line does what a click does, and what's wrong is said at its line", program, async () => {
  await open();
  await write(WRITE);
  await write(WRITE.replace("0..60", "0..3000"));
  await press("[aria-label^='To the end']");
  const long = await look();
  assert.match(long.client, /len=3000/);
  await write(`${WRITE}client ibv_post_sned SEND 0..60\n`);
  const bad = await look();
  assert.equal(bad.line, "5");
  assert.match(bad.wrong, /^Line 5: `ibv_post_sned`.*ibv_post_send/);
  // The picture stays that of the last script that was understood.
  assert.match(bad.client, /len=3000/);
  await write(WRITE);
  assert.equal((await look()).wrong, "");
  assert.deepEqual(await browser.complaints(), []);
});

test("time is stepped, and a packet on its way is touched and lost", program, async () => {
  await open();
  await write(WRITE);
  await press("[aria-label^='To the beginning']");
  let packets = [];
  for (let step = 0; step < 80 && !packets.some((name) => name.startsWith("Write")); step++) {
    await press("[aria-label^='One thing on']");
    ({ packets } = await look());
  }
  assert.ok(packets.some((name) => name.startsWith("Write")), "no WRITE on the wire");
  await press(".wb-flight:last-child .wb-packet");
  const acts = await browser.run(() => [...document.querySelectorAll(".wb-menu button")].map((button) => button.textContent));
  assert.deepEqual(acts.slice(0, 4), ["lose", "double", "delay", "damage"]);
  await press(".wb-menu button", "lose");
  const { script, wrong } = await look();
  assert.equal(wrong, "");
  assert.match(script, /^wire drop 1st RDMA Write Only from client$/m);
  await press("[aria-label^='To the end']");
  const lost = await look();
  assert.match(lost.clock, /ms$/);
  assert.match(lost.client, /IBV_WC_SUCCESS/);
});

/** The parts of each challenge of a page, by their headings: the first of each. */
function parts(page) {
  const text = readFileSync(join(REPOSITORY, "tools/workbench/challenges", page), "utf8");
  return new Map(text.split("\n## ").slice(1).map((challenge) => {
    const [first, ...parts] = challenge.split("\n### ");
    const named = parts.map((part) => part.split(/\n([^]*)/, 2)).reverse();
    return [first.split(":")[0].trim(), Object.fromEntries(named)];
  }));
}

/** The challenges as they're written, each with a script that passes, which is beside its page. */
function challenges() {
  const pages = readdirSync(join(REPOSITORY, "tools/workbench/challenges")).filter((page) => !page.endsWith(".proof.md"));
  const code = (part) => /```text\n([^]*?)```/.exec(part)[1];
  return pages.flatMap((page) => {
    const proofs = parts(page.replace(".md", ".proof.md"));
    return [...parts(page)].map(([name, { Begin, Afterwards }]) => (
      { name, page: page.replace(".md", ""), begin: code(Begin), right: code(proofs.get(name).Right), after: Afterwards.slice(0, 20).replaceAll("`", "") }));
  });
}

test("each challenge is failed by the script that it begins with, passed by a right one, and then explained", program, async () => {
  await open();
  const all = challenges();
  const listed = await browser.run(() => [...document.querySelectorAll(".wb-choose option")].map((option) => option.value).filter(Boolean));
  assert.deepEqual([...listed].sort(), all.map(({ name }) => name).sort());
  assert.ok(all.length >= 30);
  const wrong = [];
  for (const { name, begin, right, after } of all) {
    await browser.run((name) => {
      const list = document.querySelector(".wb-choose select");
      list.value = name;
      list.dispatchEvent(new Event("input", { bubbles: true }));
    }, name);
    await settled();
    await press("[aria-label^='To the end']");
    const before = await look();
    if (before.script !== begin || !before.verdict.startsWith("Not yet. ")) wrong.push(`${name} begins with: ${before.verdict}`);
    await write(right);
    await press("[aria-label^='To the end']");
    const { verdict, wrong: error } = await look();
    if (!verdict.startsWith("Done. ") || !verdict.includes(after)) wrong.push(`${name}: ${error} ${verdict}`);
  }
  assert.deepEqual(wrong, []);
  // What's done is remembered.
  await open();
  const done = await browser.run(() => [...document.querySelectorAll(".wb-choose option")].filter((option) => option.textContent.startsWith("✓")).length);
  assert.equal(done, all.length);
  await browser.run(() => localStorage.clear());
});

test("each page that has challenges shows its own, ready to be done", program, async () => {
  const all = challenges();
  for (const page of new Set(all.map(({ page }) => page))) {
    await open(`${site.url}docs/${page === "06_send_recv_state_machine" ? "06_driving_the_machine" : page}.html`);
    const { listed, task } = await browser.run(() => ({
      listed: [...document.querySelectorAll(".wb-choose option")].map((option) => option.value).filter(Boolean), task: document.querySelector(".wb-task").textContent,
    }));
    assert.deepEqual(listed, all.filter((of) => of.page === page).map(({ name }) => name), page);
    assert.ok(task.length > 20, page);
    assert.equal(await browser.run(() => document.querySelector(".wb-choose a").href), `${site.url}docs/workbench.html`);
    assert.deepEqual(await browser.complaints(), [], page);
  }
});

test("a link gives somebody else the same script", program, async () => {
  await open();
  const script = `${WRITE}wire drop 1st RDMA Write Only from client\n`;
  await write(script);
  await browser.run(() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; });
  await press("[aria-label^='Copy a link']");
  const address = await browser.run(() => window.copied);
  assert.ok(address.startsWith(`${page()}#script=`), address);
  assert.equal(await browser.run(() => location.href), address);
  await open(address);
  assert.equal((await look()).script, script);
  // What somebody has made up is text, and there is a picture all the same.
  await open(`${page()}#script=${encodeURIComponent("<img src=x onerror=window.hit=1>")}`);
  const { wrong, line, places } = await look();
  assert.match(wrong, /^Line 1: .*<img/);
  assert.equal(line, "1");
  assert.ok(places > 3);
  await press(".rp-play");
  assert.equal(await browser.run(() => window.hit ?? "not run"), "not run");
  assert.deepEqual(await browser.complaints(), []);
});

test("a run is saved as a file that other programs read", program, async () => {
  await open();
  await write(WRITE);
  await browser.run(() => {
    window.saved = new Promise((done) => {
      const make = URL.createObjectURL;
      URL.createObjectURL = (blob) => { blob.arrayBuffer().then((bytes) => done([...new Uint8Array(bytes)])); return make.call(URL, blob); };
    });
  });
  await press("[aria-label^='Save the run']");
  const path = join(folder, "workbench.pcapng");
  writeFileSync(path, Buffer.from(await browser.run(() => window.saved)));
  assert.match(execFileSync(WIRE, ["show", path], { encoding: "utf8" }), /RDMA Write Only/);
});

test("keys alone reach everything, and arrows move time and turn no pages", program, async () => {
  await browser.size(1366, 768);
  await open();
  await write(WRITE);
  await press("[aria-label^='To the end']");
  // To where something is asked of a NIC, and from there to what prepares it.
  await press("[aria-label^='To the beginning']");
  const place = () => browser.run(() => Number(document.querySelector(".wb-time input").value));
  const first = await place();
  assert.ok(first > 2);
  await press("[aria-label^='To the beginning']");
  await browser.run(() => document.querySelector(".wb .rp-play").focus());
  await browser.press("ArrowRight", "ArrowRight");
  assert.equal(await place(), 2);
  await browser.press("ArrowLeft");
  assert.equal(await place(), 1);
  await browser.press("End");
  assert.equal(await place(), (await look()).places);
  // A line is written with the keyboard: from the play button on, Tab comes to everything that can be pressed.
  const passed = await browser.run(() => {
    const all = [...document.querySelectorAll(".wb :is(button, input, select, textarea, summary, [tabindex='0'])")].filter((it) => it.checkVisibility() && !it.disabled);
    return all.filter((it) => it.tabIndex < 0 && !it.closest(".rp-bytes")).length;
  });
  assert.equal(passed, 0);
  await browser.run(() => document.querySelector(".wb-do").focus());
  await browser.press("Enter");
  await settled();
  assert.match((await look()).script, /WRITE 0\.\.60 to server 0\n$/);
  assert.ok(await browser.run(() => location.pathname.endsWith("/workbench.html")));
});

test("what happens is told to those who listen, and everything has a name", program, async () => {
  await open();
  for (const scheme of ["light", "dark"]) {
    await browser.theme(scheme, "reduce");
    await browser.run((scheme) => { for (const name of ["light", "navy"]) document.documentElement.classList.toggle(name, name === (scheme === "dark" ? "navy" : "light")); }, scheme);
    await browser.run(() => { document.querySelector(".wb-details").open = true; });
    await browser.devtools("Runtime.evaluate", { expression: readFileSync(join(TOOLS, "axe-core/axe.min.js"), "utf8") });
    const found = await browser.run(async () => (await axe.run(".wb", { resultTypes: ["violations"] })).violations
      .filter(({ impact }) => ["serious", "critical"].includes(impact))
      .map(({ id, nodes }) => `${id}: ${nodes.length} times, first ${nodes[0].html.slice(0, 160)} ${nodes[0].any[0]?.message ?? ""}`));
    assert.deepEqual(found, [], scheme);
  }
  const live = await browser.run(() => document.querySelector(".wb-say").getAttribute("aria-live"));
  assert.equal(live, "polite");
});

/** The workbench as a screen reader goes through it: each thing's role, name and value, in their order. */
async function heard() {
  const { nodes } = await browser.devtools("Accessibility.getFullAXTree");
  const all = new Map(nodes.map((node) => [node.nodeId, node]));
  const below = ({ childIds = [] }) => childIds.map((id) => all.get(id)).filter(Boolean);
  const within = (node) => [node, ...below(node).flatMap(within)];
  const bench = nodes.find(({ role, name }) => role?.value === "group" && name?.value.startsWith("Workbench"));
  const live = ({ properties = [] }) => properties.find(({ name }) => name === "live")?.value.value ?? null;
  return within(bench).filter(({ ignored, role }) => !ignored && !["InlineTextBox", "none"].includes(role?.value))
    .map((node) => ({ role: node.role.value, name: node.name?.value ?? "", description: node.description?.value ?? "", live: live(node) }));
}

test("a screen reader hears what there is, in its order, and what happened once time stands still", program, async () => {
  await open(`${site.url}index.html`);
  const all = await heard();
  const text = all.map(({ role, name }) => `${role} ${name}`).join("\n");
  assert.match(text, /region Client[^]*Memory of the Client[^]*group The wire[^]*region Server[^]*region What happens[^]*button Now break it[^]*group Time[^]*slider Moment of the run/);
  // The words that nobody knows yet aren't said either.
  assert.doesNotMatch(text, /ibv_|rdma_|PSN/);
  assert.match(text, /asks for a WRITE/);
  // One place says what happens, and no clock chimes in.
  assert.deepEqual(all.filter(({ live }) => live).map(({ name }) => name), ["What happens"]);
  await press(".rp-play");
  assert.equal(await browser.run(() => document.querySelector(".wb-say").getAttribute("aria-live")), "off");
  await press("[aria-label^='To the end']");
  // On a page with everything to press.
  await open();
  await press("[aria-label^='To the beginning']");
  for (let step = 0; step < 20 && !(await look()).packets.length; step++) await press("[aria-label^='One thing on']");
  const bench = await heard();
  const nameless = bench.filter(({ role, name }) => ["button", "slider", "combobox", "spinbutton", "checkbox", "textbox", "link", "region", "form", "image"].includes(role) && !name);
  assert.deepEqual(nameless, []);
  const names = bench.map(({ name }) => name);
  for (const name of [/^RDMA Write Only from client to server: touch it$/, /^send queue: 1 requests? under way$/, /^completion queue: nothing is done yet$/, /^State of queue pair 17: RTS$/]) {
    assert.ok(names.some((said) => name.test(said)), `${name}`);
  }
  const play = bench.find(({ role, name }) => role === "button" && name.startsWith("Play"));
  assert.match(play.description, /^(Play|$)/);
});

test("on a phone nothing scrolls sideways, and fingers find what they press", program, async () => {
  await browser.size(360, 740);
  await open();
  const { wide, small } = await browser.run(() => ({
    wide: document.documentElement.scrollWidth - innerWidth,
    small: [...document.querySelectorAll(".wb :is(button, select, summary, input, .wb-check)")]
      .filter((it) => it.checkVisibility() && !it.matches("[type=checkbox]"))
      .map((it) => ({ box: it.getBoundingClientRect(), name: it.textContent || it.getAttribute("aria-label") }))
      .filter(({ box }) => box.height < 44 || box.width < 40).map(({ box, name }) => `${name} ${box.width} × ${box.height}`),
  }));
  assert.ok(wide <= 0, `${wide} pixels too wide`);
  assert.deepEqual(small, []);
  // A challenge can be read as a whole, though nothing scrolls.
  await open(`${site.url}docs/04_rdma_write.html`);
  const cut = await browser.run(() => {
    const right = document.querySelector(".wb").getBoundingClientRect().right;
    return [...document.querySelectorAll(".wb-challenge :is(p, select, summary, a)")].filter((it) => it.getBoundingClientRect().right > right).map((it) => it.textContent.slice(0, 40));
  });
  assert.deepEqual(cut, []);
  await browser.size(1366, 768);
});

test("whoever wants no motion gets none, and others see packets fly", program, async () => {
  const moves = () => browser.run(async () => {
    const places = new Set();
    document.querySelector(".wb .rp-play").click();
    for (let look = 0; look < 40; look++) {
      await new Promise((later) => requestAnimationFrame(later));
      for (const packet of document.querySelectorAll(".wb-packet")) places.add(getComputedStyle(packet).transform);
    }
    return places.size;
  });
  await open(page(), "reduce");
  await write(WRITE);
  assert.ok(await moves() < 8);
  await open(page(), "no-preference");
  await write(WRITE);
  await press("[aria-label^='To the beginning']");
  await browser.until(() => { const play = document.querySelector(".wb .rp-play"); if (play.textContent === "Play") play.click(); return document.querySelector(".wb-packet"); });
  const places = await browser.run(async () => {
    const places = new Set();
    for (let look = 0; look < 40; look++) {
      await new Promise((later) => requestAnimationFrame(later));
      for (const packet of document.querySelectorAll(".wb-packet")) places.add(getComputedStyle(packet).transform);
    }
    return places.size;
  });
  assert.ok(places > 5, `${places} places`);
});

test("packets fly without the page's script or its layout", program, async () => {
  await open(page(), "no-preference");
  await write(WRITE);
  await press("[aria-label^='To the end']");
  await press(".rp-play");
  await browser.until(() => document.querySelector(".wb-packet"));
  const { changes, moves } = await browser.run(async () => {
    let changes = 0;
    const watch = new MutationObserver((all) => { changes += all.filter(({ target }) => target.closest?.(".wb-packets")).length; });
    watch.observe(document.querySelector(".wb"), { subtree: true, attributes: true, childList: true });
    const moves = document.querySelector(".wb-packet").getAnimations().concat(document.querySelector(".wb-flight").getAnimations()).map(({ playState, effect }) => `${playState} ${Object.keys(effect.getKeyframes()[0]).includes("transform")}`);
    await new Promise((later) => setTimeout(later, 400));
    watch.disconnect();
    return { changes, moves };
  });
  assert.deepEqual(moves, ["running true", "running true"]);
  // At most one packet that begins and one that ends; a frame is nobody's work.
  assert.ok(changes <= 2, `${changes} changes`);
});

test("a packet that has come through a switch can be touched as well", program, async () => {
  await open();
  await write("wire link 1 Gbit/s 5 us\nwire queue 4 KB\nclient ibv_post_send WRITE 0..3000 to server 0\nclient ibv_poll_cq\n");
  await press("[aria-label^='To the end']");
  await press("[aria-label^='To the beginning']");
  for (let step = 0; step < 40 && !(await look()).packets.some((name) => name.startsWith("Write Last")); step++) await press("[aria-label^='One thing on']");
  await press(".wb-packet:has(b):not(.acknowledge)");
  const [name] = (await look()).packets;
  await press(".wb-menu button", "lose");
  assert.match((await look()).script, new RegExp(`^wire drop 1st RDMA ${name.replace(/[+].*/, "")} from client$`, "m"));
});

test("the start page moves by itself, and one button breaks it", program, async () => {
  await browser.size(360, 740);
  await open(`${site.url}index.html`, "no-preference");
  // On a phone all that counts is there without scrolling.
  await browser.run(() => scrollTo(0, 0));
  const below = await browser.run(() => [".wb-stage", ".wb-say", ".wb-break"].filter((part) => document.querySelector(`.wb ${part}`).getBoundingClientRect().bottom > innerHeight));
  assert.deepEqual(below, []);
  await browser.size(1366, 768);
  const calm = await look();
  // The slider begins where something is asked of a NIC.
  await press("[aria-label^='To the beginning']");
  assert.equal(await browser.run(() => { const slider = document.querySelector(".wb-time input"); return slider.value - slider.min; }), 0);
  assert.match(calm.server, /the other side's processor never knows/);
  assert.match(calm.server, /asleep/);
  assert.equal(await browser.run(() => document.querySelector(".wb-bench").checkVisibility()), false);
  await press(".wb-break");
  const broken = await look();
  assert.match(broken.script, /^wire drop/m);
  // It begins like the run before, so what's different is said at once.
  assert.match(broken.says, /^1 of 3: This time, the packet gets lost on its way\. /);
  await press(".wb-break");
  assert.match((await look()).script, /key=wrong/);
  await press(".wb-break");
  assert.match((await look()).script, /server dies/);
  // What comes to a machine that's off isn't written there.
  await press("[aria-label^='To the end']");
  const off = await look();
  assert.match(off.server, /switched off/);
  assert.match(off.server, /nothing but zeros/);
  assert.doesNotMatch(off.server, /asleep|its NIC writes/);
  await press(".wb-turn");
  assert.equal(await browser.run(() => document.querySelector(".wb-bench").checkVisibility()), true);
  // A press has something to do again, which it hadn't with the server dead; and what it does can be seen, since nothing has been done yet.
  const turn = await look();
  assert.doesNotMatch(turn.script, /server dies|key=wrong|drop|ibv_post_send/);
  assert.match(turn.says, /^Your turn: /);
  assert.match(turn.server, /nothing but zeros/);
  await press(".wb-do");
  // The connection has long been made, so nothing of it flies.
  const { clock } = await look();
  assert.ok(clock.endsWith("µs") && parseFloat(clock) >= 20, clock);
  await press("[aria-label^='To the end']");
  assert.match((await look()).server, /the other side's processor never knows/);
  // The words of the course are there for whoever asks for them, and the way back is as well.
  const seen = (part) => browser.run((part) => document.querySelector(`.wb ${part}`).checkVisibility(), part);
  assert.equal(await seen(".rp-pair"), false);
  await press(".wb-tools button", "Look inside");
  assert.equal(await seen(".rp-pair"), true);
  await press(".wb-tools button", "Back to the faults");
  assert.match((await look()).says, /^1 of 3: This time, /);
  assert.deepEqual([await seen(".wb-bench"), await seen(".rp-pair")], [false, false]);
  assert.deepEqual(await browser.complaints(), []);
});

test("it works from a folder, and a page without it loads nothing of it", program, async () => {
  await open(pathToFileURL(join(SITE, "docs/workbench.html")).href);
  assert.equal((await look()).wrong, "");
  assert.deepEqual(await browser.complaints(), []);
  await browser.open(`${site.url}docs/glossary.html`);
  const loaded = await browser.run(() => performance.getEntriesByType("resource").filter(({ name }) => name.includes("/workbench/")).length);
  assert.equal(loaded, 0);
});
