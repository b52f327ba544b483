// callRow: a live call in one line: state, tool, progress or answer, time left, message, the two clocks, and its action.
// On a phone the same cells stand in two lines.

import { each, h } from "../../lib/dom.js";
import { readClocks } from "../../lib/call/clock_reading.js";
import {
  formatLeft,
  formatNumber,
  formatPercent,
  formatSpan,
  plural,
  progressFraction,
  safeText,
} from "../../lib/format.js";
import { callPath } from "../../lib/router.js";
import { computed, distinct } from "../../lib/signal.js";
import { STATE_WORDS, stateOf } from "../../lib/state.js";
import { shownNow } from "../../lib/time.js";
import { rowAnswer } from "../question/answer_row.js";
import { cancelButton, rerunButton } from "../cancel.js";
import { ceilingLine, silenceRing } from "../marks/clocks.js";
import { icon } from "../marks/icon.js";
import { progressBar } from "../marks/progress_bar.js";
import { stateIcon } from "../marks/state_icon.js";
import { messageCell, timeLeft } from "./message_cell.js";

/** @typedef {import("./rows.js").CallRow} CallRow */
/** @typedef {import("../../lib/state.js").CallState} CallState */
/** A call as its row shows it now. */
/** @typedef {{row: () => CallRow, call: () => Call, at: () => number, clocks: () => ClockReading, state: () => CallState, name: string}} Shown */
/** @typedef {{isSelected: (id: string) => boolean, select: (event: MouseEvent, id: string) => void, toggle: (key: string) => void}} RowActions */

const IS_QUIET = ["queued", "cancelling", "done", "cancelled"]; // rows in softer ink

/**
 * @param {() => CallRow} row
 * @param {() => boolean} isSeen whether it is in the window: only then its readings and clocks are drawn
 * @param {RowActions} actions
 * @returns {HTMLElement}
 */
export function callRow(row, isSeen, actions) {
  const shown = shownCall(row, isSeen);
  const { state, name } = shown;
  const { id } = row().entry;
  const caret = () => (row().hasChildren ? [{ id }] : []);
  return h(
    "div.live-row",
    {
      role: "row",
      "data-call": row().isRemote || row().isPlace ? null : id,
      "data-state": state,
      "data-first": () => row().isFirst,
      "data-quiet": () => IS_QUIET.includes(state()),
      "aria-level": () => row().guides.length + 1,
      "style.--depth": () => row().guides.length,
      "aria-expanded": () => (row().hasChildren ? String(row().isOpen) : null),
      "aria-selected": () => (row().isRemote ? null : String(actions.isSelected(id))),
    },
    cell("state", stateIcon(state)),
    cell(
      "tool",
      h("span.guides", each(guidesOf(row), "key", guide)),
      each(caret, "id", () => caretButton(row, name, actions)),
      row().isRemote
        ? h("b.name.cut", name)
        : h("a.name.cut", { href: callPath(id), tabindex: -1, onclick: (event) => actions.select(event, id) }, name),
      h("span.server.cut", { shown: () => !row().guides.length || isFolded(row()) }, () => placeWords(shown)),
    ),
    cell(
      "progress",
      each(
        () => [progressKind(shown)],
        String,
        (kind) => progressParts(kind, shown),
      ),
    ),
    cell("left", () => timeLeft(shown)),
    messageCell(shown),
    cell(
      "silent",
      silenceRing(() => (hasRing(shown) ? shown.clocks() : null)),
      silenceFigure(shown),
    ),
    cell(
      "elapsed",
      ceilingLine(() => (hasCeiling(shown) ? shown.clocks() : null)),
      elapsedFigure(shown),
    ),
    cell(
      "action",
      each(
        () => actionOf(shown),
        String,
        (kind) => actionButton(kind, row().entry),
      ),
    ),
  );
}

/** @param {string} name @param {...Child} parts */
export const cell = (name, ...parts) => h("span", { class: `cell ${name}`, role: "gridcell" }, ...parts);

/** @param {() => CallRow} row @param {() => boolean} isSeen @returns {Shown} */
function shownCall(row, isSeen) {
  const call = () => (isSeen() ? row().entry.reading() : row().entry.call());
  const at = computed(() => {
    if (isSeen()) row().entry.pulse();
    return call().state === "finished" ? 0 : shownNow();
  });
  const clocks = computed(() => readClocks(call(), at()));
  const state = distinct(() => stateOf(call(), clocks()));
  return { row, call, at, clocks, state, name: safeText(row().entry.call.peek().tool, 200) };
}

/** @param {CallRow} row */
const isFolded = ({ hasChildren, isOpen }) => hasChildren && !isOpen;

