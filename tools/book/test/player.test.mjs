// The player in a real Chromium: every bundled run to its end, and at three packets of each what tshark and `wire show` say.
//
//     node --test tools/book/test/player.test.mjs        (needs target/debug/wire, chromedriver and tshark)

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { Browser } from "./support/browser.mjs";
import { ACK, WRITE } from "./support/lesson04.mjs";
import { TOOLS } from "./support/site.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const wire = join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug/wire");
const runs = readdirSync(join(root, "captures")).filter((name) => name.endsWith(".pcapng")).map((name) => basename(name, ".pcapng"));
const capture = (run) => join(root, "captures", `${run}.pcapng`);
const output = (...command) => execFileSync(command[0], command.slice(1), { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28 });

let page, folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "player-"));
  page = await Browser.start();
  await page.size(1280, 800);
  // Nothing glides: what is to be seen is there at once.
  await page.theme("light", "reduce");
});
after(async () => {
  await page?.stop();
  rmSync(folder, { recursive: true });
});

/** Writes the page of a file, and opens it at a frame. */
async function open(file, name, { lesson, frame } = {}) {
  const out = join(folder, `${name}.html`);
  output(wire, "play", file, "-o", out, ...(lesson ? ["--lesson", join(root, "lessons", lesson)] : []));
  await page.open("about:blank");
  await page.open(pathToFileURL(out) + (frame ? `#frame=${frame}` : ""));
  return out;
}
const openRun = (run, frame) => open(capture(run), run, { lesson: run.split("-")[0], frame });

/** Goes to a frame by the page's address, and says what is shown. */
async function at(frame) {
  await page.run((frame) => { location.hash = `frame=${frame}`; }, frame);
  await page.run(() => new Promise((done) => setTimeout(done, 50)));
  return look();
}
const look = () =>
  page.run(() => {
    const text = (selector) => document.querySelector(selector)?.textContent ?? "";
    const all = (selector, of = document) => [...of.querySelectorAll(selector)];
    const rows = all(".rp-row");
    const acts = rows.findIndex((row) => row.matches(".acts, .acted"));
    return {
      now: document.querySelector("li.now")?.dataset.n,
      row: text("li.now"),
      caption: text(".rp-now"),
      attributes: [...document.querySelectorAll(".rp-attributes")].every((line) => line.scrollWidth <= line.clientWidth),
      file: text(".rp-code h3"),
      source: rows.slice(0, acts + 1).map((row) => row.textContent.replace(/^\d+/, "").trimEnd()),
      packet: text(".rp-pack h3"),
      fields: all(".rp-cells button").map((button) => button.getAttribute("aria-label")),
      states: all(".rp-host").map((host) => all(".rp-pair", host).map((pair) => [pair.querySelector("span").textContent, all("li.on", pair).map((li) => li.textContent).join(" ")])),
      hosts: all(".rp-host h3").map((name) => name.firstChild.textContent),
      memory: all(".rp-host").map((host) => all(".rp-region.changed", host).map((region) => region.textContent)),
    };
  });

/** What tshark, which knows nothing of us, reads from a run file: log lines and packets by number. */
function frames(run) {
  const fields = ["frame.number", "systemd_journal.hostname", "systemd_journal.message", "frame.comment", "infiniband.bth.opcode", "frame.interface_name"];
  const lines = output("tshark", "-r", capture(run), "-T", "fields", "-E", "separator=/t", ...fields.flatMap((field) => ["-e", field])).trimEnd().split("\n");
  return lines.map((line) => {
    const [n, host, message, comment, opcode, node] = line.split("\t");
    return { n: Number(n), host, message, comment, opcode, node };
  });
}

/** The fields that `wire show --packet` prints: name, value and meaning; and the bytes of the payload. */
function shown(run, n) {
  const text = output(wire, "show", capture(run), "--packet", String(n));
  const fields = text.split("\n").map((line) => /^  [0-9a-f]{4}  .{26}  (\S.{22})(?:  (.{1,18}))?(?:  (.*))?$/.exec(line)).filter(Boolean);
  const [, payload = ""] = /\nPayload, .*\n((?:  [0-9a-f]{4} .*\n)+)/.exec(text) ?? [];
  const bytes = payload.split("\n").map((line) => line.slice(8, 55).trim()).join(" ").trim();
  return { fields: fields.map(([, ...words]) => words.map((word) => (word ?? "").trim()).filter(Boolean).join(" ")), bytes };
}

