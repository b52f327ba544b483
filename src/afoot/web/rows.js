// Calls as lines of a table: those that live with their newest values, the others as the history has them.

import { each, h } from "./dom.js";
import { fromView } from "./fold.js";
import { howFar, kindOf, lasted, listed, mark, saying, span, visible, when } from "./parts.js";
import { callAt } from "./router.js";
import { computed } from "./signal.js";
import { store } from "./store.js";
import { now } from "./time.js";

const HEADS = ["State", "Tool", "What it said last", "For", "When", "Took"];

/** @param {() => readonly CallView[]} list @param {string} label */
export function callRows(list, label) {
  const head = h("thead", h("tr", ...HEADS.map((name) => h("th", { scope: "col" }, name))));
  const lines = h("tbody", { onkeydown: step }, each(list, "id", row));
  const table = h("table.calls", { "aria-label": label }, head, lines);
  return h("div.table", { shown: () => list().length }, table);
}

/** @param {CallView} view @param {() => CallView} newest of the same call */
function row({ id, tool, server, caller, opened }, newest) {
  const call = computed(() => (store.about(), store.get(id))?.reading() ?? fromView(newest()));
  const kind = () => kindOf(call());
  const took = () => {
    const { finished } = call();
    return finished == null ? span(now() - opened) : lasted(finished - opened);
  };
  const isMore = () => call().state === "finished" || call().open.size;
  const said = () => visible(isMore() ? saying(call()) : listed(howFar(call()), saying(call())), 200);
  const at = new Date(opened * 1000).toISOString();
  return h(
    "tr",
    { "data-kind": kind },
    h("td", mark(kind)),
    h("td", h("a", { href: callAt(id) }, visible(tool, 200)), " ", small(server)),
    h("td.what", said),
    h("td", small(caller)),
    h("td", h("time.soft", { datetime: at }, when(opened))),
    h("td", took),
  );
}

/** @param {string} text */
const small = (text) => h("span.soft", visible(text, 100));

/** The arrows go from line to line. @param {KeyboardEvent} event */
function step(event) {
  const line = event.target instanceof Element ? event.target.closest("tr") : null;
  const next = { ArrowDown: line?.nextElementSibling, ArrowUp: line?.previousElementSibling }[event.key];
  if (!next) return;
  event.preventDefault();
  next.querySelector("a")?.focus();
}
