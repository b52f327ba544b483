// inTreeOrder: calls as a tree reads, each below the one that made it. Pure.

import { callFromView } from "../fold.js";

/** @typedef {{call: Call, depth: number, questions: QuestionView[]}} TreeRow */

/** Calls as a tree reads: each below the one that made it, in the order they were opened. @param {CallView[]} views @returns {TreeRow[]} */
export function inTreeOrder(views) {
  const known = new Set(views.map(({ id }) => id));
  /** @type {Map<string, CallView[]>} */ const below = new Map();
  for (const view of views.toSorted((one, other) => one.opened - other.opened)) {
    const parent = view.parent && known.has(view.parent) ? view.parent : "";
    below.set(parent, [...(below.get(parent) ?? []), view]);
  }
  /** @returns {TreeRow[]} */
  const walk = (/** @type {string} */ parent, /** @type {number} */ depth) =>
    (below.get(parent) ?? []).flatMap((view) => [
      { call: callFromView(view), depth, questions: view.questions ?? [] },
      ...walk(view.id, depth + 1),
    ]);
  return walk("", 0);
}
