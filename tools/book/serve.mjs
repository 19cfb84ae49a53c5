// Shows target/site to this machine alone: http://127.0.0.1:PORT, 3000 if no port is given. The tests use it, too.
import { createServer } from "node:http";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { extname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
  ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".txt": "text/plain; charset=utf-8",
  ".woff2": "font/woff2",
};

/** Serves a folder on the loopback interface, below the path `below`. Port 0 is any that is free. What is done of the learner's own
 * program is in the file `progress`, which the book asks for as progress.txt. */
export function serve(folder, port, below = "/", progress = undefined) {
  const root = resolve(folder);
  const server = createServer(async (request, response) => {
    try {
      const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
      if (path === `${below}progress.txt`) {
        response.writeHead(200, { "content-type": TYPES[".txt"] }).end(progress ? await readFile(progress).catch(() => "") : "");
        return;
      }
      let file = resolve(join(root, path.slice(below.length)));
      if (!path.startsWith(below) || !(file + sep).startsWith(root + sep)) throw new Error("outside");
      if ((await stat(file)).isDirectory()) file = join(file, "index.html");
      const { size } = await stat(file);
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream", "content-length": size });
      createReadStream(file).pipe(response);
    } catch {
      const page = await readFile(join(root, "404.html")).catch(() => "There is no such page.\n");
      response.writeHead(404, { "content-type": TYPES[".html"] }).end(page);
    }
  });
  return new Promise((ready, failed) => server.once("error", failed).listen(port, "127.0.0.1", () => ready(server)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, port] = [process.argv[2] ?? "target/site", Number(process.argv[3] ?? 3000)];
  try {
    const server = await serve(folder, port, "/", "mine/.steps");
    console.log(`http://127.0.0.1:${server.address().port}/ until Ctrl-C`);
  } catch (error) {
    console.error(error.code === "EADDRINUSE" ? `port ${port} is taken: make serve PORT=another` : error.message);
    process.exit(1);
  }
}
