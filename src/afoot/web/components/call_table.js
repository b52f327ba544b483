// callTable: calls as rows of a table. Live calls show their newest values, others those of the history.

import { each, h } from "../lib/dom.js";
import { callFromView } from "../lib/fold.js";
import { statusBadge, statusOf } from "./status.js";
import {
  formatDuration,
  formatElapsed,
  formatProgress,
  formatTime,
  joinNonEmpty,
  safeText,
  statusMessage,
} from "../lib/format.js";
import { callPath } from "../lib/router.js";
import { computed } from "../lib/signal.js";
import { store } from "../lib/store.js";
import { now } from "../lib/time.js";

const COLUMNS = ["State", "Tool", "What it said last", "For", "When", "Took"];

/** @param {() => readonly CallView[]} list @param {string} label */
export function callTable(list, label) {
  const head = h("thead", h("tr", ...COLUMNS.map((name) => h("th", { scope: "col" }, name))));
  const lines = h("tbody", { onkeydown: moveFocus }, each(list, "id", row));
  const table = h("table.calls", { "aria-label": label }, head, lines);
  return h("div.table", { shown: () => list().length }, table);
}

/** @param {CallView} view @param {() => CallView} newest of the same call */
function row({ id, tool, server, caller, opened }, newest) {
  const call = computed(() => {
    store.about(); // a snapshot may bring or remove the entry
    return store.get(id)?.reading() ?? callFromView(newest());
  });
  const kind = () => statusOf(call());
  const duration = () => {
    const { finished } = call();
    return finished == null ? formatElapsed(now() - opened) : formatDuration(finished - opened);
  };
  const showsMessageOnly = () => call().state === "finished" || call().open.size;
  const message = () =>
    safeText(
      showsMessageOnly() ? statusMessage(call()) : joinNonEmpty(formatProgress(call()), statusMessage(call())),
      200,
    );
  const at = new Date(opened * 1000).toISOString();
  return h(
    "tr",
    { "data-kind": kind },
    h("td", statusBadge(kind)),
    h("td", h("a", { href: callPath(id) }, safeText(tool, 200)), " ", softText(server)),
    h("td.what", message),
    h("td", softText(caller)),
    h("td", h("time.soft", { datetime: at }, formatTime(opened))),
    h("td", duration),
  );
}

/** @param {string} text */
const softText = (text) => h("span.soft", safeText(text, 100));

/** Arrow keys move focus from row to row. @param {KeyboardEvent} event */
function moveFocus(event) {
  const line = event.target instanceof Element ? event.target.closest("tr") : null;
  const next = { ArrowDown: line?.nextElementSibling, ArrowUp: line?.previousElementSibling }[event.key];
  if (!next) return;
  event.preventDefault();
  next.querySelector("a")?.focus();
}
