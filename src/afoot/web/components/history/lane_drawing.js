// drawLanes: the lanes of a time on one canvas, with the marks of the waterfall. Thousands of calls are drawn in one pass
// for each kind of mark; bars that would fall into the same pixel are drawn once.

import { queuedPart, runningParts } from "../../lib/history/lanes.js";

/** @typedef {import("../../lib/history/lanes.js").Lane} Lane */
/** @typedef {import("../../lib/history/lanes.js").Span} Span */
/** @typedef {import("../../lib/history/lanes.js").LostAttempt} LostAttempt */
/** @typedef {Record<"run" | "mid" | "ask" | "askGround" | "bad" | "badGround" | "idle" | "line" | "track" | "ink", string>} Colours */
/** @typedef {{lanes: readonly Lane[], steps: readonly number[], ticks: readonly number[], since: number, until: number, width: number, colours: Colours}} Drawing */
/** @typedef {CanvasRenderingContext2D} Context */

export const LANE_PX = 21;
export const STEPS_PX = 42; // the number running at once, below the lanes
const BAR_PX = 10;
const EDGE_PX = 100; // marks that lie farther outside are drawn as if they lay there
const CROSS_PX = 5; // half of the mark at the end of a lost attempt
const GOOD_ENDS = new Set(["ok", "", "cancelled"]);

/** The height of the canvas for these lanes. @param {number} lanes */
export const heightOf = (lanes) => lanes * LANE_PX + STEPS_PX;

/** @param {Context} context scaled to pixels of the page @param {Drawing} drawing */
export function drawLanes(context, drawing) {
  const { lanes, since, until, width } = drawing;
  const scale = width / (until - since);
  const place = (/** @type {number} */ at) => Math.min(width + EDGE_PX, Math.max(-EDGE_PX, (at - since) * scale));
  context.clearRect(0, 0, width, heightOf(lanes.length));
  drawGrid(context, drawing, place);
  for (const [row, lane] of lanes.entries()) {
    const middle = row * LANE_PX + LANE_PX / 2;
    if (lane.isShared) drawTicks(context, lane.spans, middle, place, drawing.colours);
    else drawBars(context, lane.spans, middle, place, drawing.colours);
  }
  drawSteps(context, drawing, lanes.length * LANE_PX);
}

/** @param {Context} context @param {Drawing} drawing @param {(at: number) => number} place */
function drawGrid(context, { lanes, ticks, colours }, place) {
  context.fillStyle = colours.line;
  for (const at of ticks) context.fillRect(Math.round(place(at)), 0, 1, heightOf(lanes.length));
}

/**
 * The calls of one tool. Later marks lie above earlier ones: lost attempts and questions are never hidden.
 * @param {Context} context @param {readonly Span[]} spans @param {number} middle
 * @param {(at: number) => number} place @param {Colours} colours
 */
function drawBars(context, spans, middle, place, colours) {
  const top = Math.round(middle - BAR_PX / 2);
  for (const span of spans) drawQueue(context, span, middle, place, colours.idle);
  context.fillStyle = colours.run;
  let filledTo = -1; // the pixel up to which this lane is blue
  for (const span of spans) {
    const parts = runningParts(span);
    if (!GOOD_ENDS.has(span.outcome)) parts.pop(); // the last attempt was lost
    for (const [from, to] of parts) {
      const [left, right] = [place(from), place(to)];
      const end = Math.max(right, left + 1.5);
      if (end <= filledTo) continue;
      roundBar(context, left, top, end - left);
      filledTo = Math.max(filledTo, end);
    }
  }
  for (const span of spans) if (hasMarks(span)) drawMarks(context, span, middle, place, colours);
}

/** @param {Span} span */
const hasMarks = ({ asked, below, lost, outcome }) =>
  asked.length > 0 || below.length > 0 || lost.length > 0 || outcome === "cancelled" || !GOOD_ENDS.has(outcome);

/**
 * @param {Context} context @param {Span} span @param {number} middle
 * @param {(at: number) => number} place @param {string} colour
 */
function drawQueue(context, span, middle, place, colour) {
  const queued = queuedPart(span);
  if (!queued || place(queued[1]) - place(queued[0]) < 2) return;
  context.fillStyle = colour;
  for (let left = place(queued[0]); left < place(queued[1]) - 1; left += 4)
    context.fillRect(left, Math.round(middle) - 1, 2, 2);
}

/**
 * The marks of a call besides its bars: questions, clocks that stood still, lost attempts, and an end that was not good.
 * @param {Context} context @param {Span} span @param {number} middle
 * @param {(at: number) => number} place @param {Colours} colours
 */
