// Wireshark in the page: opens a bundled run, or a capture that is dropped here. Nothing is sent anywhere.
//
// Wiregasm (GPL-2.0, see the page) is loaded with the first capture: wiregasm.js makes the function loadWiregasm, and the
// program and its data lie beside it, compressed.
(() => {
  "use strict";

  const PROFILE = ["preferences", "colorfilters", "hosts", "heuristic_protos"];
  const SYSTEM = "/wireshark";
  const PERSONAL = "/home/web_user/.config/wireshark";
  /** So many entries are listed; who has more of them filters. */
  const MOST = 2000;

  /** What Wireshark says (wiretap/wtap.h) of a file whose first packets are good. */
  const CUT = { "-12": "the file ends inside a packet", "-13": "the file is damaged" };

  const { make, takes } = ownCapture;
  const element = document.getElementById("wireshark");
  const folder = document.currentScript.src.replace(/[^/]*$/, "");
  let engine;
  let session;
  /** The bundled run that is open, if it is one. */
  let bundled = "";

  const runs = make("select", { id: "ws-run" });
  const open = make("button", { type: "button", class: "primary" }, "Open in Wireshark");
  const file = make("input", { type: "file", id: "ws-file", accept: ".pcapng,.pcap,.cap" });
  const status = make("p", { role: "status" });
  const filter = make("input", { id: "ws-filter", type: "search", spellcheck: "false", placeholder: "infiniband.bth.opcode == 10" });
  const buttons = make("p", { class: "ws-buttons" });
  const list = wireshark.list(select);
  const packet = wireshark.packet();
  const shown = make("div", { hidden: "" },
    make("p", {}, make("label", { for: "ws-filter" }, "Display filter "), filter), buttons, list.element, packet.element);
  element.replaceChildren(
    make("p", {}, make("label", { for: "ws-run" }, "A recorded run: "), runs, " ", open),
    make("p", { class: "ws-drop" }, make("label", { for: "ws-file" }, "Or your own capture, dropped here: "), file),
    status, shown);

  async function bytes(path) {
    const response = await fetch(folder + path);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`);
    const whole = new Uint8Array(await response.arrayBuffer());
    // Some servers say that the file is compressed, and then the browser has unpacked it already.
    if (whole[0] !== 0x1f || whole[1] !== 0x8b) return whole;
    const stream = new Blob([whole]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  function script(path) {
    return new Promise((loaded, failed) => {
      const element = make("script", { src: folder + path });
      element.onload = loaded;
      element.onerror = () => failed(new Error(`${path} cannot be loaded`));
      document.head.append(element);
    });
  }

  /** Starts the program, once. */
  async function start() {
    if (engine) return engine;
    status.textContent = "Loading Wireshark: 20 MB …";
    const [wasmBinary, data, , ...profile] = await Promise.all([
      bytes("wiregasm.wasm.gz"), bytes("wiregasm.data.gz"), script("wiregasm.js"),
      ...PROFILE.map((name) => bytes(`profile/${name}`)),
    ]);
    status.textContent = "Starting Wireshark …";
    const quiet = () => {};
    const made = await loadWiregasm({
      wasmBinary, getPreloadedPackage: () => data.buffer, print: quiet, printErr: quiet, handleStatus: quiet,
    });
    // The program looks for preferences and colours in the one folder, and for names of hosts in the other.
    made.FS.mkdirTree(PERSONAL);
    for (const folder of [SYSTEM, PERSONAL]) PROFILE.forEach((name, at) => made.FS.writeFile(`${folder}/${name}`, profile[at]));
    if (!made.init()) throw new Error("Wireshark does not start");
    engine = made;
    return engine;
  }

  /** Shows a capture: its name, and what brings its bytes. */
  async function show(name, content, frame) {
    open.disabled = file.disabled = true;
    try {
      const program = await start();
      status.textContent = `Opening ${name} …`;
      session?.delete();
      session = undefined;
      shown.hidden = true;
      program.FS.writeFile("/uploads/capture", await content());
      const opened = new program.DissectSession("/uploads/capture");
      const { code, error, summary } = opened.load();
      const cut = summary.packet_count > 0 ? CUT[code] : undefined;
      if (code !== 0 && !cut) throw new Error(`Wireshark cannot read ${name}: ${error || CUT[code] || "it is no capture"}`);
      session = opened;
      list.columns(wireshark.array(program.getColumns()));
      filter.value = "";
      shown.hidden = false;
      fill(`${name}: ${summary.packet_count} packets and log lines.${cut ? ` This is what came before: ${cut}.` : ""}`, frame);
    } catch (error) {
      const fromFolder = location.protocol === "file:" ? " A page from a folder may load no files: see below." : "";
      status.textContent = `${error.message ?? error}.${fromFolder}`;
    } finally {
      open.disabled = file.disabled = false;
    }
  }

  /** Lists what the display filter lets through. */
  function fill(said, frame) {
    const text = filter.value.trim();
    const { ok = true, error = "" } = text ? engine.checkFilter(text) : {};
    filter.setAttribute("aria-invalid", String(!ok));
    if (!ok) {
      status.textContent = `No display filter: ${error}`;
      return;
    }
    const { frames, matched } = session.getFrames(text, 0, MOST);
    const left = matched > MOST ? ` The first ${MOST} are listed: a filter shows others.` : "";
    status.textContent = `${said ?? `${matched} match the filter.`}${left}`;
    list.fill(wireshark.array(frames), frame);
  }

  /** Opens one entry of the list. */
  function select(number) {
    packet.show(session.getFrame(number));
    if (bundled) history.replaceState(null, "", `#run=${bundled}&frame=${number}`);
  }

  function own(capture) {
    bundled = "";
    show(wireshark.plain(capture.name), async () => new Uint8Array(await capture.arrayBuffer()));
  }

  open.addEventListener("click", () => {
    const frame = runs.value === wanted.get("run") ? Number(wanted.get("frame")) : undefined;
    bundled = runs.value;
    show(`${bundled}.pcapng`, () => bytes(`../captures/${bundled}.pcapng`), frame);
  });
  takes(element, file, own);
  filter.addEventListener("change", () => fill());
  for (const name of wireshark.runs) runs.append(make("option", { value: name }, name));
  for (const [name, expression] of wireshark.filters) {
    const button = make("button", { type: "button", title: expression }, name);
    button.addEventListener("click", () => {
      filter.value = filter.value === expression ? "" : expression;
      fill();
    });
    buttons.append(button);
  }
  const wanted = new URLSearchParams(location.hash.slice(1));
  runs.value = wireshark.runs.includes(wanted.get("run")) ? wanted.get("run") : "04_rdma_write";
})();
