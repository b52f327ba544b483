// waterfall: a tree of calls over time. Names and durations are HTML, the lanes are one SVG of the visible window, so that
// an hour at a zoom of ten seconds costs no more than a minute. A pointer, or the arrow keys, tell what happened when.

import { each, h, svg } from "../../lib/dom.js";
import { axisLabel, axisSpan, axisStep, axisTimes, zoomLevels, zoomWord } from "../../lib/call/timescale.js";
import { formatSpan, joinNonEmpty, plural, safeText } from "../../lib/format.js";
import { callPath, navigate } from "../../lib/router.js";
import { computed, effect, onCleanup, signal } from "../../lib/signal.js";
import { markAt, saidAround } from "../../lib/call/spans.js";
import { stateInWords } from "../../lib/call/facts_in_words.js";
import { patterns, rowShapes } from "./waterfall_marks.js";
import { stateIcon } from "../marks/state_icon.js";

/** @typedef {import("../../lib/call/spans.js").Row} Row */
/** @typedef {{at: number, row: number}} Pointer */
/**
 * `rowHeight` in pixels; `current`: the call whose view this is; `until`: where the axis ends, to compare with another.
 * @typedef {{rowHeight: number, current: string, isZoomable?: boolean, hasLegend?: boolean, until?: () => number}} WaterfallOptions
 */

const AXIS_PX = 22;
const FOLLOW_PX = 60; // between now and the edge of a window that follows it
const LEGEND = /** @type {[string, string][]} */ ([
  ["queued", "queued"],
  ["asked", "a person is asked"],
  ["below", "clocks stand still"],
  ["running", "running"],
  ["parent", "calls below it run"],
  ["silent", "silent over 10 s"],
  ["lost", "attempt lost"],
  ["cancelling", "cancelling"],
  ["ticks", "report"],
]);
let drawings = 0; // each has patterns of its own: a reference to those of a hidden drawing draws nothing

/**
 * @param {() => Row[]} rows the first is the one above all others
 * @param {WaterfallOptions} options
 */
export function waterfall(rows, options) {
  const view = new WaterfallView(rows, options);
  const names = h(
    "ul.wf-names",
    { role: "list" },
    each(rows, "id", (_, now) => nameOf(now, options)),
  );
  const head = options.isZoomable && h("span.wf-times-head", "Duration");
  const times = h(
    "div.wf-times",
    { "aria-hidden": "true" },
    head,
    each(rows, "id", (_, now) => durationOf(now)),
  );
  const top = options.isZoomable ? h("div.wf-tools", zoomButtons(view)) : null;
  return h(
    "div.waterfall",
    { "style.--wf-row": `${options.rowHeight}px`, "style.--wf-axis": `${AXIS_PX}px` },
    top,
    h("div.wf-grid", names, lanes(view), times, card(view)),
    options.hasLegend && legend(view),
  );
}

/** The part of the time that is seen, and the pointer in it. */
class WaterfallView {
  width = signal(600); // of the lanes, in pixels
  zoom = signal(0); // seconds that the width shows; 0: all
  left = signal(0); // of the window, in pixels from the start
  pointer = signal(/** @type {Pointer | null} */ (null));

  /** @param {() => Row[]} rows @param {WaterfallOptions} options */
  constructor(rows, options) {
    this.rows = rows;
    this.options = options;
    this.start = computed(() => rows()[0]?.from ?? 0);
    this.isLive = computed(() => rows()[0]?.isLive ?? false);
    this.end = computed(() => rows().reduce((end, { until }) => Math.max(end, until), this.start()));
    this.whole = computed(() => axisSpan(Math.max(this.end() - this.start(), options.until?.() ?? 0), this.width()));
    this.shown = computed(() => (this.zoom() && this.zoom() < this.whole() ? this.zoom() : this.whole()));
    this.scale = computed(() => this.width() / this.shown()); // pixels a second
    this.name = `wf${(drawings += 1)}`;
  }

  /** The place of an instant in the window, in pixels. @param {number} at */
  x = (at) => (at - this.start()) * this.scale() - this.left();

