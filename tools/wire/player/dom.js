// Making elements. Text is only ever set as text.

/** An element with attributes and children; a child that is no element is text, and one that is null is left out. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** Scrolls a box, and nothing around it, until what is in it can be seen well; of what is higher than the box, its beginning. */
export function bring(box, inside, smooth, where = 0.5) {
  const [outer, inner] = [box.getBoundingClientRect(), inside.getBoundingClientRect()];
  const top = box.scrollTop + inner.top - outer.top - Math.max(0, outer.height - inner.height) * where;
  box.scrollTo({ top, behavior: smooth ? "smooth" : "instant" });
}
