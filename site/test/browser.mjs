// A headless Chromium, driven over WebDriver; and a server of files, on the loopback alone.

import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { once } from "node:events";

/** Serves the files below a folder; `address` is where. */
export async function serve(folder) {
  const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".svg": "image/svg+xml" };
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
    try {
      const body = await readFile(join(folder, path.endsWith("/") ? path + "index.html" : path));
      response.writeHead(200, { "content-type": types[extname(path)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { address: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** Starts chromedriver and with it a browser. `features` are those that the browser claims, as prefers-color-scheme. */
export async function browser() {
  const driver = spawn("chromedriver", ["--port=0"], { stdio: ["ignore", "pipe", "inherit"] });
  const port = await new Promise((resolve, reject) => {
    let said = "";
    driver.on("error", (error) => reject(new Error(`chromedriver does not start (${error.message}): install chromium-driver`)));
    driver.on("exit", () => reject(new Error(`chromedriver ended: ${said}`)));
    driver.stdout.on("data", (text) => {
      said += text;
      const port = /successfully on port (\d+)/.exec(said)?.[1];
      if (port) resolve(port);
    });
  });
  const call = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body) });
    const { value } = await response.json();
    if (value?.error) throw new Error(`${path}: ${value.message.split("\n")[0]}`);
    return value;
  };
  const options = { args: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"] };
  const capabilities = { alwaysMatch: { "goog:chromeOptions": options, "goog:loggingPrefs": { browser: "ALL" } } };
  const { sessionId } = await call("POST", "/session", { capabilities });
  const session = (method, path, body) => call(method, `/session/${sessionId}${path}`, body);
  const devtools = (cmd, params = {}) => session("POST", "/goog/cdp/execute", { cmd, params });
  return {
    devtools,
    goto: (url) => session("POST", "/url", { url }),
    /** Runs a function in the page. */
    run: (script, ...args) => session("POST", "/execute/sync", { script: `return (${script}).apply(null, arguments)`, args }),
    /** Presses a key where the focus is; names as `ArrowRight` are those of WebDriver. */
    press: (...keys) => {
      const codes = { ArrowLeft: "\uE012", ArrowUp: "\uE013", ArrowRight: "\uE014", ArrowDown: "\uE015", Home: "\uE011", End: "\uE010", Tab: "\uE004", Enter: "\uE007" };
      const actions = keys.flatMap((key) => ["keyDown", "keyUp"].map((type) => ({ type, value: codes[key] ?? key })));
      return session("POST", "/actions", { actions: [{ type: "key", id: "keys", actions }] });
    },
    /** The size of the page in CSS pixels. */
    size: (width, height) => devtools("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 }),
    prefer: (features) => devtools("Emulation.setEmulatedMedia", { features: Object.entries(features).map(([name, value]) => ({ name, value })) }),
    scripts: (on) => devtools("Emulation.setScriptExecutionDisabled", { value: !on }),
    /** What the console said since the last time, of errors and warnings. */
    complaints: async () => (await session("POST", "/se/log", { type: "browser" })).filter((entry) => entry.level !== "INFO"),
    screenshot: async () => Buffer.from(await session("GET", "/screenshot"), "base64"),
    close: async () => {
      await session("DELETE", "").catch(() => {});
      driver.removeAllListeners("exit");
      driver.kill();
    },
  };
}
