// Two drawings: how far a call came over time, and how long runs took; each says itself in words, too.

import { h, svg } from "./dom.js";
import { amount, lasted } from "./parts.js";
import { computed } from "./signal.js";

/** @typedef {{at: number, progress?: number | null, total?: number | null}} Point */
/** @typedef {[from: number, to: number, count: number]} Bin in seconds; and how many */
/** @typedef {{x: number, y: number}[]} Line */

const [WIDE, HIGH] = [600, 140];
const MOST = 400; // points that are drawn: more than a screen has room for

/** Progress over time, kept up to date. @param {() => readonly Point[]} points in their order @param {string} label */
export function curve(points, label) {
  const drawn = computed(() => plotted(points()));
  const path = (/** @type {boolean} */ isArea) => () => drawn() && pathOf(drawn()?.line ?? [], isArea);
  const text = (/** @type {"top" | "took"} */ name) => () => drawn()?.[name] ?? "";
  return h(
    "figure",
    { class: "chart curve", hidden: () => !drawn() },
    h("span", { class: "soft", "aria-hidden": "true" }, text("top")),
    canvas(
      () => `${label}: ${drawn()?.words ?? "nothing yet"}`,
      svg("path", { class: "area", d: path(true) }),
      svg("path", { class: "stroke", d: path(false) }),
    ),
    axis(h("span", null, "0 s"), h("span", null, text("took"))),
  );
}

/**
 * How often it took how long.
 * @param {readonly Bin[]} bins
 * @param {{label: string, marks?: Record<string, number>}} about `marks`: instants worth a line, by name
 */
export function histogram(bins, { label, marks = {} }) {
  const most = Math.max(1, ...bins.map(([, , count]) => count));
  const step = WIDE / Math.max(1, bins.length);
  const bars = bins.map(([from, to, count], at) => {
    const tall = count && Math.max(2, (count / most) * HIGH);
    const box = { x: at * step + 1.5, y: HIGH - tall, width: step - 3, height: tall, class: "column" };
    return svg("rect", box, svg("title", null, `${ranged([from, to])}: ${count}`));
  });
  const lines = Object.values(marks).map((value) => {
    const x = placeOf(bins, value) * WIDE;
    return svg("line", { class: "rule", x1: x, x2: x, y1: 0, y2: HIGH });
  });
  const ends = bins.length ? [bins[0][0], bins[bins.length - 1][1]] : [];
  return h(
    "figure",
    { class: "chart" },
    canvas(`${label}: ${told(bins)}`, ...bars, ...lines),
    axis(...ends.map((end) => h("span", null, lasted(end)))),
  );
}

/** How a histogram reads. @param {readonly Bin[]} bins */
export const told = (bins) =>
  bins
    .filter(([, , count]) => count)
    .map((bin) => `${bin[2]} took ${ranged(bin)}`)
    .join(", ") || "nothing yet";

/** Where in a histogram a value lies, from 0 to 1. @param {readonly Bin[]} bins @param {number} value */
export function placeOf(bins, value) {
  const at = bins.findIndex(([, to]) => value < to);
  if (at < 0) return 1;
  const [from, to] = bins[at];
  return (at + Math.max(0, value - from) / (to - from)) / bins.length;
}

/**
 * A line in the drawing's own units; null where there is nothing to draw.
 * @param {readonly Point[]} points
 * @returns {{line: Line, top: string, took: string, words: string} | null}
 */
export function plotted(points) {
  const known = points.filter((one) => Number.isFinite(one.progress) && Number.isFinite(one.at));
  if (known.length < 2) return null;
  const [first, last] = [known[0], known[known.length - 1]];
  const took = last.at - first.at;
  const done = known.map((one) => Number(one.progress));
  const total = Number(last.total) > 0 ? Number(last.total) : null;
  const [top, low] = [most(done, total ?? 0), Math.min(0, most(done, 0, Math.min))];
  const y = (/** @type {number} */ value) => HIGH - ((value - low) / (top - low || 1)) * HIGH;
  const x = (/** @type {Point} */ { at }) => (took > 0 ? ((at - first.at) / took) * WIDE : WIDE);
  const line = thinned(known).map((one) => ({ x: x(one), y: y(Number(one.progress)) }));
  const end = `${amount(Number(last.progress))}${total === null ? "" : ` of ${amount(total)}`}`;
  return { line, top: amount(top), took: lasted(took), words: `${end} after ${lasted(took)}` };
}

/** @param {number[]} values @param {number} start @param {(...two: number[]) => number} [of] */
const most = (values, start, of = Math.max) => values.reduce((one, other) => of(one, other), start);

/** At most so many, the last among them. @param {Point[]} points */
function thinned(points) {
  const step = Math.ceil(points.length / MOST);
  return points.filter((_, at) => at % step === 0 || at === points.length - 1);
}

/** @param {Line} line @param {boolean} isArea */
function pathOf(line, isArea) {
  const steps = line.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
  return isArea ? `M${line[0].x.toFixed(1)} ${HIGH}L${steps}L${WIDE} ${HIGH}Z` : `M${steps}`;
}

/** @param {string | (() => string)} label @param {...SVGElement} shapes */
function canvas(label, ...shapes) {
  const box = { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none" };
  return svg("svg", { ...box, role: "img", "aria-label": label }, ...shapes);
}

/** @param {...HTMLElement} ends */
const axis = (...ends) => h("figcaption", { class: "soft", "aria-hidden": "true" }, ...ends);

/** @param {readonly number[]} bin */
const ranged = ([from, to]) => `${lasted(from)} to ${lasted(to)}`;
