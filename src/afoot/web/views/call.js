// One call: how far it is, what it was given, what it gave, and all that happened to it.

import { post } from "../api.js";
import { APPROVED, bubble } from "../bubble.js";
import { curve } from "../chart.js";
import { each, h } from "../dom.js";
import { fromView } from "../fold.js";
import { attempt, loaded } from "../load.js";
import { answers, clocks, given, sheet, wrong } from "../outcome.js";
import { bar, howFar, kindOf, left, mark, pace, span, visible, when } from "../parts.js";
import { callAt } from "../router.js";
import { effect, signal } from "../signal.js";
import { store } from "../store.js";
import { rerun, timeline } from "../story.js";
import { now } from "../time.js";
import { content, structure } from "../value.js";
import { command } from "../words.js";

/** @typedef {Record<string, any>} Full a CallView with everything */
/** @typedef {import("../signal.js").Signal<Full>} Value */
/** @typedef {import("../signal.js").Signal<string>} Text */

export const title = "Call";

/** @param {import("../router.js").Route} route @returns {HTMLElement} */
export function view({ params: { id = "" } }) {
  const changed = () => (store.about(), store.get(id) ?? store.roots(), store.get(id)?.call());
  const { value, problem } = loaded(() => (changed(), `/api/calls/${encodeURIComponent(id)}`));
  const isHere = signal(false);
  effect(() => isHere.set(value() !== null));
  return h("section", null, trouble(problem), () => (isHere() ? whole(value, changed) : null));
}

/** @param {Value} value @param {() => unknown} changed */
function whole(value, changed) {
  const { id, tool } = value.peek();
  const points = () => (value().samples ?? []).map((/** @type {any} */ one) => one.reading);
  const below = () => store.get(id)?.below() ?? [];
  const drawing = sheet("Progress", curve(points, `Progress of ${visible(tool, 100)}`));
  const children = h(
    "ul",
    null,
    each(below, (one) => one.id, bubble),
  );
  return h(
    "div",
    null,
    summary(value),
    actions(value),
    part(value, "failure", (failure) => sheet("What went wrong", wrong(failure))),
    part(value, "result", (result) => sheet("Result", given(result))),
    part(value, "partials", (all) => all.length && sheet("Partial results", ...all.map(content))),
    part(value, "arguments", (given) => sheet("Arguments", structure(given))),
    h("div", { hidden: () => points().length < 2 }, drawing),
    h("div", { hidden: () => !below().length }, sheet("Calls below it", children)),
    part(value, "settled", (settled) => settled.length && sheet("Questions", answers(settled))),
    sheet("What happened", timeline(id, changed)),
    part(value, "limits", (limits) => sheet("Limits", clocks(limits))),
  );
}

/** A part that is made again only when what it shows is another. @param {Value} value @param {string} name @param {(one: any) => HTMLElement | 0} make */
function part(value, name, make) {
  const seen = signal("");
  effect(() => seen.set(JSON.stringify(value()[name] ?? null)));
  return h("div", null, () => (seen() !== "null" && make(value.peek()[name])) || null);
}

/** What stands above all: state, bar, and what it says. @param {Value} value */
function summary(value) {
  const { id, tool, server } = value.peek();
  const call = () => store.get(id)?.reading() ?? fromView(value());
  const [name, kind] = [visible(tool, 200), () => kindOf(call())];
  const from = h("span", { class: "from said" }, visible(server, 100));
  return h(
    "div",
    { class: "sheet", "data-kind": kind },
    h("div", { class: "head" }, h("h2", { class: "name said" }, name), from, mark(kind)),
    bar(call, name),
    h("p", { class: "message said" }, () => visible(call().latest?.message, 1000)),
    h("p", { class: "facts" }, ...facts(value, call)),
    h("p", { class: "hint said", hidden: () => !call().hindered }, () => hindrance(call())),
    h(
      "p",
      { hidden: () => !call().open.size },
      h("a", { class: "button", href: "/inbox" }, "Answer in the inbox"),
    ),
  );
}

/** @param {Value} value @param {() => import("../fold.js").Call} call */
function facts(value, call) {
  const { caller, opened, parent, rerun_of: before, trace } = value.peek();
  const fact = (/** @type {() => string} */ text) =>
    h("span", { class: "fact", hidden: () => !text() }, text);
  const link = (/** @type {string} */ text, /** @type {string} */ other) =>
    other && h("a", { class: "fact", href: callAt(other) }, text);
  return [
    fact(() => span((call().finished ?? now()) - call().opened)),
    fact(() => howFar(call())),
    fact(() => pace(call().rate)),
    fact(() => left(call().eta)),
    fact(() => `called by ${visible(caller, 100)}, ${when(opened)}`),
    fact(() => APPROVED[value().approved] ?? ""),
    fact(() => (call().attempt > 1 ? `attempt ${call().attempt}` : "")),
    fact(() => (trace ? `trace ${visible(trace)}` : "")),
    link("runs an earlier call again", before),
    link("part of another call", parent),
  ];
}

/** @param {import("../fold.js").Call} call */
const hindrance = ({ hindered }) => visible([hindered?.by, hindered?.hint].filter(Boolean).join(": "));

/** Cancel, run again, copy. @param {Value} value */
function actions(value) {
  const [open, problem] = [signal(""), signal("")];
  const isLive = () => value().state === "queued" || value().state === "running";
  const button = (/** @type {string} */ name, /** @type {string} */ text) => {
    const onclick = () => open.set(open.peek() === name ? "" : name);
    return h("button", { onclick, "aria-expanded": () => String(open() === name) }, text);
  };
  const panels = /** @type {Record<string, () => HTMLElement>} */ ({
    stop: () => stopping(value.peek().id, problem, () => open.set("")),
    rerun: () => rerun(value.peek()),
    copy: () => copying(command(value.peek().tool, value.peek().arguments ?? {})),
  });
  const stop = h("span", { hidden: () => !isLive() }, button("stop", "Cancel…"));
  const row = h(
    "div",
    { class: "row" },
    stop,
    button("rerun", "Run again…"),
    button("copy", "Copy as command…"),
  );
  return h("div", { class: "actions" }, row, trouble(problem), () => panels[open()]?.() ?? null);
}

/** @param {string} id @param {Text} problem @param {() => void} done */
function stopping(id, problem, done) {
  const words = h("input", { type: "text", name: "reason" });
  const stop = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const body = words.value ? { reason: words.value } : {};
    if (await attempt(problem, () => post(`/api/calls/${id}/cancel`, body))) done();
  };
  const label = h("label", null, "Why (the tool and its caller are told) ", words);
  return h(
    "form",
    { class: "sheet row", onsubmit: stop },
    label,
    h("button", { class: "main" }, "Cancel the call"),
  );
}

/** @param {string} line */
function copying(line) {
  const said = signal("");
  const copy = () =>
    navigator.clipboard.writeText(line).then(
      () => said.set("Copied."),
      () => said.set("The browser does not allow it: copy it by hand."),
    );
  const button = h("button", { onclick: copy }, "Copy");
  return h(
    "div",
    { class: "sheet" },
    h("pre", { class: "said command", tabindex: "0" }, line),
    button,
    h("p", { role: "status" }, said),
  );
}

/** @param {() => string} problem */
const trouble = (problem) =>
  h("p", { class: "problem", role: "alert", hidden: () => !problem() }, () => visible(problem()));
