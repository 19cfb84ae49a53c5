// Changes of lessons that a reader can try: the link beside a recorded run leads to the workbench with the change's script, from a folder as
// from a server.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Browser } from "./support/browser.mjs";
import { SITE } from "./support/site.mjs";

let browser;
before(async () => { browser = await Browser.start(); });
after(() => browser?.stop());

const isThere = existsSync(join(SITE, "workbench/program.js"));
/** Where there was no compiler for the program, its tests are told as skipped, and not as passed. */
const program = { skip: isThere ? false : "NOT RUN: the book was built without the workbench, for there was no compiler for WebAssembly" };

for (const [page, change, line, says] of [
  ["04_rdma_write", "Use a wrong key", "client ibv_post_send WRITE 0..60 to server 0 key=wrong", /IBV_WC_REM_ACCESS_ERR \(10\)/],
  ["when_packets_are_lost", "Lose a SEND", "wire drop 1st Send Only from client", /The wire lost the client's/],
  ["08_handle_api", "Point the server's queue pair at nobody", "server ibv_modify_qp dest_qp_num=18", /IBV_WC_RETRY_EXC_ERR \(12\)/],
]) {
  test(`${change}: the link leads to its run`, program, async () => {
    await browser.theme("light", "reduce");
    await browser.open("about:blank");
    await browser.open(pathToFileURL(join(SITE, `docs/${page}.html`)).href);
    const pressed = await browser.run((change) => {
      const links = [...document.querySelectorAll("main a[href*='workbench.html#script=']")];
      const its = links.filter((link) => new URLSearchParams(link.hash.slice(1)).get("script").split("\n")[0].endsWith(`: ${change}`));
      its[0]?.click();
      return its.length;
    }, change);
    assert.equal(pressed, 1);
    await browser.until(() => location.pathname.endsWith("/workbench.html") && document.querySelector(".wb .wb-clock")?.textContent);
    const [script, wrong, top] = await browser.run(() => {
      document.querySelector(".wb [aria-label^='To the end']").click();
      return [document.querySelector(".wb-text").value, document.querySelector(".wb-wrong").textContent, document.querySelector(".wb").getBoundingClientRect().top];
    });
    assert.ok(script.split("\n").includes(line) && script.split("\n").includes(`# + ${line}`), script);
    assert.equal(wrong, "");
    assert.ok(top >= 0 && top < 200, `the picture begins at ${top}`);
    assert.match(await browser.until(() => document.querySelector(".wb-say strong")?.textContent), says);
    assert.deepEqual(await browser.complaints(), []);
  });
}
