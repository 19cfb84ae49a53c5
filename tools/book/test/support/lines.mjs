// The search without a browser, and the lines of public threads by which it's measured.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runInThisContext } from "node:vm";
import { REPOSITORY, SITE } from "./site.mjs";

/** The book's search, ready to find. */
export function finder() {
  for (const name of ["finder", "index"]) runInThisContext(readFileSync(join(SITE, `search/${name}.js`), "utf8"));
  const made = new globalThis.bookFinder.Finder(globalThis.bookIndex);
  made.read();
  return made;
}

/** The lines of a list: where each was asked, and which pages of errors may come first; none if there's no page for it. */
export function lines(name) {
  const text = readFileSync(join(REPOSITORY, "tools/book/test/search", name), "utf8");
  const rows = text.trimEnd().split("\n").filter((line) => !line.startsWith("#"));
  return rows.map((row) => {
    const [pages, thread] = row.split("|", 2);
    const wanted = pages === "?" ? [] : pages.split(",").map((page) => `docs/errors/${page}.html`);
    return { wanted, thread, line: row.slice(pages.length + thread.length + 2) };
  });
}

/** For each line that has a page, the place at which it's found, from 1; Infinity where it isn't. */
export function ranks(finder, list) {
  return list.filter(({ wanted }) => wanted.length).map((it) => {
    const at = finder.find(it.line).found.findIndex(({ url }) => it.wanted.includes(url));
    return { ...it, rank: at < 0 ? Infinity : at + 1 };
  });
}
