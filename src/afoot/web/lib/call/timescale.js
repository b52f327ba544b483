// The time axis of a waterfall: its end, its steps and labels, and the levels of zoom. Pure.

import { formatElapsed, formatSpan } from "../format.js";

const STEPS = [
  ...[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400],
];
const ZOOMS = [3600, 600, 60, 10, 1, 0.1];
const LABEL_PX = 68; // the least distance of two labels
const END_PX = 22; // free space behind the end, for its mark

/** The distance of two labels of an axis. @param {number} span_s @param {number} width */
export const axisStep = (span_s, width) =>
  STEPS.find((step) => (step / span_s) * width >= LABEL_PX) ??
  Math.ceil(((span_s / width) * LABEL_PX) / 86_400) * 86_400;

/** The span of an axis: a little more than what is drawn, and steady while that grows. @param {number} span_s @param {number} width */
export function axisSpan(span_s, width) {
  const whole = Math.max(span_s, 0.01) * (width / Math.max(width / 2, width - END_PX));
  const half = axisStep(whole, width) / 2;
  return Math.ceil(whole / half) * half;
}

/** The times of the labels within a window of an axis. @param {number} from_s @param {number} until_s @param {number} step */
export function axisTimes(from_s, until_s, step) {
  const first = Math.ceil(from_s / step - 1e-6);
  const count = Math.max(0, Math.floor(until_s / step + 1e-6) - first + 1);
  return Array.from({ length: count }, (_, at) => (first + at) * step);
}

/** A time on an axis with this step. @param {number} seconds @param {number} step */
export const axisLabel = (seconds, step) =>
  step >= 1 ? formatElapsed(seconds + 1e-6) : `${seconds.toFixed(step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3)} s`;

/** The two useful spans of a window that are shorter than the whole. @param {number} span_s */
export const zoomLevels = (span_s) => ZOOMS.filter((level) => level < span_s * 0.6).slice(0, 2);

/** A zoom as a word: 1:00, 10 s, 0.1 s. @param {number} level */
export const zoomWord = (level) => (level >= 10 ? formatElapsed(level) : formatSpan(level));

/**
 * The places of ticks in whole pixels; ticks that lie closer than two pixels are one.
 * @param {number[]} places in pixels, in order
 */
export function mergeTicks(places) {
  /** @type {number[]} */ const merged = [];
  for (const place of places)
    if (!merged.length || place - merged[merged.length - 1] >= 2) merged.push(Math.round(place));
  return merged;
}
