// What a reader's browser remembers of the workbench. A page that's opened from a folder may have no memory: then it's for this page only.

export function recall(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}

export function keep(key, value) {
  try { localStorage.setItem(key, value); } catch { /* for this page only */ }
}
