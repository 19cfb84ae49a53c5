// The two NICs, as a program in the page: tools/workbench/src/browser.rs, compiled to WebAssembly. program.js, which `make site`
// writes, holds it packed and as text, because a page from a folder may load scripts alone.

export class Core {
  /** Unpacks and compiles the program, once per page. */
  static async load() {
    const packed = Uint8Array.from(atob(globalThis.workbenchProgram), (char) => char.charCodeAt(0));
    const bytes = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Core(await WebAssembly.compile(await new Response(bytes).arrayBuffer()));
  }

  constructor(program) {
    this.program = program;
  }

  /** What a function of the program answers. Each call gets a program of its own, whose memory goes with it. */
  async bytes(name, request) {
    const { exports } = await WebAssembly.instantiate(this.program);
    const asked = new TextEncoder().encode(JSON.stringify(request));
    const at = exports.allocate(asked.length) >>> 0;
    new Uint8Array(exports.memory.buffer, at, asked.length).set(asked);
    const answer = exports[name](at, asked.length) >>> 0;
    const length = new DataView(exports.memory.buffer).getUint32(answer, true);
    return new Uint8Array(exports.memory.buffer, answer + 4, length);
  }

  async ask(name, request) {
    return JSON.parse(new TextDecoder().decode(await this.bytes(name, request)));
  }

  /** Runs a script from its first line to its last. */
  run(script, challenge) { return this.ask("run", { script, challenge }); }

  /** The run as a pcapng file. */
  file(script, challenge) { return this.bytes("file", { script, challenge }); }

  challenges() { return this.ask("challenges", {}); }
}
