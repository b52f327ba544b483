// rankMatches: fuzzy search. A text matches if it has the letters of the query in order; texts in which they stand
// together, or begin words, come first. Pure.

const WORD_START = 8;
const NEXT_TO_LAST = 6;
const TEXT_START = 6;
const GAP = -0.3; // for each letter between two matches
const MAX_GAP = -6;
const MAX_CHARS = 200; // of a text that are looked at

/**
 * The best items first; those of equal rank in their order. An empty query matches everything.
 * @template T
 * @param {string} query its words may match in any order
 * @param {readonly T[]} items
 * @param {(item: T) => string} textOf
 * @returns {T[]}
 */
export function rankMatches(query, items, textOf) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [...items];
  const ranked = items.flatMap((item) => {
    const text = textOf(item).slice(0, MAX_CHARS);
    const ranks = words.map((word) => rankOf(word, text));
    return ranks.includes(null) ? [] : [{ item, rank: ranks.reduce((sum, rank) => (sum ?? 0) + (rank ?? 0), 0) ?? 0 }];
  });
  return ranked.sort((a, b) => b.rank - a.rank).map(({ item }) => item);
}

/**
 * How well a text matches a word; null if it does not.
 * @param {string} word in lower case
 * @param {string} text
 * @returns {number | null}
 */
export function rankOf(word, text) {
  const low = text.toLowerCase();
  const whole = low.indexOf(word);
  if (whole >= 0) return word.length * NEXT_TO_LAST + WORD_START + startBonus(text, whole) - whole * 0.01;
  let rank = 0;
  let last = -1;
  for (const letter of word) {
    const at = bestNext(text, low, letter, last + 1);
    if (at < 0) return null;
    if (last >= 0) rank += at === last + 1 ? NEXT_TO_LAST : Math.max(MAX_GAP, GAP * (at - last - 1));
    rank += startBonus(text, at);
    last = at;
  }
  return rank;
}

/** The next place of a letter: the start of a word if there is one soon, else the first. @param {string} text @param {string} low @param {string} letter @param {number} from */
function bestNext(text, low, letter, from) {
  const first = low.indexOf(letter, from);
  if (first <= from) return first;
  for (let at = first; at >= 0 && at < first + 12; at = low.indexOf(letter, at + 1)) {
    if (isWordStart(text, at)) return at;
  }
  return first;
}

/** @param {string} text @param {number} at */
const startBonus = (text, at) => (at === 0 ? TEXT_START : 0) + (isWordStart(text, at) ? WORD_START : 0);

/** @param {string} text @param {number} at */
const isWordStart = (text, at) =>
  at === 0 || /[^\p{L}\p{N}]/u.test(text[at - 1]) || /\p{Ll}\p{Lu}/u.test(text.slice(at - 1, at + 1));
