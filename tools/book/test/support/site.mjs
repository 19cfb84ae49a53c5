// The book that `make site` has built, served below a path as on a forge's pages.
import { readdir } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { serve } from "../../serve.mjs";

export const REPOSITORY = resolve(fileURLToPath(import.meta.url), "../../../../..");
const TARGET = resolve(REPOSITORY, process.env.CARGO_TARGET_DIR ?? "target");
export const SITE = join(TARGET, "site");
export const WIRE = join(TARGET, "debug/wire");
export const TOOLS = join(TARGET, "tools/site/node_modules");

/** Serves the book. `url` is where. The file `progress` is what is done of somebody's own program. */
export async function start(progress = undefined) {
  const below = "/some/course/";
  const server = await serve(SITE, 0, below, progress);
  return { url: `http://127.0.0.1:${server.address().port}${below}`, stop: () => { server.close(); server.closeAllConnections(); } };
}

/** The paths of all pages. */
export async function pages() {
  const files = await readdir(SITE, { recursive: true, withFileTypes: true });
  const paths = files.filter((file) => file.name.endsWith(".html")).map((file) => relative(SITE, join(file.path ?? file.parentPath, file.name)));
  // The list of chapters is a part of a page; what isn't found is shown at any path, with links from the server's root.
  return paths.filter((path) => !["toc.html", "404.html"].includes(path)).sort();
}
