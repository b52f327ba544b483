// histogram: how long the runs of a tool took, as columns between round numbers, with a text alternative.

import { h, svg } from "../../lib/dom.js";
import { formatSpan } from "../../lib/format.js";

const WIDTH = 600;
const HEIGHT = 120;

/**
 * @param {readonly Bin[]} bins
 * @param {string} label
 * @param {number[]} marks durations with a vertical line
 */
export function histogram(bins, label, marks) {
  const most = Math.max(1, ...bins.map(([, , count]) => count));
  const step = WIDTH / bins.length;
  const bars = bins.map(([from, to, count], at) => {
    const height = count && Math.max(2, (count / most) * HEIGHT);
    const box = { x: at * step + 1.5, y: HEIGHT - height, width: step - 3, height };
    return svg("rect", box, svg("title", `${formatRange(from, to)}: ${count}`));
  });
  const lines = marks.map((value) => {
    const x = histogramPosition(bins, value) * WIDTH;
    return svg("line", { x1: x, x2: x, y1: 0, y2: HEIGHT });
  });
  const about = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: "histogram" };
  const drawing = svg("svg", { ...about, "aria-label": `${label}: ${describeHistogram(bins)}` }, ...bars, ...lines);
  const ends = [formatSpan(bins[0][0]), formatSpan(bins[bins.length - 1][1])];
  return h(
    "figure",
    drawing,
    h("figcaption.histogram-axis", { "aria-hidden": "true" }, ...ends.map((one) => h("span", one))),
  );
}

/** A histogram in words. @param {readonly Bin[]} bins */
export function describeHistogram(bins) {
  const nonEmpty = bins.filter(([, , count]) => count);
  return nonEmpty.map(([from, to, count]) => `${count} took ${formatRange(from, to)}`).join(", ") || "nothing yet";
}

/**
 * The horizontal position of a value in a histogram, from 0 to 1.
 * @param {readonly Bin[]} bins
 * @param {number} value
 */
export function histogramPosition(bins, value) {
  const at = bins.findIndex(([, to]) => value < to);
  if (at < 0) return 1;
  const [from, to] = bins[at];
  return (at + Math.max(0, value - from) / (to - from)) / bins.length;
}

/** @param {number} from @param {number} to */
const formatRange = (from, to) => `${formatSpan(from)} to ${formatSpan(to)}`;
