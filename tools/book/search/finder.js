// The book's search: which part of which page a text is about. The text may be a word, a question, or a whole line as a program
// has printed it, with its addresses and numbers. It knows nothing of a document, so a test runs it without a browser.
globalThis.bookFinder = (() => {
  "use strict";

  /** How much more a word counts in a heading, or in what a program prints, than in the text around it. */
  const HEADING = 4;
  /** How much more a code counts than a word: it's what differs between lines that one program prints. */
  const CODED = 3;
  /** How much more an error's own page, and a term's own entry, count than pages that mention them. */
  const KINDS = { error: 1.6, term: 1, page: 1 };
  /** Nobody types more words than this; of what is pasted the first ones will do. */
  const MOST_WORDS = 60;

  const COMMON = new Set("a an and are as at be by for from in is it of on or that the this to was what which with how why do does did i my".split(" "));

  /** A number that says how something ended: behind one of these words, or in brackets behind a word. */
  const CODE = /(?:\b(?:status|error|errno|err|code|failed|with|returned|return|number|state|syndrome?|synd|vend)\b["']?\s*(?:number|code|with|error|status)?\s*[:=(\[#]?\s*|[a-z][.:]?\s*[(\[])(-?(?:0x[0-9a-f]{1,2}|\d{1,3}))(?![\w.:])/g;
  /** What differs on each machine and in each run: places in sources, addresses, times, numbers, names with a number. */
  const NOISE = /[\w./-]+\.(?:c|cc|cpp|cu|cuh|h|hpp|inl|py|rs|go)\b(?::\d+)?|\b(?:[\da-f]{0,4}:){3,}[\da-f.:]+|\b\d{1,3}(?:\.\d{1,3}){3}\b|\b0x[\da-f]+\b|\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b|\b[a-z]*\d[\w-]*\d\b/g;

  /** The words of a text, in its order, as they're compared: without endings, and each code as `#12`. */
  function words(text) {
    const lower = text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().replace(/’/g, "'");
    const codes = [...lower.matchAll(CODE)].map(([, code]) => `#${Math.abs(Number(code.replace("-", "")))}`).filter((code) => code !== "#0");
    const plain = lower.replace(NOISE, " ").match(/[\p{L}_][\p{L}\d_']*/gu) ?? [];
    return [...plain.flatMap(apart).map(stem), ...codes];
  }

  /** A name of several words counts as itself, and as each of them. */
  function apart(word) {
    const name = word.replace(/^_+|[_']+$/g, "");
    return name.includes("_") ? [name, ...name.split("_").filter((piece) => /^[a-z]{2,}$/.test(piece))] : [name];
  }

  function stem(word) {
    if (word.length < 4 || word.includes("_")) return word;
    return word.replace(/'s$/, "").replace(/(?<=[a-z]{3})(?:ing|ed|es|s)$/, "").replace(/(?<=[a-z]{3})e$/, "");
  }

  /** Words that stand side by side say more than each of them alone. */
  const pairs = (list) => list.slice(1).map((word, at) => `${list[at]} ${word}`).filter((pair) => !pair.includes("#"));
  const telling = (list) => list.filter((word) => !COMMON.has(word));

  class Finder {
    #parts;
    #entries = [];
    #postings = new Map();
    #length = 0;

    constructor(parts) { this.#parts = parts; }

    /** Reads a few parts more, and says whether all are read. So a page stays quick while the search gets ready. */
    read(many = Infinity) {
      const end = Math.min(this.#parts.length, this.#entries.length + many);
      while (this.#entries.length < end) this.#add(this.#parts[this.#entries.length]);
      return end === this.#parts.length;
    }

    #add(part) {
      const counts = new Map();
      const count = (list, weight) => list.forEach((word) => counts.set(word, (counts.get(word) ?? 0) + weight));
      const headings = [part.title.at(-1), ...part.said].map((line) => telling(words(line)));
      for (const line of headings) count(line, HEADING), count(pairs(line), HEADING);
      count(telling(words(part.title.slice(0, -1).join(" "))), 1);
      for (const line of part.body) count(telling(words(line)), 1);
      const length = [...counts.values()].reduce((sum, many) => sum + many, 0);
      const id = this.#entries.push({ part, length, names: headings.map((line) => line.join(" ")) }) - 1;
      this.#length += length;
      for (const [word, many] of counts) {
        if (!this.#postings.has(word)) this.#postings.set(word, []);
        this.#postings.get(word).push(id, many);
      }
    }

    /** The pages that a text is about, the best first: of each, the part that fits best. `instead` is what it was taken for. */
    find(text, most = 20) {
      const all = telling(words(text.slice(0, 2000))).slice(0, MOST_WORDS);
      const known = this.#rank(all, most);
      if (known.length) return { found: known, words: all, instead: "" };
      const near = all.map((word) => this.#near(word));
      const found = near.some(Boolean) ? this.#rank(near.filter(Boolean), most) : [];
      return { found, words: near.filter(Boolean), instead: near.filter(Boolean).join(" ") };
    }

    #rank(list, most) {
      const average = this.#length / this.#entries.length;
      const scores = new Map();
      const add = (word, share) => {
        const posting = this.#postings.get(word) ?? [];
        const rare = Math.log(1 + (this.#entries.length - posting.length / 2 + 0.5) / (posting.length / 2 + 0.5));
        for (let at = 0; at < posting.length; at += 2) {
          const { length } = this.#entries[posting[at]];
          const often = posting[at + 1] / (posting[at + 1] + 1.2 * (0.25 + 0.75 * length / average));
          scores.set(posting[at], (scores.get(posting[at]) ?? 0) + share * rare * often);
        }
      };
      for (const word of new Set([...list, ...pairs(list)])) add(word, word.startsWith("#") ? CODED : 1);
      // The word that is being typed may be the begin of one.
      const last = list.at(-1) ?? "";
      if (last.length > 2 && !this.#postings.has(last)) this.#begun(last).forEach((word) => add(word, 0.5));
      const query = list.join(" ");
      const best = new Map();
      for (const [id, score] of scores) {
        const { part, names } = this.#entries[id];
        const whole = part.kind !== "page" && names.includes(query) ? 4 : 1;
        const rank = score * KINDS[part.kind] * whole;
        const page = part.url.split("#")[0];
        if (rank > (best.get(page)?.rank ?? 0)) best.set(page, { part, rank });
      }
      return [...best.values()].sort((one, other) => other.rank - one.rank).slice(0, most).map(({ part }) => part);
    }

    #begun(start) {
      return [...this.#postings.keys()].filter((word) => word.startsWith(start) && !word.includes(" ")).slice(0, 20);
    }

    /** A word of the book that's written nearly so. */
    #near(word) {
      if (this.#postings.has(word)) return word;
      if (!/^[a-z_]{3,}/.test(word)) return "";
      let [best, least] = ["", word.length > 5 ? 3 : 2];
      for (const [known, posting] of this.#postings) {
        if (![word[0], word[1]].includes(known[0]) || known.includes(" ") || Math.abs(known.length - word.length) >= least) continue;
        const far = distance(word, known) - Math.min(posting.length, 500) / 1000;
        if (far < least) [best, least] = [known, far];
      }
      return best;
    }
  }

  /** How many letters are to be added, left out, changed, or swapped with the next one. */
  function distance(one, other) {
    let [before, row] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)];
    for (let at = 1; at <= one.length; at++) {
      const next = [at];
      for (let to = 1; to <= other.length; to++) {
        const change = row[to - 1] + (one[at - 1] === other[to - 1] ? 0 : 1);
        next[to] = Math.min(row[to] + 1, next[to - 1] + 1, change);
        if (at > 1 && to > 1 && one[at - 1] === other[to - 2] && one[at - 2] === other[to - 1]) next[to] = Math.min(next[to], before[to - 2] + 1);
      }
      [before, row] = [row, next];
    }
    return row[other.length];
  }

  return { Finder, words };
})();
