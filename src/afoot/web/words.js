// Two texts compared word by word, and a call as a line for bash.

const MOST = 1_000_000; // pairs of words that are compared; past that the middle counts as changed whole

/** @typedef {{kind: "same" | "gone" | "new", text: string}} Piece */

/**
 * What became of a text: pieces that stayed, went, and came.
 * @param {string} before
 * @param {string} after
 * @returns {Piece[]}
 */
export function compare(before, after) {
  const [a, b] = [split(before), split(after)];
  let [head, tail] = [0, 0];
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const [gone, come] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const middle =
    gone.length * come.length > MOST
      ? [...marked("gone", gone), ...marked("new", come)]
      : aligned(gone, come);
  return joined([
    ...marked("same", a.slice(0, head)),
    ...middle,
    ...marked("same", a.slice(a.length - tail)),
  ]);
}

/**
 * The command that makes this call again. It is ASCII only, and bash reads it as one word an argument.
 * @param {string} tool
 * @param {unknown} args
 * @returns {string}
 */
export function command(tool, args) {
  const given = `--args ${quoted(ascii(JSON.stringify(args)))}`;
  // What begins with a dash would be an option, but for `--`.
  return tool.startsWith("-")
    ? `afoot call ${given} -- ${quoted(tool)}`
    : `afoot call ${quoted(tool)} ${given}`;
}

/** Whatever a terminal, or an eye, could take for something else is written out. @param {string} json */
const ascii = (json) =>
  json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** @param {string} text */
const quoted = (text) => (/^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** @param {string} text */
const split = (text) => text.match(/\w+|\s+|[^\w\s]/gu) ?? [];

/** @param {Piece["kind"]} kind @param {string[]} words @returns {Piece[]} */
const marked = (kind, words) => words.map((text) => ({ kind, text }));

/** The longest common series of words. @param {string[]} a @param {string[]} b @returns {Piece[]} */
function aligned(a, b) {
  const wide = b.length + 1;
  const best = new Uint32Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      best[i * wide + j] =
        a[i] === b[j]
          ? best[(i + 1) * wide + j + 1] + 1
          : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
  /** @type {Piece[]} */ const pieces = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) pieces.push({ kind: "same", text: a[i++] }) && j++;
    else if (j >= b.length || (i < a.length && best[(i + 1) * wide + j] >= best[i * wide + j + 1]))
      pieces.push({ kind: "gone", text: a[i++] });
    else pieces.push({ kind: "new", text: b[j++] });
  }
  return pieces;
}

/** @param {Piece[]} pieces @returns {Piece[]} neighbours of one kind as one */
function joined(pieces) {
  /** @type {Piece[]} */ const found = [];
  for (const one of pieces) {
    const last = found.at(-1);
    if (last?.kind === one.kind) last.text += one.text;
    else found.push({ ...one });
  }
  return found;
}
