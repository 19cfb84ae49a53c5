// What the book adds to mdBook's pages. The players are classic scripts, for a browser lets a page from a folder load no modules.
(() => {
  "use strict";

  // Code that is wider than its box is scrolled, with the keyboard, too.
  for (const box of document.querySelectorAll("main pre, main .table-wrapper")) box.tabIndex = 0;
  // A label that says whether it has opened something has to be a button.
  document.getElementById("mdbook-sidebar-toggle")?.setAttribute("role", "button");

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

  /** Puts the player in the place of the ladder. The first of a page is the one that the address speaks of. */
  async function play(element, first) {
    const name = element.dataset.run;
    await Promise.all([script("player/player.js"), script(`player/runs/${name}.js`)]);
    element.classList.add("playing");
    player.mount(element, player.runs[name], { link: first });
    const beside = document.createElement("p");
    const link = document.createElement("a");
    link.href = `${path_to_root}wireshark.html#run=${name}`;
    link.textContent = "Open this run in Wireshark, here";
    beside.append(link, " (it loads 20 MB when you ask for it)");
    element.append(beside);
  }

  const runs = [...document.querySelectorAll(".run[data-run]")];
  const wanted = new URLSearchParams(location.search).get("run");
  if (wanted && /^[\w-]+$/.test(wanted) && runs.length) runs[0].dataset.run = wanted;
  const seen = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      seen.unobserve(target);
      play(target, target === runs[0]);
    }
  }, { rootMargin: "400px" });
  for (const run of runs) {
    // The arrows that the player took are not for turning the book's pages.
    run.addEventListener("keydown", (event) => event.stopPropagation());
    seen.observe(run);
  }
  if (location.hash.startsWith("#frame=")) runs[0]?.scrollIntoView();
})();
