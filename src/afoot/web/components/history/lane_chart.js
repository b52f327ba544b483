// laneChart: the calls of a time as lanes on one canvas. Dragging selects a part of the time; a click opens a call.

import { each, h } from "../../lib/dom.js";
import { formatAxisTime, formatCount, formatMinute, formatSpan, safeText } from "../../lib/format.js";
import { axisTicks, lanesOf, runningSteps, spanAt } from "../../lib/history/lanes.js";
import { callPath, navigate, withQuery } from "../../lib/router.js";
import { OUTCOME_WORDS } from "../../lib/state.js";
import { computed, effect, onCleanup, signal } from "../../lib/signal.js";
import { drawLanes, heightOf, LANE_PX } from "./lane_drawing.js";

/** @typedef {import("../../lib/history/lanes.js").HistorySummary} HistorySummary */
/** @typedef {import("../../lib/history/lanes.js").Lane} Lane */
/** @typedef {import("../../lib/history/lanes.js").Span} Span */
/** @typedef {import("./lane_drawing.js").Colours} Colours */
/** @typedef {{since: number, until: number}} Time */
/** @typedef {{selected: () => Time | null, select: (time: Time | null) => void, live: () => readonly Call[], now: () => number}} ChartOptions */
/** @typedef {{lane: Lane, span: Span, left: number, top: number}} Pointed */

const NEAR_PX = 4; // a mark so near is pointed at; a pointer that moved less has not dragged
const KEY_STEPS = 60; // parts of the time that arrow keys move by
// The names under which the browser's profiler lists the two steps of the drawing.
const LAID_OUT = "lanes laid out";
const DRAWN = "lanes drawn";

/** The colours of the canvas: a canvas does not know custom properties. @type {Record<keyof Colours, string>} */
const COLOUR_TOKENS = {
  run: "--move-fill",
  mid: "--move-mid",
  ask: "--you-fill",
  askGround: "--you-soft",
  bad: "--bad-fill",
  badGround: "--bad-soft",
  idle: "--idle",
  line: "--line",
  track: "--track",
  ink: "--ink-3",
};

/** @param {() => HistorySummary} summary @param {ChartOptions} options */
export function laneChart(summary, { selected, select, live, now }) {
  const width = signal(0);
  const theme = signal(0);
  const pointed = signal(/** @type {Pointed | null} */ (null));
  const lanes = computed(() => measured(LAID_OUT, () => lanesOf(summary(), live(), now())));
  const steps = computed(() => runningSteps(summary(), live()));
  const axis = computed(() => axisTicks(summary(), width() || 1000));
  const canvas = h("canvas", { "aria-hidden": "true" });
  const probes = h("div.lane-colours", { "aria-hidden": "true" });
  const swatches = Object.entries(COLOUR_TOKENS).map(([name, token]) => {
    const swatch = probes.appendChild(h("i", { "style.color": `var(${token})` }));
    return /** @type {[string, HTMLElement]} */ ([name, swatch]);
  });
  const plot = h(
    "div.lane-plot",
    { "style.height": () => `${heightOf(lanes().length)}px` },
    canvas,
    probes,
    brush(summary, selected),
    tooltip(pointed),
  );
  followPointer(plot, { summary, lanes, select, pointed });
  const draw = () => {
    theme();
    const colours = /** @type {Colours} */ (
      Object.fromEntries(swatches.map(([name, one]) => [name, getComputedStyle(one).color]))
    );
    paint(canvas, width(), heightOf(lanes().length), (context) =>
      drawLanes(context, {
        lanes: lanes(),
        steps: steps(),
        ticks: axis().ticks,
        since: summary().since,
        until: summary().until,
        width: width(),
        colours,
      }),
    );
  };
  effect(() => void (width() && measured(DRAWN, draw)));
  watchSize(plot, (wide) => width.set(wide));
  watchTheme(() => theme.set(theme.peek() + 1));
  return h(
    "section.lanes",
    { "aria-label": "Calls over time" },
    h("div.lane-head", h("span", "Tool"), h("span.num", "Calls")),
    axisRow(summary, axis),
    h("div.lane-head.num", "p95"),
    h("ol.lane-names", each(lanes, "key", laneName), h("li.lane-steps", "Running at once")),
    h(
      "div.lane-field",
      {
        tabindex: "0",
        role: "group",
        "aria-label": "Time, arrow keys select a part of it",
        onkeydown: (/** @type {KeyboardEvent} */ event) => moveSelection(event, summary(), selected(), select),
      },
      plot,
    ),
    h(
      "ol.lane-figures",
      each(lanes, "key", laneFigure),
      h("li.lane-steps", () => `max ${Math.max(0, ...steps())}`),
    ),
    h("p.lane-note", { shown: () => summary().left_out }, () => leftOut(summary())),
  );
}