function drawMarks(context, span, middle, place, colours) {
  const top = Math.round(middle - BAR_PX / 2);
  for (const [from, to] of span.asked) hatch(context, place(from), top, place(to) - place(from), colours);
  context.fillStyle = colours.ask;
  for (const [from, to] of span.below)
    for (let left = place(from); left < place(to); left += 6)
      context.fillRect(left, Math.round(middle) - 1, Math.min(3, place(to) - left), 2);
  for (const [from, to, next] of lostAttempts(span)) {
    stripes(context, place(from), top, place(to) - place(from), colours);
    if (place(next) - place(to) > 2 * CROSS_PX + 4) cross(context, place(to) + CROSS_PX + 2, middle, colours);
  }
  if (span.outcome === "cancelled") {
    context.fillStyle = colours.idle;
    context.fillRect(place(span.finished) + 3, Math.round(middle) - 4, 8, 8);
  }
}

/** The attempts that were lost, and the last one of a call that did not end well. @param {Span} span @returns {LostAttempt[]} */
function lostAttempts(span) {
  if (GOOD_ENDS.has(span.outcome)) return span.lost;
  const [from, to] = runningParts(span).at(-1) ?? [span.finished, span.finished];
  return [...span.lost, [from, to, Infinity]];
}

/**
 * Calls too short for bars; failed ones stand out.
 * @param {Context} context @param {readonly Span[]} spans @param {number} middle
 * @param {(at: number) => number} place @param {Colours} colours
 */
function drawTicks(context, spans, middle, place, colours) {
  const drawn = new Set();
  context.fillStyle = colours.mid;
  for (const { opened } of spans) {
    const left = Math.round(place(opened));
    if (drawn.has(left)) continue;
    drawn.add(left);
    context.fillRect(left, Math.round(middle) - 4, 1.5, 8);
  }
  context.fillStyle = colours.bad;
  for (const { opened, outcome } of spans)
    if (!GOOD_ENDS.has(outcome)) context.fillRect(place(opened) - 1, Math.round(middle) - 6, 2.5, 12);
}

/** The number running at once as steps. @param {Context} context @param {Drawing} drawing @param {number} top */
function drawSteps(context, { steps, width, colours }, top) {
  const most = Math.max(1, ...steps);
  const bottom = top + STEPS_PX - 2;
  const step = width / Math.max(1, steps.length);
  const height = (/** @type {number} */ count) => bottom - (count / most) * (STEPS_PX - 12);
  context.beginPath();
  context.moveTo(0, bottom);
  for (const [at, count] of steps.entries()) {
    context.lineTo(at * step, height(count));
    context.lineTo((at + 1) * step, height(count));
  }
  context.lineTo(width, bottom);
  context.fillStyle = colours.track;
  context.fill();
  context.strokeStyle = colours.ink;
  context.lineWidth = 1;
  context.stroke();
}

/** @param {Context} context @param {number} left @param {number} top @param {number} width */
function roundBar(context, left, top, width) {
  if (width < 4) {
    context.fillRect(left, top, width, BAR_PX);
    return;
  }
  context.beginPath();
  context.roundRect(left, top, width, BAR_PX, 2);
  context.fill();
}

/** Amber hatching with an edge: a person is asked. @param {Context} context @param {number} left @param {number} top @param {number} width @param {Colours} colours */
function hatch(context, left, top, width, colours) {
  const wide = Math.max(2, width);
  context.save();
  context.beginPath();
  context.rect(left, top, wide, BAR_PX);
  context.clip();
  context.fillStyle = colours.askGround;
  context.fillRect(left, top, wide, BAR_PX);
  context.strokeStyle = colours.ask;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = left - BAR_PX; at < left + wide; at += 5) {
    context.moveTo(at, top + BAR_PX);
    context.lineTo(at + BAR_PX, top);
  }
  context.stroke();
  context.lineWidth = 2; // half of it is cut off
  context.strokeRect(left, top, wide, BAR_PX);
  context.restore();
}

/** Red stripes: an attempt that was lost. @param {Context} context @param {number} left @param {number} top @param {number} width @param {Colours} colours */
function stripes(context, left, top, width, colours) {
  context.fillStyle = colours.badGround;
  context.fillRect(left, top, width, BAR_PX);
  context.fillStyle = colours.bad;
  for (let at = left; at < left + width; at += 5) context.fillRect(at, top, Math.min(3, left + width - at), BAR_PX);
  if (width < 3) context.fillRect(left, top, 2, BAR_PX);
}

/** A filled circle with a cross. @param {Context} context @param {number} x @param {number} y @param {Colours} colours */
function cross(context, x, y, colours) {
  context.fillStyle = colours.bad;
  context.beginPath();
  context.arc(x, y, CROSS_PX, 0, 2 * Math.PI);
  context.fill();
  context.strokeStyle = colours.badGround;
  context.lineWidth = 1.3;
  context.beginPath();
  context.moveTo(x - 1.8, y - 1.8);
  context.lineTo(x + 1.8, y + 1.8);
  context.moveTo(x + 1.8, y - 1.8);
  context.lineTo(x - 1.8, y + 1.8);
  context.stroke();
}
