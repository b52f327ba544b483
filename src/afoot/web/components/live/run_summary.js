// summary: many calls of one tool in words: how many in each state, and the slowest. Pure.

import { readClocks } from "../../lib/call/clock_reading.js";
import { formatCount, formatSpan, joinNonEmpty } from "../../lib/format.js";
import { OUTCOME_WORDS } from "../../lib/state.js";

/** How many of these calls are live or have ended, and the longest time on the clock. @param {Entry[]} entries @param {number} at */
export function summary(entries, at) {
  /** @type {Map<string, number>} */ const counts = new Map();
  let slowest_s = 0;
  for (const { call } of entries) {
    const now = call.peek();
    const word = now.outcome ? OUTCOME_WORDS[now.outcome] : now.state;
    counts.set(word, (counts.get(word) ?? 0) + 1);
    slowest_s = Math.max(slowest_s, readClocks(now, at).used_s);
  }
  const words = [...counts].map(([word, count]) => `${formatCount(count)} ${word}`);
  return joinNonEmpty(...words, `slowest ${formatSpan(slowest_s)}`);
}