for (const run of runs) {
  test(`${run} is played to its end, and three packets are what the run file says`, async () => {
    await openRun(run);
    const all = frames(run);
    // Played, only faster.
    await page.run(() => {
      const later = window.setTimeout;
      window.setTimeout = (act) => later(act, 0);
      document.querySelector(".rp-play").click();
    });
    let end;
    for (const deadline = Date.now() + 300_000; end === undefined && Date.now() < deadline; ) {
      end = await page.run(() => (document.querySelector(".rp.playing") ? null : document.querySelector("li.now").dataset.n)) ?? undefined;
    }
    assert.equal(Number(end), all.at(-1).n);
    assert.deepEqual(await page.complaints(), []);

    const packets = all.filter((frame) => frame.opcode);
    for (const packet of [packets[0], packets[packets.length >> 1], packets.at(-1)]) {
      const seen = await at(packet.n);
      assert.equal(Number(seen.now), packet.n);
      assert.ok(seen.attributes, "a queue pair's attributes are cut");
      const step = /Step \d+: (.*?) \[/.exec(packet.comment)[1];
      assert.ok(seen.caption.includes(step), `${seen.caption} has no ${step}`);
      // Code: the file and the stage that the comment names, which itself comes from the lesson's story.
      const cause = /\[(?:client|server): .* in (\w+), ([\w/]+\.rs)\]/.exec(packet.comment);
      if (cause && !packet.comment.includes("destroy")) {
        const stages = (lines) => lines.map((line) => /stage\("(\w+)"\)/.exec(line)?.[1]).filter(Boolean);
        // The stage begins in the function that acts, or in one that calls it.
        const own = stages(seen.source.slice(seen.source.findLastIndex((line) => /^\s*(pub(\(\w+\))? )?fn /.test(line))));
        if (seen.file === cause[2]) assert.ok(own.length ? own.at(-1) === cause[1] : stages(seen.source).includes(cause[1]), cause[0]);
        assert.ok(seen.source.length > 10, `${seen.file} has no line that acts`);
      }
      // The packet: all fields, in the order of the wire.
      const { fields, bytes } = shown(run, packet.n);
      const listed = seen.fields.map((label) => label.replace(/: [0-9a-f ]+$/, "")).join("; ");
      for (const field of fields) assert.ok(listed.includes(field.split("; ")[0]), `frame ${packet.n}: ${field} is not among the fields`);
      // States: the last one that each side's log has told.
      const before = all.filter((frame) => frame.n <= packet.n);
      for (const [place, host] of seen.hosts.entries()) {
        const told = before.findLast((frame) => frame.host === host && /QP: qpn=|_destroy_qp/.test(frame.message));
        const known = /QP: qpn=(\d+) state=(\w+)/.exec(told?.message);
        // A message of the connection manager since then may have told more.
        const more = before.some((frame) => frame.opcode === "100" && frame.n > told?.n);
        const right = (more && { INIT: ["INIT", "RTR RTS", "RTS"], RTS: ["RTS", ""] }[known?.[2]]) || [known?.[2]];
        if (known) assert.ok(seen.states[place].some(([name, state]) => name.startsWith(`QP ${known[1]}`) && right.includes(state)), `${host} at ${packet.n}: ${JSON.stringify(seen.states[place])}`);
      }
      // Memory: a WRITE's bytes are on both sides; of one that was dropped the server has none.
      const dropped = packet.comment.includes("lab: dropped");
      if (dropped) assert.deepEqual(seen.memory[seen.hosts.indexOf("server")], []);
      if (/^(6|7|8|10)$/.test(Number(packet.opcode)) && bytes && !dropped && packet.comment.includes("[client") && !run.includes("wrong")) {
        const first = bytes.split(" ").slice(0, 4);
        const letters = first.map((hex) => String.fromCharCode(parseInt(hex, 16))).join("");
        for (const regions of seen.memory) assert.ok(regions.some((text) => text.includes(letters) || text.includes(first.join(" "))), `no region has ${letters}`);
      }
    }
    // Log lines: the ladder has them all, word by word.
    const lines = all.filter((frame) => frame.message && /\] (SLOW|FAST|DATA|INFO)/.test(frame.message));
    for (const line of [lines[0], lines[lines.length >> 1], lines.at(-1)]) {
      const { row, now } = await at(line.n);
      assert.equal(Number(now), line.n);
      const text = line.message.replace(/^\[.*?\] \w+\s+/, "");
      assert.ok(row.includes(text), `${row} is not ${text}`);
    }
    assert.deepEqual(await page.complaints(), []);
  });
}