/** @param {HistorySummary} summary */
const leftOut = ({ left_out: more, spans }) =>
  `${formatCount(spans.length)} of ${formatCount(spans.length + more)} calls are drawn: those that failed, then the longest.`;

/** @param {Lane} lane @param {() => Lane} now */
function laneName({ name, server, isShared }, now) {
  const count = h("span.num", () => formatCount(now().calls));
  if (isShared) return h("li", h("span.cut.dim", name), count);
  const href = () => withQuery({ tool: name, from: null, to: null });
  const title = `${safeText(name, 200)}, ${safeText(server, 100)}`;
  return h("li", h("a.cut", { href, title }, safeText(name, 200)), count);
}

/** @param {Lane} _ @param {() => Lane} now */
const laneFigure = (_, now) =>
  h("li", () => {
    const { p95_s: most } = now();
    return most === null ? "" : formatSpan(most);
  });

/** @param {() => HistorySummary} summary @param {() => {step: number, ticks: number[]}} axis */
function axisRow(summary, axis) {
  const place = (/** @type {number} */ at) => {
    const { since, until } = summary();
    return `${((at - since) / (until - since)) * 100}%`;
  };
  const tick = (/** @type {number} */ at) =>
    h("span", { "style.left": () => place(at) }, () => formatAxisTime(at, axis().step));
  // A time near the right edge would be cut.
  const shown = () => axis().ticks.filter((at) => at < summary().until - axis().step / 3);
  return h("div.lane-axis", { "aria-hidden": "true" }, each(shown, String, tick));
}

/** The part of the time that is selected. @param {() => HistorySummary} summary @param {() => Time | null} selected */
function brush(summary, selected) {
  const place = (/** @type {number} */ at) => ((at - summary().since) / (summary().until - summary().since)) * 100;
  const left = () => `${place(selected()?.since ?? 0)}%`;
  const width = () => `${place(selected()?.until ?? 0) - place(selected()?.since ?? 0)}%`;
  const words = () => {
    const time = selected();
    return time ? selectionWords(time) : "";
  };
  return h("div.brush", { shown: selected, "style.left": left, "style.width": width }, h("span", words));
}

/** A part of the time in words. @param {Time} time */
export const selectionWords = ({ since, until }) =>
  `${formatMinute(since, until - since)} to ${formatMinute(until, until - since)}`;

/** What is under the pointer. @param {Signal<Pointed | null>} pointed */
function tooltip(pointed) {
  const text = () => {
    const found = pointed();
    if (!found) return null;
    const { lane, span } = found;
    const how = span.outcome ? OUTCOME_WORDS[/** @type {Outcome} */ (span.outcome)] : "running";
    const started = formatMinute(span.opened, 0);
    return h(
      "span",
      lane.isShared ? null : h("b", safeText(lane.name, 100)),
      ` ${started}, ${how} after ${formatSpan(span.finished - span.opened)}`,
    );
  };
  const place = {
    "style.left": () => `${pointed()?.left ?? 0}px`,
    "style.top": () => `${pointed()?.top ?? 0}px`,
    "data-right": () => (pointed()?.left ?? 0) > 400,
  };
  return h("div.lane-tip", { shown: pointed, "aria-hidden": "true", ...place }, text);
}

/**
 * Dragging selects a time, a click opens the call under the pointer, and a click beside all calls ends the selection.
 * @param {HTMLElement} plot
 * @param {{summary: () => HistorySummary, lanes: () => Lane[], select: (time: Time | null) => void, pointed: Signal<Pointed | null>}} chart
 */
