// What the book adds to mdBook's pages. The players are classic scripts, for a browser lets a page from a folder load no modules.
(() => {
  "use strict";

  // What is wider than its box can be scrolled, also with the keyboard; and a drawing says so, since half an arrow looks whole.
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) target.classList.toggle("wide", target.scrollWidth > target.clientWidth);
  });
  for (const box of document.querySelectorAll("main pre, main .table-wrapper, main p:has(> label > img[src$='.svg']:not([src*='/idea_']))")) {
    box.tabIndex = 0;
    if (box.matches("p")) sized.observe(box);
  }

  // A label that opens the list of chapters has to be a button, and one that keys reach.
  const toggle = document.getElementById("mdbook-sidebar-toggle");
  toggle.setAttribute("role", "button");
  toggle.tabIndex = 0;
  toggle.addEventListener("keydown", (event) => {
    if (![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    toggle.click();
  });

  // mdBook scrolls the list of chapters. Where the browser takes that for the place from which Tab goes on (Chromium 148 does),
  // the link that skips the list would not be the first one.
  if (!location.hash) {
    document.body.tabIndex = -1;
    document.body.focus({ preventScroll: true });
    document.body.blur();
    document.body.removeAttribute("tabindex");
  }

  // Where a page speaks of more than one language, it shows the reader's, and the book remembers which one that is. A page that
  // is opened from a folder may have no memory: then it's Rust each time.
  const LANGUAGES = { rust: "Rust", c: "C", python: "Python" };
  const remembered = {
    get: () => { try { return localStorage.getItem("course-language"); } catch { return null; } },
    set: (language) => { try { localStorage.setItem("course-language", language); } catch { /* for this page only */ } },
  };

  /** What's about one language alone, each with that: paragraphs and hints, columns of calls, and what's folded below quotations. */
  function* parts() {
    const about = (text) => Object.keys(LANGUAGES).find((language) => text.startsWith(`In ${LANGUAGES[language]}, `));
    if (location.pathname.includes("/steps/")) {
      for (const part of document.querySelectorAll("main p, main li")) {
        if (about(part.textContent.trimStart())) yield [part, about(part.textContent.trimStart())];
      }
      for (const table of document.querySelectorAll("main table")) {
        if ([...table.rows[0].cells].slice(0, 2).map((cell) => cell.textContent.trim()).join() !== "C,common") continue;
        // The names in C stay, because man pages and logs use them.
        for (const row of table.rows) yield* [[row.cells[1], "rust"], [row.cells[2], "python"]];
      }
    }
    // A lesson's program is in Rust, and so is what its page quotes; below it is the like in the reader's language.
    for (const tab of document.querySelectorAll("main details.tab")) {
      const name = tab.querySelector("summary").textContent.replace("In ", "");
      yield [tab, Object.keys(LANGUAGES).find((language) => LANGUAGES[language] === name)];
    }
  }

  const place = document.querySelector(".languages");
  if (place) {
    const all = [...parts()];
    const show = (chosen) => { for (const [part, language] of all) part.classList.toggle("others", language !== chosen); };
    const box = document.createElement("fieldset");
    box.append(Object.assign(document.createElement("legend"), { textContent: "Your language" }));
    const known = Object.hasOwn(LANGUAGES, remembered.get() ?? "") ? remembered.get() : "rust";
    for (const [value, name] of Object.entries(LANGUAGES)) {
      const [label, button] = [document.createElement("label"), document.createElement("input")];
      Object.assign(button, { type: "radio", name: "language", value, checked: value === known });
      button.addEventListener("change", () => { remembered.set(value); show(value); });
      label.append(button, ` ${name}`);
      box.append(label);
    }
    // The arrows that change it are not for turning the book's pages.
    box.addEventListener("keydown", (event) => event.stopPropagation());
    place.append(box);
    show(known);
  }

  // Nobody unfolds paper.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("main details:not([open])")];
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
  });

  const scripts = new Map();

  /** Loads a script of the book, once. */
  function script(path) {
    if (!scripts.has(path)) {
      scripts.set(path, new Promise((loaded, failed) => {
        const element = document.createElement("script");
        element.src = path_to_root + path;
        element.onload = loaded;
        element.onerror = () => failed(new Error(`${path} cannot be loaded`));
        document.head.append(element);
      }));
    }
    return scripts.get(path);
  }

  /** Puts the player in the place of the ladder, which is still there on paper. */
  async function play(element, first) {
    const name = element.dataset.run;
    try {
      if (!/^(\w+\/)?[\w-]+$/.test(name)) throw new Error("a run's name has letters, digits, - and _, and perhaps a folder in front");
      await Promise.all([script("player/player.js"), script(`player/runs/${name}.js`)]);
    } catch (error) {
      // A link to a run that was renamed, or one that was mistyped: another run in its place would only mislead.
      const what = document.createElement("p");
      what.setAttribute("role", "alert");
      what.textContent = `There is no recorded run “${name}” here (${error.message}). The runs that there are, are in the list on this page.`;
      element.replaceChildren(what);
      return;
    }
    const [ladder, stage, beside, link] = ["div", "div", "p", "a"].map((tag) => document.createElement(tag));
    ladder.className = "ladder";
    ladder.append(...element.childNodes);
    link.href = `${path_to_root}wireshark.html#run=${name}`;
    link.textContent = "Open this run in Wireshark, here";
    beside.append(link, " (it loads 20 MB when you ask for it)");
    element.replaceChildren(stage, beside, ladder);
    element.classList.add("playing");
    // The first of a page is the one that the address speaks of.
    player.mount(stage, player.runs[name], { link: first });
  }

  /** Puts a workbench into its place: two NICs that can be touched. It's loaded only by a page that has one, once it comes into view. */
  async function work(element) {
    const look = document.createElement("link");
    Object.assign(look, { rel: "stylesheet", href: `${path_to_root}workbench/workbench.css` });
    const styled = new Promise((loaded) => { look.onload = look.onerror = loaded; });
    if (!document.head.querySelector(`link[href="${look.getAttribute("href")}"]`)) document.head.append(look);
    else look.onload();
    try {
      await script("player/player.js");
      await Promise.all([script("workbench/workbench.js"), script("workbench/program.js"), styled]);
      await workbench.mount(element);
      element.classList.add("playing");
    } catch (error) {
      element.textContent = `The workbench isn't in this copy of the book (${error.message}).`;
    }
  }

  // Whoever has predicted what a change does plays its run beside the good one.
  for (const place of document.querySelectorAll(".beside")) {
    const { run, good } = place.dataset;
    const button = document.createElement("button");
    button.textContent = "I have my answer: play it beside the good run";
    button.addEventListener("click", async () => {
      await Promise.all(["player", `runs/${run}`, `runs/${good}`].map((name) => script(`player/${name}.js`)));
      place.classList.add("playing");
      player.mountBeside(place, player.runs[good], player.runs[run]);
      place.querySelector(".rp-play").focus({ preventScroll: true });
    });
    place.replaceChildren(button);
    place.addEventListener("keydown", (event) => event.stopPropagation());
  }

  // `make serve` knows which steps the learner's own program has done. On a public site nobody does, and nothing is asked.
  async function progress() {
    const answer = await fetch(`${path_to_root}progress.txt`);
    if (!answer.ok) return;
    const done = new Set((await answer.text()).split("\n").filter((line) => line.startsWith("done ")).map((line) => line.slice(5)));
    for (const link of document.querySelectorAll("#mdbook-sidebar a[href*='/steps/']")) {
      const [, lesson, step] = link.href.match(/lessons\/(\d\d)_\w+\/steps\/([\w-]+)\.html/) ?? [];
      if (done.has(`${lesson}-${step}`)) link.append(" ✓");
    }
  }
  // The page that reads captures may ask nobody.
  if (["127.0.0.1", "localhost"].includes(location.hostname) && !document.getElementById("explain")) progress();

  const runs = [...document.querySelectorAll(".run[data-run]")];
  const wanted = new URLSearchParams(location.search).get("run");
  if (wanted && runs.length) runs[0].dataset.run = wanted;
  const seen = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      seen.unobserve(target);
      if (target.matches(".workbench")) work(target);
      else play(target, target === runs[0]);
    }
  }, { rootMargin: "400px" });
  for (const run of runs) {
    // The arrows that the player took are not for turning the book's pages.
    run.addEventListener("keydown", (event) => event.stopPropagation());
    seen.observe(run);
  }
  for (const bench of document.querySelectorAll(".workbench")) seen.observe(bench);
  if (location.hash.startsWith("#frame=")) runs[0]?.scrollIntoView();
  // Whoever follows a link with a script wants to see it run.
  if (/^#(script|challenge)=/.test(location.hash)) document.querySelector(".workbench")?.scrollIntoView();
})();
