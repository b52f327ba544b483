// VirtualList: a long list of which only the rows in view exist, with one tab stop that the arrow keys move.

import { each, h } from "../lib/dom.js";
import { computed, distinct, effect, onCleanup, signal } from "../lib/signal.js";

/** @typedef {{key: string}} Row */
/**
 * @template {Row} T
 * @typedef {object} VirtualListOptions
 * @property {() => readonly T[]} rows
 * @property {() => number} pinned how many of the first rows always exist, above the others
 * @property {() => (row: T) => number} height of a row in px; it may change with the window
 * @property {(before: T, now: T) => boolean} isSame whether a row that was made again needs not be drawn anew
 * @property {(row: () => T, isSeen: () => boolean) => HTMLElement} render called once for each row, with its newest
 *   value, and whether it is in the window: what nobody sees need not be drawn anew
 */

const OVERSCAN = 240; // px above and below the window for which rows exist
const STEP = 72; // px by which the window moves before other rows are made
const PAGE = 0.8; // of the window: a page up or down

/**
 * The rows must have the role `row`, and everything focusable in them the tab index -1.
 * @template {Row} T
 */
export class VirtualList {
  active = signal(""); // the key of the row that was given the tab stop
  #options;
  #view = signal({ top: 0, bottom: 0 }); // of the window, from the top of the rows that scroll
  #seen = signal({ first: 0, last: Infinity }); // indices of the rows in the window
  #indexOf = computed(() => new Map(this.#options.rows().map(({ key }, at) => [key, at])));
  #tops = computed(() => topsOf(this.#options.rows(), this.#options.height()));
  #shown = computed(() => this.#rowsInView());

