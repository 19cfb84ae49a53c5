// The player: a run of a lesson, event by event, with the code, the logs, the packets, the queue pairs and the memory.
//
// On a page:
//
//     wire play captures/04_rdma_write.pcapng --lesson lessons/04_rdma_write --data -o 04_rdma_write.json
//
//     <link rel="stylesheet" href="player/player.css">
//     <div id="run"> what is shown without JavaScript: the ladder, from `wire svg` or `wire show` </div>
//     <script type="module">
//       import { mount } from "./player/player.js";
//       const data = await (await fetch("04_rdma_write.json")).json();
//       mount(document.getElementById("run"), data);
//     </script>
//
// A page that is opened from a folder cannot fetch: there put the JSON into the page, as `wire play` does for the page that it
// writes: <script type="application/json" id="data">…</script>, with each `<` in it as \u003c (--data writes it so), and
// call mount(element, JSON.parse(document.getElementById("data").textContent)).
//
// mount(element, data, options) replaces what is in the element. It takes the width it is given: one column below 700 pixels,
// and all in one view from 1080 on. Options: `link: false` leaves the page's address alone; otherwise `#frame=57` is the
// moment that is shown (one player of a page should do so). `keys: true` takes keys that are pressed anywhere on the
// page, not only inside the player. Colours follow prefers-color-scheme, unless a parent has the attribute
// data-theme="light" or "dark".
//
// The data is what `wire` has found out about the run; this only shows it, and only by textContent: nothing that a
// capture says can become markup.

/** Shows the run `data` in `element`. */
export function mount(element, data, options = {}) {
  element.textContent = data.title;
}