function followPointer(plot, { summary, lanes, select, pointed }) {
  let start = /** @type {number | null} */ (null);
  const timeAt = (/** @type {number} */ x) => {
    const { since, until } = summary();
    return since + Math.min(1, Math.max(0, x / plot.clientWidth)) * (until - since);
  };
  const xOf = (/** @type {PointerEvent} */ event) => event.clientX - plot.getBoundingClientRect().left;
  const find = (/** @type {PointerEvent} */ event) => {
    const lane = lanes()[Math.floor((event.clientY - plot.getBoundingClientRect().top) / LANE_PX)];
    const near = timeAt(NEAR_PX) - timeAt(0);
    const span = lane && spanAt(lane, timeAt(xOf(event)), near);
    return span ? { lane, span } : null;
  };
  const dragged = (/** @type {number} */ x) => {
    const [a, b] = [timeAt(start ?? x), timeAt(x)].sort((one, other) => one - other);
    return { since: a, until: b };
  };
  plot.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    start = xOf(event);
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    const x = xOf(event);
    if (start !== null && Math.abs(x - start) >= NEAR_PX) {
      pointed.set(null);
      plot.dataset.dragging = "";
      placeBrush(plot, start, x);
      return;
    }
    const found = find(event);
    const top = Math.floor((event.clientY - plot.getBoundingClientRect().top) / LANE_PX) * LANE_PX;
    pointed.set(found && { ...found, left: x, top: top + LANE_PX });
    plot.style.cursor = found ? "pointer" : "";
  });
  plot.addEventListener("pointerleave", () => pointed.set(null));
  plot.addEventListener("pointercancel", () => {
    start = null;
    delete plot.dataset.dragging;
  });
  plot.addEventListener("pointerup", (event) => {
    if (start === null) return;
    const x = xOf(event);
    const found = find(event);
    delete plot.dataset.dragging;
    if (Math.abs(x - start) >= NEAR_PX) select(dragged(x));
    else if (found) navigate(callPath(found.span.id));
    else select(null);
    start = null;
  });
}

/** While it is dragged, the brush follows the pointer by custom properties alone. @param {HTMLElement} plot @param {number} start @param {number} x */
function placeBrush(plot, start, x) {
  plot.style.setProperty("--brush-left", `${Math.min(start, x)}px`);
  plot.style.setProperty("--brush-width", `${Math.abs(x - start)}px`);
}

/**
 * Arrow keys move the selection, with Shift its end; Escape ends it.
 * @param {KeyboardEvent} event @param {Time} whole @param {Time | null} selected @param {(time: Time | null) => void} select
 */
function moveSelection(event, whole, selected, select) {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === "Escape" && selected) select(null);
  else if (way) select(movedSelection(whole, selected, way, event.shiftKey));
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/**
 * The selection after an arrow key: the last sixth of the time at first.
 * @param {Time} whole @param {Time | null} selected @param {number} way @param {boolean} isEnd
 * @returns {Time}
 */
export function movedSelection({ since, until }, selected, way, isEnd) {
  const step = (until - since) / KEY_STEPS;
  if (!selected) return { since: until - 10 * step, until };
  const end = Math.min(until, Math.max(selected.since + step, selected.until + way * step));
  if (isEnd) return { since: selected.since, until: end };
  const length = selected.until - selected.since;
  const start = Math.min(until - length, Math.max(since, selected.since + way * step));
  return { since: start, until: start + length };
}

/**
 * Draw on a canvas with the pixels of the screen.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 * @param {(context: CanvasRenderingContext2D) => void} draw
 */
function paint(canvas, width, height, draw) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw(context);
}

/**
 * Do some work, and leave how long it took to the browser's profiler: the last time alone, as the browser keeps them all.
 * @template T
 * @param {string} name
 * @param {() => T} work
 * @returns {T}
 */
function measured(name, work) {
  const start = performance.now();
  const found = work();
  performance.clearMeasures(name);
  performance.measure(name, { start, end: performance.now() });
  return found;
}

/** @param {HTMLElement} element @param {(width: number) => void} then */
function watchSize(element, then) {
  const observer = new ResizeObserver(() => then(element.clientWidth));
  observer.observe(element);
  onCleanup(() => observer.disconnect());
}

/** Call a function when the colours change: by the system, or by the switch. @param {() => void} then */
function watchTheme(then) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(then);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  dark.addEventListener("change", then);
  onCleanup(() => {
    observer.disconnect();
    dark.removeEventListener("change", then);
  });
}