  /** The row with the tab stop: the first one, until another one was given it. */
  activeKey = computed(() => (this.#indexOf().has(this.active()) ? this.active() : this.#rowAt(0)?.key));

  /** @param {VirtualListOptions<T>} options */
  constructor(options) {
    this.#options = options;
    const { rows, pinned } = options;
    const place = (/** @type {T} */ _, /** @type {() => T} */ row) => this.#place(row);
    const keepAbove = keeper(options.isSame);
    const keep = keeper(options.isSame);
    const above = () => keepAbove(rows().slice(0, pinned()));
    const shown = () => keep(this.#shown());
    this.pinnedRows = h("div.pinned-rows", { role: "rowgroup" }, each(above, "key", place));
    this.scrolledRows = h("div.scrolled-rows", { role: "rowgroup" }, each(shown, "key", place));
    effect(() => {
      this.scrolledRows.style.setProperty("height", `${(this.#tops().at(-1) ?? 0) - this.#pinnedHeight()}px`);
      this.scrolledRows.style.setProperty("--pinned-height", `${this.#pinnedHeight()}px`);
    });
    this.#watchWindow();
  }

  /** Properties of the element that holds both: they let the arrow keys move the tab stop. */
  props = {
    onkeydown: (/** @type {KeyboardEvent} */ event) => this.#onKey(event),
    onfocusin: (/** @type {FocusEvent} */ { target }) => {
      const row = target instanceof Element && target.closest("[data-key]");
      if (row) this.active.set(row.getAttribute("data-key") ?? "");
    },
  };

  /** Move the focus by so many rows; the first time it only comes to the row with the tab stop. @param {number} by */
  move(by) {
    const at = this.#indexOf().get(this.activeKey() ?? "") ?? 0;
    const isHere = this.#nodeOf(this.activeKey())?.contains(document.activeElement);
    this.moveTo(isHere ? at + by : at);
  }

  /** Move the focus to a row. @param {number} index */
  moveTo(index) {
    const row = this.#rowAt(Math.min(this.#options.rows().length - 1, Math.max(0, index)));
    if (!row) return;
    this.active.set(row.key);
    const node = this.#nodeOf(row.key);
    node?.focus({ preventScroll: true });
    node?.scrollIntoView({ block: "nearest" });
  }

  /** The index of a row, or -1. @param {string} key */
  indexOf(key) {
    return this.#indexOf().get(key) ?? -1;
  }

  /** @param {number} index @returns {T | undefined} */
  #rowAt(index) {
    return this.#options.rows()[index];
  }

  #pinnedHeight() {
    return this.#tops()[this.#options.pinned()] ?? 0;
  }

  #rowsInView() {
    const { rows, pinned } = this.#options;
    const { top, bottom } = this.#view();
    const first = Math.max(pinned(), lastBefore(this.#tops(), top + this.#pinnedHeight()));
    const last = lastBefore(this.#tops(), bottom + this.#pinnedHeight());
    const found = rows().slice(first, last + 1);
    // The row with the tab stop always exists, so that the focus is never lost.
    const active = this.#indexOf().get(this.activeKey() ?? "") ?? -1;
    if (active >= pinned() && active < first) found.unshift(rows()[active]);
    if (active > last) found.push(rows()[active]);
    return found;
  }

  /** A row at its place. @param {() => T} row */
  #place(row) {
    const index = computed(() => this.#indexOf().get(row().key) ?? 0);
    const isSeen = distinct(() => {
      const { first, last } = this.#seen();
      return index() < this.#options.pinned() || (index() >= first && index() <= last);
    });
    const node = this.#options.render(row, isSeen);
    node.dataset.key = row().key;
    effect(() => {
      const top = (this.#tops()[index()] ?? 0) - this.#pinnedHeight();
      node.style.setProperty("transform", index() < this.#options.pinned() ? "none" : `translateY(${top}px)`);
    });
    effect(() => node.setAttribute("aria-rowindex", String(index() + 2))); // after the row of heads
    effect(() => void (node.tabIndex = this.activeKey() === row().key ? 0 : -1));
    return node;
  }

  #watchWindow() {
    const measure = () => this.#measure();
    const ended = new AbortController();
    document.addEventListener("scroll", measure, { capture: true, passive: true, signal: ended.signal });
    addEventListener("resize", measure, { signal: ended.signal });
    const resized = new ResizeObserver(measure); // also tells when the list is in the page
    resized.observe(this.pinnedRows);
    resized.observe(this.scrolledRows);
    onCleanup(() => {
      ended.abort();
      resized.disconnect();
    });
  }

  #measure() {
    const at = this.scrolledRows.getBoundingClientRect().top;
    const top = Math.floor((-at - OVERSCAN) / STEP) * STEP;
    const bottom = Math.ceil((innerHeight - at + OVERSCAN) / STEP) * STEP;
    const before = this.#view.peek();
    if (top !== before.top || bottom !== before.bottom) this.#view.set({ top, bottom });
    const first = lastBefore(this.#tops(), this.#pinnedHeight() - at);
    const last = lastBefore(this.#tops(), this.#pinnedHeight() - at + innerHeight);
    const seen = this.#seen.peek();
    if (first !== seen.first || last !== seen.last) this.#seen.set({ first, last });
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const isPlain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey);
    const act = KEYS[event.key];
    if (!act || !isPlain || event.defaultPrevented || isField(event.target)) return;
    event.preventDefault();
    act(this, this.#rowsOnPage());
  }

  #rowsOnPage() {
    const row = this.#rowAt(0);
    return row ? Math.max(1, Math.floor((innerHeight * PAGE) / this.#options.height()(row))) : 1;
  }

  /** @param {string | undefined} key @returns {HTMLElement | undefined} */
  #nodeOf(key) {
    const nodes = /** @type {HTMLElement[]} */ ([...this.pinnedRows.children, ...this.scrolledRows.children]);
    return nodes.find((node) => node.dataset.key === key);
  }
}

/** @type {Record<string, (list: VirtualList<any>, page: number) => void>} */
const KEYS = {
  ArrowDown: (list) => list.move(1),
  ArrowUp: (list) => list.move(-1),
  PageDown: (list, page) => list.move(page),
  PageUp: (list, page) => list.move(-page),
  Home: (list) => list.moveTo(0),
  End: (list) => list.moveTo(Infinity),
};

/**
 * Takes rows that were made again, and gives those of the last time where they are the same.
 * @template {Row} T
 * @param {(before: T, now: T) => boolean} isSame
 */
function keeper(isSame) {
  /** @type {Map<string, T>} */ let last = new Map();
  return (/** @type {readonly T[]} */ rows) => {
    const kept = rows.map((row) => {
      const before = last.get(row.key);
      return before && isSame(before, row) ? before : row;
    });
    last = new Map(kept.map((row) => [row.key, row]));
    return kept;
  };
}

/** The top of each row, and the end of the last. @template T @param {readonly T[]} rows @param {(row: T) => number} height */
function topsOf(rows, height) {
  const tops = new Float64Array(rows.length + 1);
  rows.forEach((row, at) => void (tops[at + 1] = tops[at] + height(row)));
  return tops;
}

/** The index of the last row that begins before this place. @param {Float64Array} tops @param {number} place */
function lastBefore(tops, place) {
  let low = 0;
  let high = Math.max(0, tops.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Whether the arrow keys move a cursor in this element. @param {EventTarget | null} target */
const isField = (target) => target instanceof Element && target.closest("input, textarea, select") !== null;
