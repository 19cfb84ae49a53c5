// What the book adds to mdBook's pages.
(() => {
  "use strict";

  // Code that is wider than its box is scrolled, with the keyboard, too.
  for (const code of document.querySelectorAll("main pre, main .table-wrapper")) code.tabIndex = 0;
  // A label that says whether it has opened something has to be a button.
  document.getElementById("mdbook-sidebar-toggle")?.setAttribute("role", "button");
})();
