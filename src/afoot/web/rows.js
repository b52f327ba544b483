// Calls as lines of a table: those that live with their newest values, the others as the history has them.

import { each, h } from "./dom.js";
import { fromView } from "./fold.js";
import { howFar, kindOf, lasted, mark, span, visible, when } from "./parts.js";
import { callAt } from "./router.js";
import { computed } from "./signal.js";
import { store } from "./store.js";
import { now } from "./time.js";

const HEADS = ["State", "Tool", "What it said last", "For", "When", "Took"];

/** @param {() => readonly any[]} list CallViews @param {string} label */
export function callRows(list, label) {
  const newest = computed(() => new Map(list().map((view) => [view.id, view])));
  const line = (/** @type {any} */ view) => row(view, () => newest().get(view.id) ?? view);
  const head = h("tr", null, ...HEADS.map((name) => h("th", { scope: "col" }, name)));
  return h(
    "div",
    { class: "table", tabindex: "-1", hidden: () => !list().length },
    h(
      "table",
      { class: "calls", "aria-label": label },
      h("thead", null, head),
      h("tbody", { onkeydown: step }, each(list, (view) => view.id, line)), // prettier-ignore
    ),
  );
}

/** @param {any} view @param {() => any} newest of the same call */
function row(view, newest) {
  const known = computed(() => fromView(newest()));
  const call = computed(() => (store.about(), store.get(view.id))?.reading() ?? known());
  const took = () => {
    const { opened, finished } = call();
    return finished === null ? span(now() - opened) : lasted(finished - opened);
  };
  const said = () => {
    const { failure, latest, open } = call();
    const question = open.values().next().value;
    return failure || question?.message || [howFar(call()), latest?.message].filter(Boolean).join(", ");
  };
  return h(
    "tr",
    { "data-kind": () => kindOf(call()) },
    h("td", null, mark(() => kindOf(call()))), // prettier-ignore
    h("td", null, h("a", { class: "said", href: callAt(view.id) }, visible(view.tool, 200)), " ", small(view.server)), // prettier-ignore
    h("td", { class: "said what" }, () => visible(said(), 200)),
    h("td", null, small(view.caller)),
    h("td", null, h("time", { class: "soft", datetime: new Date(view.opened * 1000).toISOString() }, when(view.opened))), // prettier-ignore
    h("td", null, took),
  );
}

/** @param {string} text */
const small = (text) => h("span", { class: "said soft" }, visible(text, 100));

/** The arrows go from line to line. @param {KeyboardEvent} event */
function step(event) {
  const line = event.target instanceof Element ? event.target.closest("tr") : null;
  const next = { ArrowDown: line?.nextElementSibling, ArrowUp: line?.previousElementSibling }[event.key];
  if (!next) return;
  event.preventDefault();
  next.querySelector("a")?.focus();
}