  /** The instant at a place in the window. @param {number} x */
  at = (x) => this.start() + (x + this.left()) / this.scale();

  /** What is told about the pointer: the call, the time, the mark, and what was said around it. */
  told = computed(() => {
    const { at, row: place } = this.pointer() ?? { at: 0, row: -1 };
    const row = this.rows()[place];
    if (!row) return null;
    const mark = at < row.from ? null : at > row.until ? null : markAt(row, at);
    const { before, after } = saidAround(row, at);
    const time = (/** @type {number} */ instant) => formatSpan(instant - this.start());
    const kind = mark?.kind === "parent" ? "running" : (mark?.kind ?? "");
    const outside = at < row.from ? "not opened yet" : `${stateInWords(row.state, row.outcome)} at ${time(row.until)}`;
    const what = mark
      ? mark.words || (kind === "running" ? "running" : `${kind} for ${formatSpan(mark.until - mark.from)}`)
      : outside;
    const span = mark ? `${time(mark.from)} to ${time(mark.until)}` : "";
    return {
      row,
      time: time(at),
      what: safeText(joinNonEmpty(what, span), 300),
      before: before?.message,
      after: after?.message,
    };
  });
}

/** The name of a row, as a link to its call. @param {() => Row} row @param {WaterfallOptions} options */
function nameOf(row, { current }) {
  const { id, tool, rails } = row();
  const name = safeText(tool, 200);
  const lines = rails.map((goesOn, level) => {
    const isOwn = level === rails.length - 1;
    return h("i.wf-rail", { "data-own": isOwn, "data-on": goesOn });
  });
  const attempts = () => (row().attempts > 1 ? plural(row().attempts, "attempt") : "");
  const words = h("span.sr", () => `, ${summary(row())}`);
  return h(
    "li.wf-name",
    ...lines,
    stateIcon(() => row().state, null),
    id === current ? h("span.cut", name) : h("a.cut", { href: callPath(id) }, name),
    words,
    h("span.wf-note", attempts),
  );
}

/** A row in words, for those who do not see the drawing. @param {Row} row */
function summary({ state, outcome, isLive, from, until, marks, ticks }) {
  const told = marks.filter(({ kind }) => kind !== "running" && kind !== "parent").slice(0, 5);
  const parts = told.map((mark) => mark.words || `${mark.kind} for ${formatSpan(mark.until - mark.from)}`);
  const ended = isLive ? [] : [formatSpan(until - from), plural(ticks.length, "report")];
  return safeText([stateInWords(state, outcome), ...ended, ...parts].join(", "), 600);
}

/** @param {() => Row} row */
const durationOf = (row) => h("span.wf-time", () => formatSpan(row().until - row().from));

/**
 * The lanes: a place that scrolls, and in it a drawing of the part that is seen. The arrow keys move the pointer.
 * @param {WaterfallView} view
 */
function lanes(view) {
  /** @type {HTMLElement} */ const scroller = h("div.wf-lanes", {
    tabindex: 0,
    role: "slider",
    "aria-label": "Point in time",
    "aria-valuemin": 0,
    "aria-valuemax": () => Math.round((view.end() - view.start()) * 1000) / 1000,
    "aria-valuenow": () => Math.max(0, Math.round(((view.pointer()?.at ?? view.start()) - view.start()) * 1000) / 1000),
    "aria-valuetext": () => pointerWords(view),
    onkeydown: (/** @type {KeyboardEvent} */ event) => moveByKey(view, scroller, event),
    onpointermove: (/** @type {PointerEvent} */ event) => pointAt(view, scroller, event),
    onpointerdown: (/** @type {PointerEvent} */ event) => pointAt(view, scroller, event),
    onpointerleave: () => view.pointer.set(null),
    onblur: () => view.pointer.set(null),
    onscroll: () => view.left.set(scroller.scrollLeft),
  });
  const wide = h("div.wf-wide", { "style.width": () => `${Math.round(view.whole() * view.scale())}px` });
  wide.append(drawing(view));
  scroller.append(wide);
  followNow(view, scroller);
  const observer = new ResizeObserver(([{ contentRect }]) => contentRect.width && view.width.set(contentRect.width));
  observer.observe(scroller);
  onCleanup(() => observer.disconnect());
  return scroller;
}

