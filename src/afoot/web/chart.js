// Two drawings: how far a call came over time, and how long runs took; each says itself in words, too.

import { h, svg } from "./dom.js";
import { amount, lasted } from "./parts.js";

const [WIDE, HIGH] = [600, 140];
const FRAME = { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none" };
const MOST = 400; // points that are drawn: more than a screen has room for

/** Progress over time; null where there is nothing to draw. @param {readonly Reading[]} points in their order @param {string} label */
export function curve(points, label) {
  const found = plotted(points);
  if (!found) return null;
  const line = found.line.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  const area = svg("polygon", { class: "area", points: `0,${HIGH} ${line} ${WIDE},${HIGH}` });
  const drawn = canvas(`${label}: ${found.words}`, area, svg("polyline", { class: "stroke", points: line }));
  return h("figure.chart", h("span.soft", { "aria-hidden": "true" }, found.top), drawn, axis("0 s", found.took));
}

/** How often it took how long; `marks` are instants worth a line. @param {readonly Bin[]} bins @param {string} label @param {number[]} marks */
export function histogram(bins, label, marks) {
  const most = Math.max(1, ...bins.map(([, , count]) => count));
  const step = WIDE / bins.length;
  const bars = bins.map(([from, to, count], at) => {
    const height = count && Math.max(2, (count / most) * HIGH);
    const box = { x: at * step + 1.5, y: HIGH - height, width: step - 3, height, class: "column" };
    return svg("rect", box, svg("title", `${ranged(from, to)}: ${count}`));
  });
  const lines = marks.map((value) => {
    const x = placeOf(bins, value) * WIDE;
    return svg("line", { class: "rule", x1: x, x2: x, y1: 0, y2: HIGH });
  });
  const ends = axis(lasted(bins[0][0]), lasted(bins[bins.length - 1][1]));
  return h("figure.chart", canvas(`${label}: ${told(bins)}`, ...bars, ...lines), ends);
}

/** How a histogram reads. @param {readonly Bin[]} bins */
export function told(bins) {
  const some = bins.filter(([, , count]) => count);
  return some.map(([from, to, count]) => `${count} took ${ranged(from, to)}`).join(", ") || "nothing yet";
}

/** Where in a histogram a value lies, from 0 to 1. @param {readonly Bin[]} bins @param {number} value */
export function placeOf(bins, value) {
  const at = bins.findIndex(([, to]) => value < to);
  if (at < 0) return 1;
  const [from, to] = bins[at];
  return (at + Math.max(0, value - from) / (to - from)) / bins.length;
}

/** A line in the drawing's own units. @param {readonly Reading[]} points */
export function plotted(points) {
  const known = points.filter((one) => Number.isFinite(one.progress) && Number.isFinite(one.at));
  if (known.length < 2) return null;
  const [first, last] = [known[0], known[known.length - 1]];
  const [took, total] = [last.at - first.at, Number(last.total) > 0 ? Number(last.total) : 0];
  const done = known.map((one) => Number(one.progress));
  const [top, low] = [done.reduce((a, b) => Math.max(a, b), total), done.reduce((a, b) => Math.min(a, b), 0)];
  const line = thinned(known).map(({ at, progress }) => ({
    x: took > 0 ? ((at - first.at) / took) * WIDE : WIDE,
    y: HIGH - ((Number(progress) - low) / (top - low || 1)) * HIGH,
  }));
  const words = `${amount(Number(last.progress))}${total ? ` of ${amount(total)}` : ""} after ${lasted(took)}`;
  return { line, top: amount(top), took: lasted(took), words };
}

/** At most so many, the last among them. @param {Reading[]} points */
function thinned(points) {
  const step = Math.ceil(points.length / MOST);
  return points.filter((_, at) => at % step === 0 || at === points.length - 1);
}

/** @param {string} label @param {...SVGElement} shapes */
const canvas = (label, ...shapes) => svg("svg", { ...FRAME, role: "img", "aria-label": label }, ...shapes);

/** @param {string} from @param {string} to */
const axis = (from, to) => h("figcaption.soft", { "aria-hidden": "true" }, h("span", from), h("span", to));

/** @param {number} from @param {number} to */
const ranged = (from, to) => `${lasted(from)} to ${lasted(to)}`;
