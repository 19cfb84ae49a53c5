// Each link, picture, script and style of each page leads to a file of the book, and to a part of it that is there.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { pages, SITE } from "./support/site.mjs";

const decoded = (text) => text.replaceAll("&amp;", "&").replaceAll("&#x27;", "'").replaceAll("&quot;", '"');

test("links lead to what is there, and nothing is taken from elsewhere", async () => {
  const texts = new Map(await Promise.all((await pages()).map(async (path) => [path, await readFile(join(SITE, path), "utf8")])));
  assert.ok(texts.size > 50, `only ${texts.size} pages`);
  const anchors = (path) => new Set([...(texts.get(path) ?? "").matchAll(/\sid="([^"]*)"/g)].map(([, id]) => decoded(id)));
  const wrong = [];
  for (const [path, text] of texts) {
    const own = anchors(path);
    for (const [, tag, name, value] of text.matchAll(/<(\w+)[^>]*?\s(href|src)="([^"]*)"/g)) {
      const target = decoded(value);
      if (/^(https?:|mailto:|data:)/.test(target)) {
        if (tag !== "a") wrong.push(`${path}: <${tag}> takes ${target} from elsewhere`);
        continue;
      }
      const [file, anchor = ""] = target.replace(/\?[^#]*/, "").split("#");
      const found = file ? normalize(join(dirname(path), decodeURIComponent(file))) : path;
      const isPage = texts.has(found);
      if (found.startsWith("..") || !existsSync(join(SITE, found)) || (name === "href" && tag === "a" && found.endsWith("/"))) {
        wrong.push(`${path}: ${target} leads nowhere`);
      } else if (anchor && isPage && !anchor.includes("=") && !(file ? anchors(found) : own).has(decodeURIComponent(anchor))) {
        wrong.push(`${path}: ${found} has no part #${anchor}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});