/** Keep the end of a live call in sight while nobody has scrolled away from it. @param {WaterfallView} view @param {HTMLElement} scroller */
function followNow(view, scroller) {
  let shownEnd = 0; // of the whole, in pixels, when it was last followed
  effect(() => {
    const end = Math.round(view.whole() * view.scale());
    const now = view.x(view.end()) + view.left(); // in pixels from the start
    const isZoomed = view.zoom() > 0 && end > view.width() + 1;
    if (!isZoomed || !view.isLive()) shownEnd = 0;
    else if (shownEnd === 0 || scroller.scrollLeft > shownEnd - view.width() * 1.25) {
      shownEnd = Math.min(end, Math.round(now) + FOLLOW_PX);
      scroller.scrollLeft = shownEnd - view.width();
    }
  });
}

/** The drawing of the window. @param {WaterfallView} view */
function drawing(view) {
  const { rowHeight } = view.options;
  const height = () => AXIS_PX + view.rows().length * rowHeight;
  const axis = svg("g", { class: "wf-axis" });
  const marks = svg("g", { class: "wf-marks" });
  effect(() => axis.replaceChildren(...axisShapes(view, height())));
  effect(() => {
    const visible = { from: view.at(-20), until: view.at(view.width() + 20) };
    const shapes = view
      .rows()
      .flatMap((row, at) =>
        rowShapes(row, { x: view.x, y: AXIS_PX + (at + 0.5) * rowHeight, name: view.name, ...visible }),
      );
    marks.replaceChildren(...shapes);
  });
  const lineAt = (/** @type {string} */ name, /** @type {() => number | null} */ at) => {
    const x = () => (at() === null ? -10 : Math.round(view.x(at() ?? 0)) + 0.5);
    return svg("line", { class: name, x1: x, x2: x, y1: AXIS_PX - 4, y2: height });
  };
  return svg(
    "svg",
    { class: "wf-window", width: view.width, height, "aria-hidden": "true" },
    patterns(view.name),
    axis,
    marks,
    lineAt("wf-now", () => (view.isLive() ? view.end() : null)),
    lineAt("wf-pointer", () => view.pointer()?.at ?? null),
  );
}

/** Labels and lines of the time axis. @param {WaterfallView} view @param {number} height */
function axisShapes(view, height) {
  const step = axisStep(view.shown(), view.width());
  const first = view.left() / view.scale();
  const now = view.isLive() ? view.x(view.end()) : -100;
  const shapes = axisTimes(first, first + view.shown(), step).flatMap((seconds) => {
    const x = Math.round(seconds * view.scale() - view.left()) + 0.5;
    const line = svg("line", { x1: x, x2: x, y1: AXIS_PX - 4, y2: height });
    if (Math.abs(x - now) < 40 || x > view.width() - 14) return [line]; // no room: there is "now", or the end
    return [
      line,
      svg("text", { x: Math.max(x, 1), y: 13, "text-anchor": x < 16 ? "start" : "middle" }, axisLabel(seconds, step)),
    ];
  });
  if (now > -20)
    shapes.push(
      svg("text", { class: "wf-now-word", x: now, y: 13, "text-anchor": now < 16 ? "start" : "middle" }, "now"),
    );
  return shapes;
}

/** The card beside the pointer. @param {WaterfallView} view */
function card(view) {
  const place = () => {
    const { at, row } = view.pointer() ?? { at: 0, row: 0 };
    const x = view.x(at);
    return { x, isLeft: x > view.width() / 2, y: AXIS_PX + row * view.options.rowHeight };
  };
  const quoted = (/** @type {string} */ word, /** @type {string | undefined} */ text) =>
    text && `${word}: “${safeText(text, 120)}”`;
  return h(
    "div.wf-card",
    {
      "aria-hidden": "true",
      shown: () => view.told(),
      "data-left": () => place().isLeft,
      "style.--wf-x": () => `${Math.round(place().x)}px`,
      "style.--wf-y": () => `${place().y}px`,
    },
    h("b", () => safeText(view.told()?.row.tool, 200)),
    h("span.faint", () => ` at ${view.told()?.time}`),
    h("div.dim", () => view.told()?.what ?? ""),
    h("div.dim", () =>
      [quoted("before", view.told()?.before), quoted("after", view.told()?.after)].filter(Boolean).join(" · "),
    ),
  );
}

