// Two texts compared word by word, and a call as a line for bash.

import { redactedIn } from "./exact.js";

const MOST = 1_000_000; // pairs of words that are compared; past that the middle counts as changed whole

/** @typedef {{kind: "same" | "gone" | "new", text: string}} Piece */

/** What became of a text: pieces that stayed, went, and came. @param {string} before @param {string} after @returns {Piece[]} */
export function compare(before, after) {
  const [a, b] = [split(before), split(after)];
  let [head, tail] = [0, 0];
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const [gone, come] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  /** @type {Piece[]} */ const pieces = [];
  const add = (/** @type {Piece["kind"]} */ kind, /** @type {string} */ text) => {
    const last = pieces.at(-1);
    if (last?.kind === kind) last.text += text;
    else if (text) pieces.push({ kind, text });
  };
  add("same", a.slice(0, head).join(""));
  if (gone.length * come.length <= MOST) align(gone, come, add);
  else (add("gone", gone.join("")), add("new", come.join("")));
  add("same", a.slice(a.length - tail).join(""));
  return pieces;
}

/**
 * The command that makes this call again, in ASCII; bash reads it as one word an argument. What is not shown becomes
 * variables, which must be set: `key=value` goes over `--args`, and is read by the tool's schema.
 * @param {string} tool
 * @param {Record<string, Json>} args
 */
export function command(tool, args) {
  const hidden = Object.keys(args).filter((name) => redactedIn(args[name]).length && !name.includes("="));
  const plain = Object.entries(args).filter(([, value]) => !redactedIn(value).length);
  const variables = hidden
    .map(variableOf)
    .map((name, at, all) => (all.indexOf(name) < at ? `${name}_${at + 1}` : name));
  const given = `--args ${quoted(ascii(JSON.stringify(Object.fromEntries(plain))))}`;
  const words = hidden.map((name, at) => `${quoted(`${name}=`)}"\${${variables[at]}:?}"`);
  const isOdd = [tool, ...words].some((word) => word.startsWith("-")); // it would be an option, but for `--`
  const parts = isOdd ? [given, "--", quoted(tool)] : [quoted(tool), given];
  return { line: ["afoot call", ...parts, ...words].join(" "), variables };
}

/** Whatever a terminal, or an eye, could take for something else is written out. @param {string} json */
const ascii = (json) => json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** @param {string} text */
function quoted(text) {
  if (/^[\w./:@=-]+$/.test(text)) return text;
  if (/^[ -~]*$/.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const bytes = [...new TextEncoder().encode(text)].map((one) => `\\x${one.toString(16).padStart(2, "0")}`);
  return `$'${bytes.join("")}'`;
}

/** A name that no shell uses itself, as it does PWD or PATH. @param {string} key */
function variableOf(key) {
  const name = key.replace(/\W+/g, "_").toUpperCase();
  return /^[A-Z]+_\w/.test(name) ? name : `MY_${name}`;
}

/** @param {string} text */
const split = (text) => text.match(/\w+|\s+|[^\w\s]/gu) ?? [];

/** Tell of two series of words along their longest common one. @param {string[]} a @param {string[]} b @param {(kind: Piece["kind"], text: string) => void} add */
function align(a, b, add) {
  const wide = b.length + 1;
  const best = new Uint32Array((a.length + 1) * wide); // how long it is from here on
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) {
      const here = i * wide + j;
      best[here] = a[i] === b[j] ? best[here + wide + 1] + 1 : Math.max(best[here + wide], best[here + 1]);
    }
  for (let [i, j] = [0, 0]; i < a.length || j < b.length;) {
    const here = i * wide + j;
    if (i < a.length && a[i] === b[j]) (add("same", a[i++]), j++);
    else if (j >= b.length || (i < a.length && best[here + wide] >= best[here + 1])) add("gone", a[i++]);
    else add("new", b[j++]);
  }
}
