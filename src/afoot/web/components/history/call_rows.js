// callRows: ended calls as rows, each wholly a link to its page; trees unfold in place. Calls that do not match a filter,
// but stand above one that does, are grey.

import { each, h } from "../../lib/dom.js";
import { formatClock, formatCount, formatDay, formatSpan, safeText } from "../../lib/format.js";
import { registerKeys } from "../../lib/keys.js";
import { callPath } from "../../lib/router.js";
import { OUTCOME_WORDS, stateOf } from "../../lib/state.js";
import { computed, signal } from "../../lib/signal.js";
import { now } from "../../lib/time.js";
import { icon } from "../marks/icon.js";
import { stateIcon } from "../marks/state_icon.js";

/** @typedef {import("../../lib/history/call_pages.js").TreeRow} TreeRow */
/** @typedef {import("../../lib/history/call_pages.js").ListedCall} ListedCall */
/** @typedef {import("../../lib/history/lanes.js").Span} Span */
/** @typedef {{label: string, fold: (id: string, isOpen?: boolean) => unknown, isUnfolded: (id: string) => boolean, spanOf?: (id: string) => Span | undefined, head?: HTMLElement}} RowOptions */

const NOTABLE_S = 1; // a shorter wait before the start is not mentioned

/**
 * @param {() => readonly TreeRow[]} rows
 * @param {RowOptions} options
 */
export function callRows(rows, { label, fold, isUnfolded, spanOf = () => undefined, head }) {
  const longest = computed(() => rows().reduce((most, { call }) => Math.max(most, durationOf(call)), 0));
  const current = signal(""); // the row that is in the order of the Tab key
  const tabStop = () => (rows().some(({ call }) => call.id === current()) ? current() : (rows()[0]?.call.id ?? ""));
  const row = (/** @type {TreeRow} */ first, /** @type {() => TreeRow} */ newest) =>
    callRow(first.call, newest, { longest, fold, spanOf, tabStop, isTop: first.depth === 0 });
  const onfocusin = (/** @type {any} */ { target }) => {
    const id = target.closest("[role=row]")?.dataset.call;
    if (id) current.set(id);
  };
  const grid = h(
    "div.call-rows",
    {
      role: "treegrid",
      "aria-label": label,
      shown: () => rows().length,
      onfocusin,
      onkeydown: (/** @type {KeyboardEvent} */ event) => moveFocus(event, { fold, isUnfolded }),
    },
    head,
    each(rows, ({ call }) => call.id, row),
  );
  const here = () => /** @type {HTMLElement | null} */ (grid.querySelector(`[data-call="${CSS.escape(tabStop())}"]`));
  const isFocused = () => here()?.contains(document.activeElement);
  const step = (/** @type {"nextElementSibling" | "previousElementSibling"} */ way) =>
    focusRow(isFocused() ? here()?.[way] : here());
  const when = () => rows().length > 0;
  const list = { fold, isUnfolded };
  registerKeys(
    { keys: "j", words: "Next row", act: () => step("nextElementSibling"), when, repeats: true },
    { keys: "k", words: "Row before", act: () => step("previousElementSibling"), when, repeats: true },
    { keys: "l", words: "Unfold", act: () => withRow(here(), (one) => unfoldRow(one, list)), when },
    { keys: "h", words: "Fold", act: () => withRow(here(), (one) => foldRow(one, list)), when },
  );
  return grid;
}

/** @param {HTMLElement | null} row @param {(row: HTMLElement) => void} act */
const withRow = (row, act) => void (row && act(row));

/**
 * @param {ListedCall} call
 * @param {() => TreeRow} newest
 * @param {{longest: () => number, fold: (id: string) => unknown, spanOf: (id: string) => Span | undefined, tabStop: () => string, isTop: boolean}} list
 */
function callRow(call, newest, { longest, fold, spanOf, tabStop, isTop }) {
  const { id, tool, server, caller, opened } = call;
  const state = stateOf({ ...call, open: new Map(), hindered: null, stalled: false, attempt: 0 });
  const total = call.below?.total ?? 0;
  const isOpen = () => newest().isOpen;
  const isContext = () => newest().isContext;
  const name = safeText(tool, 200);
  const duration = durationOf(call);
  const shownState = () => (state === "done" && spanOf(id)?.lost.length ? "retrying" : state);
  const share = () => (longest() ? duration / longest() : 0).toFixed(3);
  const cell = (/** @type {`span.${string}`} */ tag, /** @type {Child[]} */ ...children) =>
    h(tag, { role: "gridcell" }, ...children);
  const caret = h(
    "button.caret",
    {
      type: "button",
      tabindex: "-1",
      shown: () => newest().hasBelow,
      "aria-label": () => `${isOpen() ? "Fold" : "Unfold"} the calls below ${name}`,
      onclick: () => fold(id),
    },
    () => icon(isOpen() ? "down" : "right", "s"),
  );
  return h(
    "div.call-row-ended",
    {
      role: "row",
      "data-call": id,
      "data-state": state,
      "data-context": isContext,
      "aria-level": () => String(newest().depth + 1),
      "aria-expanded": () => (newest().hasBelow ? String(isOpen()) : null),
    },
    cell(
      "span.row-state",
      stateIcon(shownState, () => endWords(call, shownState() === "retrying")),
    ),
    cell(
      "span.row-tool",
      () => treeLines(newest()),
      caret,
      h("a.row-link", { href: callPath(id), tabindex: () => (tabStop() === id ? "0" : "-1") }, name),
      h("span.sr", { shown: isContext }, "does not match the filter"),
      isTop && h("span.row-server", safeText(server, 100)),
    ),
    cell(
      "span.row-result",
      h("span.cut", () => resultText(call)),
      h("span.faint", () => asideText(call, spanOf(id))),
    ),
    cell("span.row-below.num", total ? formatCount(total) : ""),
    cell("span.row-caller.cut", isTop ? safeText(caller, 100) : ""),
    cell("span.row-started.num", h("time", { datetime: new Date(opened * 1000).toISOString() }, startedText(opened))),
    cell("span.row-duration.num", formatSpan(duration)),
    cell("span.row-share", h("i", { "style.--share": share })),
  );
}

