// diffWords: compares two texts word by word.

const MAX_PAIRS = 1_000_000; // of words to compare; with more, the whole middle counts as changed

/** @typedef {{kind: "same" | "gone" | "new", text: string}} Piece */

/**
 * The pieces of two texts: unchanged, removed, and added.
 * @param {string} before
 * @param {string} after
 * @returns {Piece[]}
 */
export function diffWords(before, after) {
  const a = splitWords(before);
  const b = splitWords(after);
  let head = 0;
  let tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const removed = a.slice(head, a.length - tail);
  const added = b.slice(head, b.length - tail);
  /** @type {Piece[]} */ const pieces = [];
  const add = (/** @type {Piece["kind"]} */ kind, /** @type {string} */ text) => {
    const last = pieces.at(-1);
    if (last?.kind === kind) last.text += text;
    else if (text) pieces.push({ kind, text });
  };
  add("same", a.slice(0, head).join(""));
  if (removed.length * added.length <= MAX_PAIRS) {
    align(removed, added, add);
  } else {
    add("gone", removed.join(""));
    add("new", added.join(""));
  }
  add("same", a.slice(a.length - tail).join(""));
  return pieces;
}

/** @param {string} text */
const splitWords = (text) => text.match(/\w+|\s+|[^\w\s]/gu) ?? [];

/**
 * Report two lists of words along their longest common subsequence.
 * @param {string[]} a
 * @param {string[]} b
 * @param {(kind: Piece["kind"], text: string) => void} add
 */
function align(a, b, add) {
  const wide = b.length + 1;
  const best = new Uint32Array((a.length + 1) * wide); // its length from here on
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) {
      const here = i * wide + j;
      best[here] = a[i] === b[j] ? best[here + wide + 1] + 1 : Math.max(best[here + wide], best[here + 1]);
    }
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const here = i * wide + j;
    if (i < a.length && a[i] === b[j]) {
      add("same", a[i++]);
      j++;
    } else if (j >= b.length || (i < a.length && best[here + wide] >= best[here + 1])) add("gone", a[i++]);
    else add("new", b[j++]);
  }
}
