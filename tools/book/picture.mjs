// Takes a picture of a page of the book, or of any page by its URL:
//
//     node tools/book/picture.mjs 'docs/04_rdma_write.html#frame=100' OUT.png [WIDTH HEIGHT [dark [KEY …]]]
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Browser } from "./test/support/browser.mjs";
import { start } from "./test/support/site.mjs";

const [path, out, width = "1400", height = "900", scheme = "light", ...keys] = process.argv.slice(2);
const [browser, site] = [await Browser.start(), await start()];
try {
  await browser.size(Number(width), Number(height));
  await browser.theme(scheme);
  await browser.open(new URL(path, site.url).href);
  await browser.until(() => document.readyState === "complete");
  // A player comes when it is in view.
  await sleep(2000);
  await browser.press(...keys);
  await sleep(500);
  await writeFile(out, await browser.screenshot());
} finally {
  await browser.stop();
  site.stop();
}