test("keys go through the run, and the address names the moment", async () => {
  await openRun("04_rdma_write");
  const number = async () => (await look()).now;
  await page.click(".rp-title");
  await page.press("Home", "ArrowRight", "ArrowRight", "ArrowRight");
  assert.equal(await number(), "3");
  await page.press("ArrowLeft");
  assert.equal(await number(), "2");
  assert.equal(await page.run(() => location.hash), "#frame=2");
  await page.press("ArrowDown");
  assert.match((await look()).row, /ConnectRequest/);
  await page.press("ArrowUp");
  assert.equal(await number(), null);
  await page.press("Shift+ArrowRight", "Shift+ArrowRight");
  assert.match((await look()).caption, /^Step 2: The server accepts/);
  await page.press("Shift+ArrowLeft");
  assert.match((await look()).caption, /^Step 1: The client asks for a connection\. Asks the other side/);
  await page.press("End");
  assert.match((await look()).row, /the end of the run/);
  await page.press("Home");
  assert.equal(await number(), null);
  await page.press(" ");
  assert.equal(await page.run(() => document.querySelector(".rp-play").textContent), "Pause");
  await page.press(" ");
  assert.equal(await page.run(() => document.querySelector(".rp-play").textContent), "Play");
  // In the packet's bytes the arrows go from field to field, and the fields below follow.
  await at((await page.run(() => document.querySelector(".rp-packet.write").dataset.n)));
  await page.run(() => document.querySelector('.rp-cells button[aria-label^="R_Key"]').focus());
  assert.match(await page.run(() => document.querySelector(".rp-fields tr.on").textContent), /^R_Key0x/);
  await page.press("ArrowRight");
  assert.match(await page.run(() => document.querySelector(".rp-fields tr.on").textContent), /^DMALength60/);
});

