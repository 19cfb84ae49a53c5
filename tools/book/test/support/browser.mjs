// A real Chromium, driven over WebDriver: no more of it than the tests need.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** So long a slow machine may take for anything that a page does. */
export const DEADLINE = 60_000;

export class Browser {
  /** Starts chromedriver on a port of its choice, and a browser without windows. */
  static async start() {
    const browser = new Browser();
    browser.folder = await mkdtemp(join(tmpdir(), "site-"));
    browser.driver = spawn("chromedriver", ["--port=0"], { stdio: ["ignore", "pipe", "ignore"] });
    const port = await browser.#port();
    browser.url = `http://127.0.0.1:${port}/session`;
    // Root, as in containers, has no sandbox; and some containers have next to no shared memory.
    const args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${browser.folder}`];
    const { sessionId } = await browser.#call("POST", "", { capabilities: { alwaysMatch: {
      browserName: "chrome", "goog:chromeOptions": { args }, "goog:loggingPrefs": { browser: "ALL" },
      timeouts: { script: DEADLINE, pageLoad: DEADLINE },
    } } });
    browser.url += `/${sessionId}`;
    return browser;
  }

  /** The port that chromedriver says it listens on. */
  #port() {
    return new Promise((found, failed) => {
      let said = "";
      const timer = setTimeout(() => failed(new Error(`chromedriver says no port: ${said}`)), DEADLINE);
      this.driver.once("error", (error) => failed(new Error(`${error.message}: Debian's package chromium-driver has it`)));
      this.driver.stdout.on("data", (piece) => {
        said += piece;
        const [, port] = /successfully on port (\d+)/.exec(said) ?? [];
        if (port) clearTimeout(timer), found(port);
      });
    });
  }

  async #call(method, path, body) {
    const response = await fetch(this.url + path, { method, body: body && JSON.stringify(body) });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${path || "new session"}: ${value.error}: ${value.message.split("\n")[0]}`);
    return value;
  }

  /** Opens a page. Chromedriver may answer while the page before is still there. */
  async open(url) {
    await this.#call("POST", "/url", { url });
    const { protocol, pathname } = new URL(url);
    await this.until((protocol, pathname) => location.protocol === protocol && location.pathname === pathname && document.readyState === "complete", protocol, pathname);
  }

  /** What a function returns in the page. It gets copies of the arguments, and may return a promise. */
  run(code, ...args) {
    const script = `return Promise.resolve((${code})(...arguments))`;
    return this.#call("POST", "/execute/sync", { script, args });
  }

  /** Waits until a function returns something in the page, and returns that. */
  async until(code, ...args) {
    const end = Date.now() + DEADLINE;
    for (;;) {
      const value = await this.run(code, ...args);
      if (value) return value;
      if (Date.now() > end) throw new Error(`waited ${DEADLINE / 1000} s in vain for ${code}`);
      await sleep(50);
    }
  }

  /**
   * What the console got since it was asked last, but for what isn't a complaint, or isn't about us: the page with which the browser itself
   * begins complains when we leave it while it's still loading.
   */
  async complaints() {
    const log = await this.#call("POST", "/se/log", { type: "browser" });
    const ours = log.filter(({ message }) => !message.startsWith("chrome://"));
    return ours.filter(({ level }) => level === "SEVERE" || level === "WARNING").map(({ message }) => message);
  }

  /** A command of the browser's own protocol. */
  devtools(cmd, params = {}) { return this.#call("POST", "/goog/cdp/execute", { cmd, params }); }

  size(width, height) {
    return this.devtools("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 700 });
  }

  theme(scheme, motion = "no-preference") {
    const wishes = { "prefers-color-scheme": scheme, "prefers-reduced-motion": motion };
    return this.devtools("Emulation.setEmulatedMedia", { features: Object.entries(wishes).map(([name, value]) => ({ name, value })) });
  }

  /** Presses keys, one after the other, where the focus is; `Shift+ArrowLeft` with the other one held. */
  press(...keys) {
    const codes = { ArrowLeft: "\uE012", ArrowUp: "\uE013", ArrowRight: "\uE014", ArrowDown: "\uE015", Home: "\uE011", End: "\uE010", Tab: "\uE004", Enter: "\uE007", Escape: "\uE00C" };
    const one = (key) => (key.startsWith("Shift+") ? [["keyDown", "\uE008"], ...one(key.slice(6)), ["keyUp", "\uE008"]] : [["keyDown", codes[key] ?? key], ["keyUp", codes[key] ?? key]]);
    const actions = keys.flatMap(one).map(([type, value]) => ({ type, value }));
    return this.#call("POST", "/actions", { actions: [{ type: "key", id: "keys", actions }] });
  }

  scripts(allowed) { return this.devtools("Emulation.setScriptExecutionDisabled", { value: !allowed }); }

  async screenshot() { return Buffer.from(await this.#call("GET", "/screenshot"), "base64"); }

  /** The element that a CSS selector names, as WebDriver wants it. */
  async #find(selector) {
    return Object.values(await this.#call("POST", "/element", { using: "css selector", value: selector }))[0];
  }

  async click(selector) { return this.#call("POST", `/element/${await this.#find(selector)}/click`, {}); }

  /** Types into an element, or names a file in an input for files. */
  async type(selector, text) { return this.#call("POST", `/element/${await this.#find(selector)}/value`, { text }); }

  async stop() {
    try {
      await this.#call("DELETE", "");
    } finally {
      const ended = once(this.driver, "exit");
      this.driver.kill();
      await ended;
      await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
    }
  }
}