/** @param {WaterfallView} view */
function pointerWords(view) {
  const told = view.told();
  if (!told)
    return `${plural(view.rows().length, "call")} over ${formatSpan(view.end() - view.start())}; the arrow keys move through it`;
  const said = [told.before && `before: ${told.before}`, told.after && `after: ${told.after}`]
    .filter(Boolean)
    .join("; ");
  return safeText([`${told.row.tool} at ${told.time}`, told.what, said].filter(Boolean).join(": "), 500);
}

/** @param {WaterfallView} view @param {HTMLElement} scroller @param {PointerEvent} event */
function pointAt(view, scroller, event) {
  const { left, top } = scroller.getBoundingClientRect();
  const row = Math.floor((event.clientY - top - AXIS_PX) / view.options.rowHeight);
  if (row < 0 || row >= view.rows().length) view.pointer.set(null);
  else view.pointer.set({ at: view.at(event.clientX - left), row });
}

/** @param {WaterfallView} view @param {HTMLElement} scroller @param {KeyboardEvent} event */
function moveByKey(view, scroller, event) {
  const last = view.rows().length - 1;
  const { at, row } = view.pointer.peek() ?? { at: view.start(), row: 0 };
  const step = (view.shown() / 100) * (event.shiftKey ? 10 : 1);
  const moves = /** @type {Record<string, [number, number]>} */ ({
    ArrowRight: [at + step, row],
    ArrowLeft: [at - step, row],
    ArrowDown: [at, Math.min(last, row + 1)],
    ArrowUp: [at, Math.max(0, row - 1)],
    Home: [view.start(), row],
    End: [view.end(), row],
  });
  const target = view.rows()[row];
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" && target && target.id !== view.options.current) navigate(callPath(target.id));
  else if (!moves[event.key] || last < 0) return;
  else {
    const [next, place] = moves[event.key];
    view.pointer.set({ at: Math.min(view.end(), Math.max(view.start(), next)), row: place });
    const x = view.x(next);
    if (x < 0 || x > view.width()) scroller.scrollLeft += x - view.width() / 2;
  }
  event.preventDefault();
}

/** @param {WaterfallView} view */
function zoomButtons(view) {
  const levels = computed(() => [0, ...zoomLevels(view.end() - view.start())].map((level) => ({ level })));
  const button = (/** @type {{level: number}} */ { level }) =>
    h(
      "button",
      { type: "button", "aria-pressed": () => String(view.zoom() === level), onclick: () => view.zoom.set(level) },
      level ? zoomWord(level) : "Fit",
    );
  return h(
    "span.wf-zoom",
    { shown: () => levels().length > 1 },
    h("span.faint", { "aria-hidden": "true" }, "Zoom"),
    h("span.view-switch", { role: "group", "aria-label": "Zoom" }, each(levels, "level", button)),
  );
}

/** The marks that are drawn, and their meaning. @param {WaterfallView} view */
function legend(view) {
  const least_s = () => (view.end() - view.start()) / 400; // a mark that is hardly seen needs no words
  const drawn = computed(() => {
    const marks = view.rows().flatMap((row) => row.marks);
    return new Set(marks.filter(({ from, until }) => until - from >= least_s()).map(({ kind }) => String(kind)));
  });
  const hasTicks = () => view.rows().some(({ ticks }) => ticks.length);
  const shown = () => LEGEND.filter(([kind]) => drawn().has(kind) || (kind === "ticks" && hasTicks()));
  return h(
    "div.wf-legend",
    each(shown, "0", ([kind, words]) => h("span", h("i", { "data-mark": kind }), words)),
  );
}
