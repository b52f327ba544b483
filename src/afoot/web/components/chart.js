// progressChart and histogram: progress over time, and the durations of runs. Each has a text alternative.

import { h, svg } from "../lib/dom.js";
import { formatDuration, formatNumber } from "../lib/format.js";

const WIDTH = 600;
const HEIGHT = 140;
const VIEW_BOX = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" };
const MAX_POINTS = 400; // more than the pixels of a screen

/**
 * A chart of progress over time; null with fewer than two points.
 * @param {readonly Reading[]} points in order
 * @param {string} label
 */
export function progressChart(points, label) {
  const found = plotPoints(points);
  if (!found) return null;
  const line = found.line.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  const area = svg("polygon", { class: "area", points: `0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}` });
  const drawing = chartSvg(`${label}: ${found.words}`, area, svg("polyline", { class: "stroke", points: line }));
  return h("figure.chart", h("span.soft", { "aria-hidden": "true" }, found.top), drawing, axis("0 s", found.took));
}

/**
 * A histogram of durations; `marks` are durations with a vertical line.
 * @param {readonly Bin[]} bins
 * @param {string} label
 * @param {number[]} marks
 */
export function histogram(bins, label, marks) {
  const most = Math.max(1, ...bins.map(([, , count]) => count));
  const step = WIDTH / bins.length;
  const bars = bins.map(([from, to, count], at) => {
    const height = count && Math.max(2, (count / most) * HEIGHT);
    const box = { x: at * step + 1.5, y: HEIGHT - height, width: step - 3, height, class: "column" };
    return svg("rect", box, svg("title", `${formatRange(from, to)}: ${count}`));
  });
  const lines = marks.map((value) => {
    const x = histogramPosition(bins, value) * WIDTH;
    return svg("line", { class: "rule", x1: x, x2: x, y1: 0, y2: HEIGHT });
  });
  const ends = axis(formatDuration(bins[0][0]), formatDuration(bins[bins.length - 1][1]));
  return h("figure.chart", chartSvg(`${label}: ${describeHistogram(bins)}`, ...bars, ...lines), ends);
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

/** The line of a chart, in units of its view box. @param {readonly Reading[]} points */
export function plotPoints(points) {
  const valid = points.filter((one) => Number.isFinite(one.progress) && Number.isFinite(one.at));
  if (valid.length < 2) return null;
  const first = valid[0];
  const last = valid[valid.length - 1];
  const duration = last.at - first.at;
  const total = Number(last.total) > 0 ? Number(last.total) : 0;
  const values = valid.map((one) => Number(one.progress));
  const top = values.reduce((a, b) => Math.max(a, b), total);
  const low = values.reduce((a, b) => Math.min(a, b), 0);
  const line = thinOut(valid).map(({ at, progress }) => ({
    x: duration > 0 ? ((at - first.at) / duration) * WIDTH : WIDTH,
    y: HEIGHT - ((Number(progress) - low) / (top - low || 1)) * HEIGHT,
  }));
  const words = `${formatNumber(Number(last.progress))}${total ? ` of ${formatNumber(total)}` : ""} after ${formatDuration(duration)}`;
  return { line, top: formatNumber(top), took: formatDuration(duration), words };
}

/** At most MAX_POINTS points, with the last one. @param {Reading[]} points */
function thinOut(points) {
  const step = Math.ceil(points.length / MAX_POINTS);
  return points.filter((_, at) => at % step === 0 || at === points.length - 1);
}

/** @param {string} label @param {...SVGElement} shapes */
const chartSvg = (label, ...shapes) => svg("svg", { ...VIEW_BOX, role: "img", "aria-label": label }, ...shapes);

/** @param {string} from @param {string} to */
const axis = (from, to) => h("figcaption.soft", { "aria-hidden": "true" }, h("span", from), h("span", to));

/** @param {number} from @param {number} to */
const formatRange = (from, to) => `${formatDuration(from)} to ${formatDuration(to)}`;
