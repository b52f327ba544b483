// silenceOver: the silence of a call over time, as its clock counted it. A call hears the calls below it, too. Pure.

import { clockTimes } from "./spans.js";

/** @typedef {import("./spans.js").Row} Row */
/** A silence from one sign of life to the next. `isUnknown`: longer than its limit, so there were signs that the history does not have. @typedef {{from: number, until: number, isUnknown: boolean}} Tooth */
/** @typedef {{from: number, until: number, limit_s: number | null, teeth: Tooth[], still: {from: number, until: number}[], longest: Tooth | null, where: string, spent_s: number, asked_s: number}} Silence */

const TOLERANCE_S = 1; // the history keeps one reading a second

/**
 * The silence of the first row of a tree.
 * @param {Row} row
 * @param {number[]} [heard] more signs of life, as a page has seen them: the history has no heartbeats
 * @returns {Silence}
 */
export function silenceOver(row, heard = []) {
  const { phases, limits, from, until } = row;
  const signs = [...signsOf(row), ...heard].sort((a, b) => a - b);
  const first = limits.patient ? (firstReport(row) ?? Infinity) : from; // before it, no silence counts
  /** @type {Tooth[]} */ const teeth = [];
  for (const phase of phases.filter(({ kind }) => kind === "running" || kind === "lost")) {
    let at = Math.max(phase.from, first);
    for (const sign of signs) {
      if (sign <= at || sign >= phase.until) continue;
      teeth.push(tooth(at, sign, limits.idle_s));
      at = sign;
    }
    if (phase.until > at) teeth.push(tooth(at, phase.until, limits.idle_s));
  }
  const still = phases.filter(({ kind }) => kind === "asked" || kind === "below");
  const longest = teeth
    .filter(({ isUnknown }) => !isUnknown)
    .reduce((/** @type {Tooth | null} */ most, one) => (most && lengthOf(most) >= lengthOf(one) ? most : one), null);
  const where = longest ? silentBelow(row, longest) : "";
  return { from, until, limit_s: limits.idle_s, teeth, still, longest, where, ...clockTimes(phases) };
}

/** @param {Tooth} one */
export const lengthOf = ({ from, until }) => until - from;

/**
 * The outline of the teeth as points of time and silence. Teeth that lie closer than `gap_s` are drawn as the longest of
 * them, so that a drawing of some hundred pixels has some hundred points.
 * @param {Silence} silence
 * @param {number} gap_s
 * @returns {[at: number, silent_s: number][]}
 */
export function outline({ teeth, from }, gap_s) {
  /** @type {[number, number][]} */ const points = [[from, 0]];
  /** @type {Tooth | null} */ let held = null;
  const draw = (/** @type {Tooth} */ one) => {
    points.push([one.from, 0]);
    if (!one.isUnknown) points.push([one.until, lengthOf(one)], [one.until, 0]);
  };
  for (const one of teeth) {
    /** @type {boolean} */ const isDense =
      held !== null && one.until - held.from < gap_s && !one.isUnknown && !held.isUnknown;
    if (held && !isDense) draw(held);
    held = held && isDense ? (lengthOf(held) >= lengthOf(one) ? held : { ...one, from: held.from }) : one;
  }
  if (held) draw(held);
  return points;
}

/** @param {number} from @param {number} until @param {number | null} limit_s @returns {Tooth} */
const tooth = (from, until, limit_s) => ({
  from,
  until,
  isUnknown: limit_s !== null && until - from > limit_s + TOLERANCE_S,
});

/** Reports of a call and of the calls below it, and the ends of those. @param {Row} row @returns {number[]} */
function signsOf({ ticks, below }) {
  return [...ticks, ...below.flatMap((child) => [...signsOf(child), ...(child.isLive ? [] : [child.until])])];
}

/** @param {Row} row @returns {number | undefined} */
function firstReport({ ticks, below }) {
  const all = [ticks[0], ...below.map(firstReport)].filter((at) => at !== undefined);
  return all.length ? Math.min(...all) : undefined;
}

/** The call below that ran all through a silence, if it was one. @param {Row} row @param {Tooth} silence @returns {string} */
function silentBelow({ below }, silence) {
  const ran = below.filter(({ phases }) =>
    phases.some((one) => one.kind === "running" && one.from <= silence.from && one.until >= silence.until),
  );
  return ran.length === 1 ? silentBelow(ran[0], silence) || ran[0].tool : "";
}
