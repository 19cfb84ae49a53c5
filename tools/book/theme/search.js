// The search's place on each page. What it finds is the business of search/finder.js, which comes with its index when somebody
// opens the search.
(() => {
  "use strict";
  const $ = (name) => document.getElementById(`mdbook-${name}`);
  const [wrap, outer, bar, toggle] = ["search-wrapper", "searchbar-outer", "searchbar", "search-toggle"].map($);
  const [box, header, list] = ["searchresults-outer", "searchresults-header", "searchresults"].map($);
  if (!wrap) return;

  /** Whoever types makes no pause this long, in ms. */
  const PAUSE = 120;
  /** Parts of the book that are read at a stretch: a few milliseconds. */
  const AT_ONCE = 12;

  const hasFocus = () => document.activeElement === bar;
  // mdBook's keys ask for it.
  window.search = { hasFocus };

  // mdBook's page names a header that it doesn't have. A screen reader says how many pages were found.
  bar.setAttribute("aria-describedby", header.id);
  header.setAttribute("role", "status");

  let ready, timer, shown;

  /** The search, once it has read its index: bit by bit, so that nothing on the page waits for it. */
  const finder = () => ready ??= (async () => {
    outer.classList.add("searching");
    await Promise.all(["search/finder.js", "search/index.js"].map(script));
    const made = new globalThis.bookFinder.Finder(globalThis.bookIndex);
    while (!made.read(AT_ONCE)) await new Promise((done) => setTimeout(done));
    outer.classList.remove("searching");
    return made;
  })();

  function script(path) {
    return new Promise((loaded, failed) => {
      const element = document.createElement("script");
      element.src = path_to_root + path;
      element.onload = loaded;
      element.onerror = () => failed(new Error(`${path} cannot be loaded`));
      document.head.append(element);
    });
  }

  function open(text) {
    wrap.classList.remove("hidden");
    toggle.setAttribute("aria-expanded", "true");
    if (text !== undefined) bar.value = text;
    scrollTo(0, 0);
    bar.focus();
    bar.select();
    look();
  }

  function close() {
    wrap.classList.add("hidden");
    toggle.setAttribute("aria-expanded", "false");
    if (hasFocus()) bar.blur();
    address("");
  }

  /** Keeps what is searched in the address, so that one comes back to it from a page that was found. */
  function address(text) {
    const url = new URL(location.href);
    if (text === (url.searchParams.get("search") ?? "")) return;
    if (text) url.searchParams.set("search", text);
    else url.searchParams.delete("search");
    history.replaceState(history.state, "", url);
  }

  async function look() {
    const text = bar.value.trim();
    const found = text && (await finder()).find(text);
    // Meanwhile somebody may have typed on.
    if (text !== bar.value.trim() || text === shown) return;
    shown = text;
    bar.classList.toggle("active", text !== "");
    box.classList.toggle("hidden", text === "");
    address(text);
    list.replaceChildren(...(found ? (found.found.length ? found.found.map((part) => result(part, found.words)) : elsewhere(text)) : []));
    header.textContent = found ? said(text, found) : "";
  }

  function said(text, { found, instead }) {
    const short = text.length > 60 ? `${text.slice(0, 60)}…` : text;
    if (!found.length) return `Nothing found for “${short}”.${/[^\u0000-\u024f\u2000-\u2fff]/.test(text) ? " This book is in English, and so is its search." : ""} These lists may help:`;
    return instead ? `Nothing has “${short}”. This is what there is for “${instead}”:` : `${found.length} pages for “${short}”, the best first:`;
  }

  /** Where to look if the search finds nothing. */
  const elsewhere = () => [
    ["docs/errors/index.html", "Errors, by their text", "Each error that the book explains, as programs print it."],
    ["docs/glossary.html", "Glossary", "Each term once, in plain words."],
    ["docs/troubleshooting.html", "Troubleshooting", "Symptoms without a text."],
    ["docs/explain.html", "What went wrong?", "Drop a capture there, and it's explained."],
  ].map(([url, title, body]) => item(url, title, [body]));

  const result = ({ url, title, said, body }, words) => item(url, title.join(" » "), teaser([...said, ...body], words), words);

  function item(url, title, pieces, words = []) {
    const [place, link, text] = ["li", "a", "span"].map((tag) => document.createElement(tag));
    const [page, part] = url.split("#");
    const marked = words.length ? `?highlight=${encodeURIComponent(words.slice(0, 12).join(" "))}` : "";
    link.href = `${path_to_root}${page}${marked}${part ? `#${part}` : ""}`;
    link.textContent = title;
    text.className = "teaser";
    text.append(...pieces);
    place.append(link, text);
    return place;
  }

  /** The paragraph with most of the words, cut to some lines, with these words marked. */
  function teaser(paragraphs, words) {
    const wanted = new Set(words);
    const is = (word) => bookFinder.words(word).some((stem) => wanted.has(stem));
    const hits = (text) => new Set(bookFinder.words(text.slice(0, 600)).filter((word) => wanted.has(word))).size;
    const most = paragraphs.slice(0, 40).reduce((best, text) => { const many = hits(text); return many > best.many ? { many, text } : best; }, { many: -1, text: "" });
    const all = most.text.split(/(\s+)/);
    const first = Math.max(0, all.findIndex(is) - 12);
    const cut = all.slice(first, first + 70);
    const pieces = cut.map((word) => {
      if (!word.trim() || !is(word)) return word;
      const mark = document.createElement("em");
      mark.textContent = word;
      return mark;
    });
    return [first ? "… " : "", ...pieces, first + 70 < all.length ? " …" : ""];
  }

  /** Marks the words that led to this page, where a browser can do so without changing it. */
  function mark(words) {
    if (!globalThis.Highlight || !words.length) return;
    const [ranges, texts] = [[], document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT)];
    const wanted = new RegExp(words.map((word) => word.replace(/\W/g, "\\$&")).join("|"), "gi");
    while (texts.nextNode()) {
      for (const { 0: word, index } of texts.currentNode.data.matchAll(wanted)) {
        const range = new Range();
        range.setStart(texts.currentNode, index);
        range.setEnd(texts.currentNode, index + word.length);
        ranges.push(range);
      }
    }
    CSS.highlights.set("searched", new Highlight(...ranges));
  }

  const unmark = () => globalThis.Highlight && CSS.highlights.delete("searched");

  /** Goes up and down in what was found. */
  function move(step) {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement) + step;
    if (at < 0) bar.focus();
    else links[Math.min(at, links.length - 1)]?.focus();
  }

  toggle.addEventListener("click", () => (wrap.classList.contains("hidden") ? open() : close()));
  outer.addEventListener("submit", (event) => event.preventDefault());
  bar.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  });
  wrap.addEventListener("keydown", async (event) => {
    const { key } = event;
    if (event.altKey || event.ctrlKey || event.metaKey || !["Escape", "ArrowDown", "ArrowUp", "Enter"].includes(key)) return;
    if (key === "Enter" && !hasFocus()) return;
    event.preventDefault();
    event.stopPropagation();
    if (key === "Escape") close();
    else if (key !== "Enter") move(key === "ArrowDown" ? 1 : -1);
    else {
      clearTimeout(timer);
      await look();
      list.querySelector("a")?.click();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (event.key === "Escape") unmark();
    if (event.key !== "s" && event.key !== "/") return;
    event.preventDefault();
    open();
  });

  const asked = new URLSearchParams(location.search);
  if (asked.get("search")) open(asked.get("search"));
  mark((asked.get("highlight") ?? "").split(" ").filter((word) => /^[a-z_]{3,}/.test(word)));
})();