/** The lines that lead from a call to the one that made it. @param {TreeRow} row */
function treeLines({ depth, isLast, guides }) {
  if (!depth) return null;
  const lines = guides.map((goesOn) => h("i", { "data-line": goesOn ? "through" : "none" }));
  return h("span.tree-lines", ...lines, h("i", { "data-line": isLast ? "end" : "branch" }));
}

/** @param {Pick<CallView, "opened" | "finished">} call */
const durationOf = ({ opened, finished }) => Math.max(0, (finished ?? now.peek()) - opened);

/** How a call ended, for screen readers. @param {CallView} call @param {boolean} isRetried */
const endWords = ({ outcome }, isRetried) => (isRetried ? "done at a later attempt" : OUTCOME_WORDS[outcome ?? "lost"]);

/** What a call said last, or why it did not end well. @param {CallView} call */
const resultText = ({ message, outcome }) => safeText(message || (outcome === "ok" ? "" : outcome), 300);

/** What else is worth telling in a row: attempts, and the time before the start. @param {CallView} call @param {Span | undefined} span */
export function asideText({ opened, started, approved }, span) {
  const attempts = (span?.lost.length ?? 0) + 1;
  const asked = (span?.asked ?? []).reduce((sum, [from, to]) => sum + to - from, 0);
  const isApproved = approved === "user" || approved === "caller";
  const before = started != null && started - opened >= NOTABLE_S && !asked ? started - opened : 0;
  return [
    attempts > 1 && `${attempts} attempts`,
    asked >= NOTABLE_S && `asked ${formatSpan(asked)}`,
    before && `${isApproved ? "asked" : "queued"} ${formatSpan(before)}`,
  ]
    .filter(Boolean)
    .map((text) => ` · ${text}`)
    .join("");
}

/** The time of today, with the day before other times. @param {number} at */
function startedText(at) {
  const isToday = new Date(at * 1000).toDateString() === new Date(now.peek() * 1000).toDateString();
  return isToday ? formatClock(at) : `${formatDay(at)} ${formatClock(at).slice(0, 5)}`;
}

/**
 * Up and down go from row to row; right unfolds, left folds or goes to the row above in the tree.
 * @param {KeyboardEvent} event
 * @param {Pick<RowOptions, "fold" | "isUnfolded">} list
 */
function moveFocus(event, list) {
  const row = event.target instanceof Element ? event.target.closest("[role=row]") : null;
  if (!(row instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.altKey) return;
  const { key } = event;
  if (key === "ArrowDown" || key === "ArrowUp")
    focusRow(key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling);
  else if (key === "ArrowRight") unfoldRow(row, list);
  else if (key === "ArrowLeft") foldRow(row, list);
  else return;
  event.preventDefault();
}

/** @param {HTMLElement} row @param {Pick<RowOptions, "fold" | "isUnfolded">} list */
function unfoldRow(row, { fold, isUnfolded }) {
  const id = row.dataset.call ?? "";
  if (row.hasAttribute("aria-expanded") && !isUnfolded(id)) void fold(id, false);
}

/** Fold a row, or go to the row above it in the tree. @param {HTMLElement} row @param {Pick<RowOptions, "fold" | "isUnfolded">} list */
function foldRow(row, { fold, isUnfolded }) {
  const id = row.dataset.call ?? "";
  if (isUnfolded(id)) return void fold(id, true);
  const level = Number(row.getAttribute("aria-level"));
  let above = level > 1 ? row.previousElementSibling : null;
  while (above && Number(above.getAttribute("aria-level")) >= level) above = above.previousElementSibling;
  focusRow(above);
}

/** @param {Element | null | undefined} row */
const focusRow = (row) => /** @type {HTMLElement | null | undefined} */ (row?.querySelector("a.row-link"))?.focus();