test("each button of the player does what it is called, and the legend opens on tap", async () => {
  await openRun("04_rdma_write");
  const [start, here] = [await look(), () => page.run(() => Number(document.querySelector("li.now")?.dataset.n ?? 0))];
  const press = (name) => page.run((name) => document.querySelector(`.rp-transport button[aria-label^="${name}"]`).click(), name);
  const [opened, after] = [await here(), async (name) => (await press(name), here())];
  const packets = await page.run(() => [...document.querySelectorAll(".rp-packet")].map((row) => Number(row.dataset.n)));
  // It opens where what the lesson adds begins, and leaves the address alone.
  assert.match(start.row, /ibv_post_send RDMA_WRITE/);
  assert.match(start.caption, /^Step 8: The client writes into the server's memory\. Asks the device to put bytes/);
  assert.equal(await page.run(() => location.hash), "");
  assert.equal(await after("Event on"), opened + 1);
  assert.equal(await after("‹ Event back"), opened);
  assert.equal(await after("Packet on"), WRITE);
  assert.match((await look()).caption, /^Step 8: .* The client calls ibv_post_send, in write \(memory\.rs\)\./);
  assert.equal(await after("‹ Packet back"), packets[packets.indexOf(WRITE) - 1]);
  assert.equal(await after("Step on"), opened);
  assert.equal(await after("Step on"), ACK);
  assert.match((await look()).caption, /^Step 9: .* The server's device answers the client's ibv_post_send/);
  assert.equal(await after("‹ Step back"), opened);
  assert.equal(await after("Start of the run"), 0);
  await page.run((count) => {
    const slider = document.querySelector(".rp-transport input");
    slider.value = count;
    slider.dispatchEvent(new Event("input"));
  }, 3);
  assert.equal((await page.run(() => document.querySelectorAll("li.past").length)), 3);
  await page.run((n) => document.querySelector(`li[data-n="${n}"]`).click(), WRITE);
  assert.equal(await here(), WRITE);
  await press("1×");
  assert.equal(await page.run(() => document.querySelector(".rp-speed").textContent), "2×");
  const legend = () => page.run(() => document.querySelector(".rp-legend:popover-open")?.textContent ?? "");
  assert.equal(await legend(), "");
  await page.click(".rp-keys");
  assert.match(await legend(), /Shift →one step of the lesson[^]*RTSit sends, too/);
  await page.press("Escape");
  assert.equal(await legend(), "");
  await page.press("?");
  assert.match(await legend(), /^Keys/);
  await page.press("?");
  // Play and Predict have tests of their own, the tabs that of the phone: whoever adds a button presses it.
  const all = await page.run(() => [...document.querySelectorAll(".rp-transport button, .rp-tabs button")].map((button) => button.getAttribute("aria-label").split(/ \(|:/)[0]));
  assert.deepEqual(all, ["Start of the run", "Play", "‹ Event back", "Event on ›", "‹ Packet back", "Packet on ›", "‹ Step back", "Step on ›", "2×", "Predict", "Keys and signs", ...Array(5).fill("Show")]);
});

test("a packet's arrow goes from memory to memory: where its bytes are read, and where they are written, if they arrive", async () => {
  const ends = () => page.run(() => ["left", "right"].map((side) => document.querySelector(`li.now .rp-at-${side}`)?.textContent.replace(/0x\w+/, "X") ?? ""));
  await openRun("04_rdma_write", WRITE);
  assert.deepEqual(await ends(), ["60 bytes read at X", "60 bytes written at X"]);
  const places = await page.run(() => [...document.querySelectorAll("li.now .rp-end b")].map((place) => place.textContent));
  const regions = (await look()).memory.map(([region]) => region.match(/^0x[0-9a-f]{12}/)[0]);
  assert.deepEqual(places, regions);
  await openRun("05_rdma_read");
  await page.run(() => { location.hash = `frame=${[...document.querySelectorAll(".rp-packet")].find((row) => row.textContent.includes("RDMA Read Response")).dataset.n}`; });
  await page.until(() => document.querySelector("li.now .rp-end"));
  assert.deepEqual(await ends(), ["60 bytes written at X", "60 bytes read at X"]);
  await open(join(root, "captures/changes/04-lost-write.pcapng"), "lost", { lesson: "04_rdma_write" });
  await page.run(() => { location.hash = `frame=${document.querySelector(".rp-packet.lost").dataset.n}`; });
  await page.until(() => document.querySelector("li.now .rp-end"));
  assert.deepEqual(await ends(), ["60 bytes read at X", ""]);
});

test("predict stops before a packet, asks, and goes on with the answer", async () => {
  await openRun("04_rdma_write", WRITE - 1);
  await page.run(() => document.querySelector(".rp-predict").click());
  await page.run(() => document.querySelector(".rp-play").click());
  await page.run(() => new Promise((done) => setTimeout(done, 100)));
  assert.match((await look()).caption, /What comes next on the wire/);
  assert.equal((await look()).now, `${WRITE - 1}`);
  assert.equal(await page.run((n) => getComputedStyle(document.querySelector(`li[data-n="${n}"]`)).visibility, WRITE), "hidden");
  await page.run(() => [...document.querySelectorAll(".rp-question button")].find((button) => button.textContent === "client → server: RDMA Write Only").click());
  const seen = await look();
  assert.match(seen.caption, /^Yes\./);
  assert.match(seen.packet, /RDMA Write Only/);
});

test("arrows scroll the pane that they are pressed in, and elsewhere go to the next packet", async () => {
  await openRun("04_rdma_write", WRITE);
  const source = () => page.run(() => document.querySelector(".rp-source").scrollTop);
  await page.run(() => document.querySelector(".rp-source").focus());
  const before = await source();
  await page.press("ArrowDown", "ArrowDown");
  assert.ok(await page.until((before) => document.querySelector(".rp-source").scrollTop > before, before));
  assert.equal((await look()).now, `${WRITE}`);
  await page.run(() => document.querySelector(".rp-ladder").focus());
  await page.press("ArrowDown");
  assert.equal((await look()).now, `${ACK}`);
});

test("axe finds nothing serious in the middle of a run, whatever its colours", async () => {
  const axe = readFileSync(join(TOOLS, "axe-core/axe.min.js"), "utf8");
  const wrong = [];
  for (const theme of ["light", "dark"]) {
    for (const width of [390, 1280]) {
      await page.size(width, 900);
      await page.theme(theme, "reduce");
      await openRun("04_rdma_write", WRITE);
      await page.devtools("Runtime.evaluate", { expression: axe });
      const found = await page.run(async () => (await axe.run({ resultTypes: ["violations"] })).violations
        .filter(({ impact }) => ["serious", "critical"].includes(impact))
        .map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)} ${nodes[0].any[0]?.message ?? ""}`));
      wrong.push(...found.map((what) => `${theme}, ${width}: ${what}`));
    }
  }
  await page.size(1280, 800);
  await page.theme("light", "reduce");
  assert.deepEqual(wrong, []);
});

/** A page whose data is changed. */
async function changed(name, change) {
  const out = join(folder, `${name}.html`);
  const text = readFileSync(await openRun("04_rdma_write"), "utf8");
  const [before, data, after] = text.split(/(?<=id="data">)([^<]*)(?=<)/);
  const run = JSON.parse(data);
  change(run);
  writeFileSync(out, before + JSON.stringify(run).replaceAll("<", "\\u003c") + after);
  await page.open("about:blank");
  await page.open(`${pathToFileURL(out)}#frame=${ACK}`);
}

test("a region of a terabyte is shown as fast as a small one, with the bytes that came far inside it", async () => {
  const far = 2 ** 40;
  await changed("large", (run) => {
    for (const change of run.events.flatMap((event) => event.memory ?? [])) {
      if (change.what === "region") change.len += 2 * far;
      if (change.what === "bytes") change.at += far;
    }
  });
  const memory = await page.run(() => [...document.querySelectorAll(".rp-memory")].map((memory) => memory.textContent));
  for (const text of memory) assert.match(text, /“One side writes[^]*from byte 1099511627776; … 1099511627\d+ more bytes/);
  assert.deepEqual(await page.complaints(), []);
});

test("what is known of a region is what was written last", async () => {
  const source = readFileSync(join(root, "tools/wire/player/bytes.js"), "utf8");
  const { Bytes } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const [bytes, model] = [new Bytes(), new Array(300).fill(null)];
  for (let round = 1, random = 1; round < 500; round++) {
    random = (random * 48271) % 2147483647;
    const [at, count, value] = [random % 250, (random >> 8) % 40, (round % 256).toString(16).padStart(2, "0")];
    bytes.put(at, value.repeat(count));
    model.fill(value, at, at + count);
    assert.deepEqual(bytes.read(0, 300), model, `round ${round}`);
    assert.deepEqual(bytes.read(at, 20), model.slice(at, at + 20));
    const ends = bytes.pieces.map(({ at, hex }) => [at, at + hex.length / 2]);
    assert.ok(ends.every(([, end], place) => end <= (ends[place + 1]?.[0] ?? end)), JSON.stringify(ends));
  }
  // Where numbers have gaps nothing is kept, and nothing is looked through.
  bytes.put(2 ** 60, "00");
  assert.equal(bytes.end, model.findLastIndex((byte) => byte !== null) + 1);
});

test("dark and light, wide and on a phone, nothing is cut off at the side", async () => {
  const background = () => page.run(() => getComputedStyle(document.querySelector(".rp")).backgroundColor.match(/\d+/g).map(Number));
  for (const [theme, is] of [["light", (sum) => sum > 600], ["dark", (sum) => sum < 150]]) {
    await page.theme(theme, "reduce");
    await openRun("04_rdma_write", WRITE);
    assert.ok(is((await background()).reduce((sum, part) => sum + part)), theme);
  }
  for (const width of [360, 760, 1280]) {
    await page.size(width, 844);
    for (const run of ["04_rdma_write", "09_parameter_server"]) {
      await openRun(run, WRITE);
      const [needed, there] = await page.run(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(needed <= there, `${run} needs ${needed} of ${there} pixels`);
    }
  }
  await page.size(360, 740);
  await openRun("04_rdma_write", WRITE);
  // One thing at a time, nothing of it at the side, and nothing over another.
  const tabs = await page.run(() => [...document.querySelectorAll(".rp-tabs button")].map((tab) => tab.textContent));
  assert.deepEqual(tabs, ["Run", "Code", "Packet", "Client", "Server"]);
  for (const [place, shown] of [".rp-ladder", ".rp-code", ".rp-pack", ".rp-left.rp-host", ".rp-right.rp-host"].entries()) {
    const seen = await page.run((place) => {
      document.querySelectorAll(".rp-tabs button")[place].click();
      const there = (selector) => [...document.querySelectorAll(selector)].filter((box) => box.offsetHeight);
      const all = there(".rp-title, .rp-now, .rp-tabs, .rp-ladder, .rp-pane, .rp-transport > :not(.rp-legend), .rp-left-out");
      const boxes = all.map((box) => [box.className, box.getBoundingClientRect()]);
      const over = boxes.flatMap(([one, a], at) => boxes.slice(at + 1).filter(([, b]) => a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 1 && b.bottom > a.top + 1).map(([other]) => `${one} over ${other}`));
      const wide = there(".rp *:not(.rp-spoken)").filter((box) => box.scrollWidth > box.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(box).overflowX)).map((box) => box.className);
      return { panes: there(".rp-ladder, .rp-pane").map((pane) => pane.className), over, wide };
    }, place);
    assert.deepEqual([seen.over, seen.wide, seen.panes.length], [[], [], 1]);
    assert.ok(shown.slice(1).split(".").every((name) => seen.panes[0].includes(name)), seen.panes[0]);
  }
  // A pane that was hidden while the run went on shows its place as soon as it is chosen.
  const chosen = (name, selector, box) => page.run((name, selector, box) => {
    [...document.querySelectorAll(".rp-tabs button")].find((tab) => tab.textContent === name).click();
    const [inner, outer] = [selector, box].map((part) => document.querySelector(part).getBoundingClientRect());
    return inner.top >= outer.top - 1 && inner.top < outer.bottom;
  }, name, selector, box);
  assert.ok(await chosen("Code", ".rp-row.acts", ".rp-source"), "the line that acts");
  assert.ok(await chosen("Packet", ".rp-part.on", ".rp-bytes"), "the header that says most");
  // All that one plays with is there, and each button says which way it goes.
  const buttons = await page.run(() => [...document.querySelectorAll(".rp-transport > :is(button, span)")].filter((button) => button.offsetHeight).map((button) => button.textContent));
  assert.deepEqual(buttons, ["Start", "Play", "‹Event›", "‹Packet›", "‹Step›", "1×", "Predict", "?"]);
  await page.size(1280, 800);
  await page.theme("light", "reduce");
});

test("on a laptop the line that acts is in view at each event, and a link to a moment brings the player there", async () => {
  await page.size(1366, 768);
  await openRun("04_rdma_write", WRITE);
  const hidden = await page.run(() => [...document.querySelectorAll(".rp-ladder li")].filter((row) => {
    row.click();
    const [line, box] = [".rp-row.acts, .rp-row.acted", ".rp-source"].map((part) => document.querySelector(part)?.getBoundingClientRect());
    return line && (line.top < box.top - 1 || line.top + 15 > box.bottom);
  }).map((row) => row.dataset.n));
  assert.deepEqual(hidden, []);
  const top = await page.run(async (frame) => {
    document.body.style.paddingTop = "3000px";
    scrollTo(0, 0);
    location.hash = `frame=${frame}`;
    await new Promise((done) => setTimeout(done, 100));
    return document.querySelector(".rp").getBoundingClientRect().top;
  }, ACK);
  assert.ok(top >= 0 && top < 768, `the player begins at ${top}`);
  await page.size(1280, 800);
});

test("without JavaScript the page shows the ladder", async () => {
  const out = await openRun("04_rdma_write");
  await page.devtools("DOM.enable");
  await page.scripts(false);
  let outerHTML;
  try {
    await page.open(pathToFileURL(out) + "?static");
    const { root } = await page.devtools("DOM.getDocument");
    ({ outerHTML } = await page.devtools("DOM.getOuterHTML", { nodeId: root.nodeId }));
  } finally {
    await page.scripts(true);
  }
  assert.match(outerHTML, /RDMA Write Only {2}psn \+1 {2}len 60/);
});

test("what a capture says stays text", async () => {
  const file = readFileSync(capture("04_rdma_write"));
  const put = (what, instead) => {
    assert.equal(what.length, instead.length);
    for (let at = 0; (at = file.indexOf(what, at)) >= 0; at += what.length) file.write(instead, at);
  };
  put("rdma_connect returned: the answer will be an event", "</script><script>hacked=1</script><img src=x onerror=".padEnd(50).slice(0, 50));
  put("connected", "<b>hi</b>");
  put("One side writes, and the other side's processor never knows.", "</script><script>window.hacked = 1;</script><b>ATTACK</b>".padEnd(60));
  writeFileSync(join(folder, "hostile.pcapng"), file);
  await open(join(folder, "hostile.pcapng"), "hostile");
  await page.click(".rp-title");
  await page.press("End");
  assert.equal(await page.run(() => window.hacked ?? document.querySelectorAll(".rp b > b, .rp img, .rp script").length), 0);
  assert.match(await page.run(() => document.querySelector(".rp-ladder").textContent), /<\/script><script>hacked=1/);
  assert.deepEqual(await page.complaints(), []);
  // And in the packet. Its checksum doesn't fit any more, so no device writes it into the other side's memory.
  await page.run(() => { location.hash = `frame=${document.querySelector(".rp-packet.write").dataset.n}`; });
  await page.run(() => new Promise((done) => setTimeout(done, 50)));
  const letters = await page.run(() => {
    document.querySelector(".rp-cells button[aria-label^='Payload: ']").click();
    return document.querySelector(".rp-fields .rp-letters").textContent;
  });
  assert.equal(letters.trimEnd(), "</script><script>window.hacked = 1;</script><b>ATTACK</b>");
  const { hosts, memory } = await look();
  assert.ok(memory[hosts.indexOf("server")].every((text) => !text.includes("hacked")));
  assert.equal(await page.run(() => window.hacked ?? document.querySelectorAll(".rp b > b, .rp img, .rp script").length), 0);
});

test("a capture without anything to play says so, and one with another program's packets plays", async () => {
  const file = readFileSync(capture("04_rdma_write"));
  // The section header block alone.
  writeFileSync(join(folder, "empty.pcapng"), file.subarray(0, file.readUInt32LE(4)));
  await open(join(folder, "empty.pcapng"), "empty");
  assert.match(await page.run(() => document.body.textContent), /nothing to play/);
  writeFileSync(join(folder, "cut.pcapng"), file.subarray(0, file.length >> 1));
  await open(join(folder, "cut.pcapng"), "cut");
  assert.match(await page.run(() => document.querySelector(".rp-left-out").textContent), /the file ends inside/);
  assert.equal(await page.run(() => document.querySelector(".rp-code")), null);
  await page.click(".rp-title");
  await page.press("End");
  assert.deepEqual(await page.complaints(), []);
});

test("script and data stay small", () => {
  const modules = readdirSync(join(root, "tools/wire/player")).filter((name) => name.endsWith(".js"));
  const script = Buffer.concat(modules.map((name) => readFileSync(join(root, "tools/wire/player", name))));
  assert.ok(gzipSync(script).length < 60_000);
  for (const run of runs) {
    const out = join(folder, `${run}.json`);
    output(wire, "play", capture(run), "--lesson", join(root, "lessons", run.split("-")[0]), "--data", "-o", out);
    const size = gzipSync(readFileSync(out), { level: 9 }).length;
    assert.ok(size < 44_000, `${run}: ${size} bytes`);
  }
});
