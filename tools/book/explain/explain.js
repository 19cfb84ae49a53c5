// `wire explain` in the page: reads a capture, says what went wrong in it, and plays it. Nothing is sent anywhere.
//
// The program is tools/wire/src/browser.rs as WebAssembly; program.js, which `make site` writes, holds it as text, for a page from
// a folder may load scripts alone. What a capture says is shown as text, and only as text.
(() => {
  "use strict";

  /** A program in a page has 4 GB of memory at the most, and browsers differ in how much of it they give. */
  const MOST = 1 << 30;
  /** A capture is copied piece by piece, through the same buffer: then it is in memory once. */
  const PIECE = 1 << 20;
  /** Of a capture with no more frames than this the player is ready at once. */
  const AT_ONCE = 20_000;

  const { make, takes } = ownCapture;
  const element = document.getElementById("explain");
  const file = make("input", { type: "file", id: "explain-file", accept: ".pcapng,.pcap,.cap,.gz,.zst,.lz4" });
  const status = make("p", { role: "status" });
  const told = make("div", { class: "told" });
  const stage = make("div", { class: "run playing", hidden: "" });
  element.replaceChildren(
    make("p", { class: "drop" }, make("label", { for: "explain-file" }, "A capture, chosen or dropped here: "), file),
    status, told, stage);

  /** The capture that is open: what the program says about it, and once it is played, the player. */
  let open;
  let isBusy = false;
  const compiled = WebAssembly.compile(Uint8Array.from(atob(explainer.program), (char) => char.charCodeAt(0)));

  /** The program, with the capture in its memory. The one before goes, and its memory with it. */
  async function load(capture) {
    if (capture.size > MOST) throw new Error("it is larger than 1 GB, too large for a page; on the command line: wire explain FILE");
    const { exports } = await WebAssembly.instantiate(await compiled);
    const at = exports.allocate(capture.size) >>> 0;
    // Not every browser can fill a buffer again.
    const again = "ReadableStreamBYOBReader" in globalThis;
    const reader = capture.stream().getReader(again ? { mode: "byob" } : {});
    let [buffer, from] = [new ArrayBuffer(PIECE), 0];
    for (;;) {
      const { value, done } = await (again ? reader.read(new Uint8Array(buffer)) : reader.read());
      if (done) break;
      new Uint8Array(exports.memory.buffer, at + from, value.length).set(value);
      [buffer, from] = [value.buffer, from + value.length];
    }
    /** What a function of the program says: a length, and JSON. */
    return (name) => {
      const answer = exports[name](at, capture.size) >>> 0;
      const length = new DataView(exports.memory.buffer).getUint32(answer, true);
      const said = JSON.parse(new TextDecoder().decode(new Uint8Array(exports.memory.buffer, answer + 4, length)));
      if (said.error) throw new Error(said.error);
      return said;
    };
  }

  /** Does something that takes a while, once the page shows what it is. */
  async function busy(name, what, act) {
    if (isBusy) return;
    isBusy = file.disabled = true;
    try {
      status.textContent = `${name}: ${what} …`;
      await new Promise((shown) => setTimeout(shown, 30));
      status.textContent = `${name}: ${await act()}`;
    } catch (error) {
      // The program has ended: it has no more memory, or a fault of its own.
      const ended = error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
      status.textContent = `${name}: ${ended ? "the program in this page has ended; on the command line there is more memory: wire explain FILE" : error.message}`;
    } finally {
      isBusy = file.disabled = false;
    }
  }

  /** A name without characters that say nothing, or turn text around. */
  const plain = (name) => name.replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "");

  const explain = (capture) => busy(plain(capture.name), "reading it", async () => {
    open = undefined;
    told.replaceChildren();
    stage.hidden = true;
    stage.replaceChildren();
    const ask = await load(capture);
    const said = ask("explain");
    open = { ask, name: plain(capture.name) };
    told.replaceChildren(...connections(said));
    if (said.frames <= AT_ONCE) {
      play();
      // Where packets tell nothing, a line of a program may.
      const [first] = said.connections;
      const frame = first?.findings[0]?.frames[0] ?? [first?.printed ?? [], said.printed].flat()[0]?.frame;
      if (frame) open.player?.goto(place(frame));
    }
    return `${said.packets} RDMA packets in ${said.frames} frames. ${said.verdict}`;
  });

  /** What is told, the gravest first. */
  function* connections(said) {
    for (const { number, heading, findings, nothing, printed } of said.connections) {
      yield make("section", {}, make("h3", {}, `Connection ${number}`), make("p", {}, `${heading}.`),
        ...findings.map(finding), ...(nothing ? [make("p", {}, nothing)] : []), ...printed.map(line));
    }
    yield* said.printed.map(line);
    if (said.more) yield make("p", {}, `${said.more} more connections: wire explain FILE --json has them all.`);
    for (const note of said.notes) yield make("p", { class: "note" }, `Note: ${note}.`);
    if (said.frames > AT_ONCE) {
      const button = make("button", { type: "button" }, "Play its beginning");
      button.addEventListener("click", () => busy(open.name, "reading it again", async () => play()));
      yield make("p", {}, button);
    }
  }

  /** A button that shows this frame, or line of a log, in the player. */
  function goes(number, words = number) {
    const button = make("button", { type: "button", title: `show frame ${number} in the player` }, words);
    button.addEventListener("click", () => (open.player ? show(number) : busy(open.name, "reading it again", async () => play(number))));
    return button;
  }

  /** What a line of a program tells. */
  const line = ({ sentence, frame }) => make("p", {}, `${sentence} `, goes(frame, `show line ${frame}`));

  function finding({ sentence, frames, often, fault, look, page, is_doubt }) {
    const numbers = frames.flatMap((number, at) => (at ? [", ", goes(number)] : [goes(number)]));
    const path = page.replace(/README\.md$/, "index.html").replace(/\.md$/, ".html");
    const title = document.querySelector(`#mdbook-sidebar a[href$="${path.replace(/#.*/, "")}"]`)?.textContent ?? page;
    const rows = [["fault", fault], ["look at", look], ["page", make("a", { href: path_to_root + path }, title)]];
    return make("div", { class: is_doubt ? "finding doubt" : "finding" },
      make("p", {}, `${sentence} (${frames.length === 1 ? "frame" : "frames"} `, ...numbers, `${often}).`),
      make("dl", {}, ...rows.flatMap(([name, what]) => [make("dt", {}, name), make("dd", {}, what)])));
  }

  /** Makes the player, and shows a frame in it. */
  function play(number) {
    if (!open.player) {
      const run = { ...open.ask("play"), title: open.name };
      stage.hidden = false;
      open.player = player.mount(stage, run, { link: false });
      open.events = run.events;
    }
    return number ? show(number) : "ready to be played.";
  }

  /** So many events have happened when a frame has. */
  const place = (number) => open.events.findLastIndex((event) => event.n <= number) + 1;

  function show(number) {
    const count = place(number);
    open.player?.goto(count);
    stage.scrollIntoView();
    const is = open.events[count - 1]?.n === number;
    const said = is ? `frame ${number}.` : `frame ${number} is behind what the player shows.`;
    status.textContent = `${open.name}: ${said}`;
    return said;
  }

  takes(element, file, explain);
  // The arrows that the player took are not for turning the book's pages.
  stage.addEventListener("keydown", (event) => event.stopPropagation());
})();
