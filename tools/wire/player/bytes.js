// The bytes of a region, as far as packets have shown them. A region may be as large as a machine's memory, and a packet may be
// far inside it: what is kept is what is known.

export class Bytes {
  constructor() {
    /** Where each piece begins, and its bytes in hexadecimal: in the order of their places, none over another. */
    this.pieces = [];
  }

  /** The first place that is known, and the one behind the last; both 0 if nothing is. */
  get start() { return this.pieces[0]?.at ?? 0; }
  get end() { return this.pieces.length ? behind(this.pieces.at(-1)) : 0; }

  /** Writes bytes over what was there. */
  put(at, hex) {
    const end = at + hex.length / 2;
    // Beyond that numbers have gaps.
    if (!hex || !Number.isSafeInteger(end)) return;
    const first = this.find(at);
    let next = first;
    const pieces = [];
    for (; this.pieces[next]?.at < end; next++) {
      const old = this.pieces[next];
      if (old.at < at) pieces.push({ at: old.at, hex: old.hex.slice(0, (at - old.at) * 2) });
      if (behind(old) > end) pieces.push({ at: end, hex: old.hex.slice((end - old.at) * 2) });
    }
    const place = pieces[0]?.at < at ? 1 : 0;
    pieces.splice(place, 0, { at, hex });
    this.pieces.splice(first, next - first, ...pieces);
  }

  /** So many bytes from a place on: two digits each, or null. */
  read(from, count) {
    const bytes = new Array(count).fill(null);
    for (let next = this.find(from); this.pieces[next]?.at < from + count; next++) {
      const { at, hex } = this.pieces[next];
      const [first, end] = [Math.max(at, from), Math.min(at + hex.length / 2, from + count)];
      for (let place = first; place < end; place++) bytes[place - from] = hex.slice((place - at) * 2, (place - at) * 2 + 2);
    }
    return bytes;
  }

  /** The first piece that ends behind a place. */
  find(place) {
    let [low, high] = [0, this.pieces.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (behind(this.pieces[middle]) > place) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const behind = ({ at, hex }) => at + hex.length / 2;