/** The server of a call or the call above it, and how many calls are folded below it. @param {Shown} shown */
function placeWords({ row, call }) {
  const { within, guides } = row();
  const place = within ? `in ${safeText(within, 100)}` : guides.length ? "" : safeText(call().server, 100);
  const { total } = call().children;
  return [place, isFolded(row()) && total && plural(total, "call")].filter(Boolean).join(" · ");
}

/** The lines of the levels above, from the top. @param {() => CallRow} row */
const guidesOf = (row) => () => {
  const { guides } = row();
  return guides.map((goesOn, at) => ({ key: `${at}`, goesOn, isOwn: at === guides.length - 1 }));
};

/** @param {{key: string, goesOn: boolean, isOwn: boolean}} _ @param {() => {goesOn: boolean, isOwn: boolean}} now */
const guide = (_, now) => h("i.guide", { "data-own": () => now().isOwn, "data-goes-on": () => now().goesOn });

/** @param {() => CallRow} row @param {string} name @param {RowActions} actions */
function caretButton(row, name, { toggle }) {
  const onclick = () => toggle(row().key);
  const words = () => `${row().isOpen ? "Fold" : "Unfold"} the calls below ${name}`;
  const about = { type: "button", tabindex: -1, "aria-label": words, "data-open": () => row().isOpen, onclick };
  return h("button.caret.quiet", about, icon("right"));
}

/** What stands in the column of progress. @param {Shown} shown */
function progressKind({ state, row }) {
  if (state() === "waiting" && !row().isRemote) return row().isPlace ? "asks" : "answer";
  return state() === "queued" ? "word" : "bar";
}

/** @param {string} kind @param {Shown} shown */
function progressParts(kind, { row, call, state, name }) {
  if (kind === "answer") return withoutTabStops(rowAnswer(row().entry));
  if (kind === "asks") return h("span.asks-you", "asks you");
  if (kind === "word") return h("span.faint", STATE_WORDS.queued);
  const share = () => (call().outcome === "ok" ? 1 : progressFraction(call()));
  const figure = () => {
    const known = share();
    return known === null ? formatNumber(call().latest?.progress ?? NaN).replace("NaN", "") : formatPercent(known);
  };
  const isCount = () => share() === null;
  return h("span.progress-parts", progressBar(call, name, state), h("span.percent", { "data-count": isCount }, figure));
}

/** Whether a ring says something: the call runs, or a person is asked. @param {Shown} shown */
const hasRing = ({ clocks, row }) => !row().isRemote && ["", "asked", "below"].includes(clocks().frozen);

/** @param {Shown} shown */
const hasCeiling = ({ clocks, row }) => !row().isRemote && !["queued", "ended"].includes(clocks().frozen);

/** The silence so far, or the time left to answer. @param {Shown} shown */
function silenceFigure(shown) {
  const text = () => {
    const { frozen, silent_s, answer_left_s } = shown.clocks();
    if (answer_left_s !== null) return formatLeft(answer_left_s);
    return !frozen && hasRing(shown) ? formatSpan(silent_s) : "";
  };
  const tone = () => (shown.clocks().frozen ? "you" : shown.clocks().is_silence_last && "bad");
  return h("span.figure", { "data-tone": tone }, text);
}

/** The time on the clock; of a call that waits in the queue, the time since it was opened; of one that ended, its duration. @param {Shown} shown */
function elapsedFigure({ row, call, at, clocks }) {
  const text = () => {
    if (row().isRemote) return "";
    const { frozen, used_s } = clocks();
    const { opened, finished } = call();
    if (finished !== null) return formatSpan(finished - opened);
    return formatSpan(frozen === "queued" && !used_s ? at() - opened : used_s);
  };
  const tone = () => (clocks().is_ceiling_last ? "bad" : clocks().frozen === "queued" && "faint");
  return h("span.figure", { "data-tone": tone }, text);
}

/** Which button stands at the end of the row. @param {Shown} shown */
function actionOf({ row, call, state }) {
  if (row().isRemote || state() === "waiting" || state() === "done") return []; // a question has its own buttons
  return [call().state === "finished" ? "rerun" : "cancel"];
}

/** @param {string} kind @param {Entry} entry */
const actionButton = (kind, entry) => withoutTabStops(kind === "rerun" ? rerunButton(entry) : cancelButton(entry));

/**
 * The list has one tab stop: its buttons are reached with the arrow keys and by their own keys.
 * @template {Element} E
 * @param {E} element
 */
function withoutTabStops(element) {
  const clear = () => {
    for (const one of element.querySelectorAll("a[href], button, [tabindex]")) one.setAttribute("tabindex", "-1");
  };
  clear();
  new MutationObserver(clear).observe(element, { childList: true, subtree: true });
  return element;
}
