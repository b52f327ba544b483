// One call: how far it is, what it was given, what it gave, and all that happened to it.

import { post } from "../api.js";
import { body } from "../bubble.js";
import { curve } from "../chart.js";
import { copier, panels, sending } from "../control.js";
import { each, h } from "../dom.js";
import { fromView } from "../fold.js";
import { loaded, trouble } from "../load.js";
import { answers, given, sheet, wrong } from "../outcome.js";
import { kindOf, lasted, listed, many, mark, visible, when } from "../parts.js";
import { callAt, toolAt } from "../router.js";
import { callRows } from "../rows.js";
import { runner } from "../run.js";
import { store } from "../store.js";
import { points, timeline, wire } from "../story.js";
import { content, structure } from "../value.js";
import { command } from "../words.js";

/** @typedef {() => CallView} View the newest that is known */

export const title = "Call";

const TWICE = "It is uncertain what it did: its effects may have happened. Press once more to run it all the same.";

/** @param {Route} route @returns {HTMLElement} */
export function view({ params: { id = "" } }) {
  const changed = () => (store.about(), store.get(id) ?? store.roots(), store.get(id)?.call());
  const { value, problem } = loaded(() => (changed(), `/api${callAt(id)}`));
  const make = (/** @type {CallView} */ _, /** @type {View} */ newest) => whole(newest, changed);
  const found = () => [value()].filter(Boolean);
  return h("section", trouble(problem), each(found, "id", make));
}

/** @param {View} view @param {() => unknown} changed */
function whole(view, changed) {
  const { id, tool } = view();
  const call = () => store.get(id)?.reading() ?? fromView(view());
  const drawn = points(view, call);
  const progress = () => drawn().length > 1 && sheet("Progress", curve(drawn(), `Progress of ${visible(tool, 100)}`));
  return h(
    "div",
    summary(view, call),
    actions(view),
    part(view, "failure", "What went wrong", wrong),
    part(view, "result", "Result", given),
    part(view, "partials", "Partial results", (all) => h("div", ...all.map(content))),
    part(view, "arguments", "Arguments", structure),
    progress,
    children(view, changed),
    part(view, "settled", "Questions", answers),
    sheet("What happened", timeline(view(), changed)),
    sheet("Wire", wire(view(), changed)),
    part(view, "limits", "Limits", structure),
  );
}

/** A sheet that is there if there is something to show, and is made again only when that is another. @template {keyof CallView} K @param {View} view @param {K} name @param {string} title @param {(one: any) => HTMLElement} make */
function part(view, name, title, make) {
  const found = () => [view()[name]].filter((one) => one && (!Array.isArray(one) || one.length));
  return each(found, JSON.stringify, (one) => sheet(title, make(one)));
}

/** What stands above all: state, bar, what it says, and whose it is. @param {View} view @param {() => Call} call */
function summary(view, call) {
  const { id, tool, server, opened, parent, rerun_of: before, trace, task } = view();
  const [name, kind] = [visible(tool, 200), () => kindOf(call())];
  const link = (/** @type {string} */ text, /** @type {string | null | undefined} */ id) =>
    id && h("a", { href: callAt(id) }, text);
  const named = (/** @type {string} */ what, /** @type {string} */ text) =>
    h("span", `${what} `, h("code", text), copier(text));
  const cpu = () => view().cpu_s && `${lasted(view().cpu_s ?? 0)} of processor time`;
  const more = [
    h("span", `opened ${when(opened)}`),
    h("span", { shown: cpu }, cpu),
    link("runs an earlier call again", before),
    link("part of another call", parent),
    named(task ? "task" : "id", id),
    trace && named("trace", trace),
  ];
  const head = h("div.head", h("h2.name", name), h("span.from", visible(server, 100)), mark(kind));
  const answer = h("p", { shown: () => call().open.size }, h("a.button", { href: "/inbox" }, "Answer in the inbox"));
  return h("div.sheet.summary", { "data-kind": kind }, head, ...body(call, name, ...more), answer);
}

/** The calls that it made. @param {View} view @param {() => unknown} changed */
function children(view, changed) {
  const told = () => {
    const { total, live, failed } = view().children ?? {};
    return total && listed(many(total, "call"), live && `${live} live`, failed && `${failed} failed`);
  };
  const path = `/api/calls?${new URLSearchParams({ parent: view().id, limit: "100" })}`;
  const { value, problem } = loaded(() => (told() ? (changed(), path) : ""));
  const rows = callRows(() => value()?.calls ?? [], "Calls below it");
  return h("div", { shown: told }, sheet("Calls below it", h("p.soft", told), trouble(problem), rows));
}

/** Cancel, run again, copy. @param {View} view */
function actions(view) {
  const isLive = () => ["queued", "running"].includes(view().state);
  return panels(
    ["Cancel…", (close) => stopping(view().id, close), isLive],
    ["Run again…", () => rerun(view())],
    ["Copy as command…", () => copying(view())],
  );
}

/** @param {string} id @param {() => void} close */
function stopping(id, close) {
  const words = h("input", { type: "text", name: "reason" });
  const stop = async () => {
    await post(`/api${callAt(id)}/cancel`, words.value ? { reason: words.value } : {});
    close();
  };
  const label = h("label", "Why (the tool and its caller are told) ", words);
  return sending("form.sheet.row", stop, label, h("button.main", "Cancel the call"));
}

/** A form with the arguments of a call, to run its tool again. @param {CallView} call */
function rerun({ id, tool, outcome, arguments: value }) {
  const { value: found, problem } = loaded(() => `/api${toolAt(tool)}`);
  const schema = () => (found() ? [found().inputSchema] : []);
  const hint = "A new call, linked to this one, and approved anew.";
  const how = { to: `/api${callAt(id)}/rerun`, title: "Run it again", label: "Run it again", hint };
  const make = (/** @type {Schema} */ one) =>
    runner(one, { key: `rerun:${id}`, value }, { ...how, warning: outcome === "uncertain" && TWICE });
  return h("div.panel", trouble(problem), each(schema, JSON.stringify, make));
}

/** @param {CallView} call */
function copying({ tool, arguments: given }) {
  const { line, variables } = command(tool, given ?? {});
  const names = variables.join(", ");
  const hint = names && h("p", `What is secret is not shown. Set it first, in `, h("code", names), ".");
  return h("div.sheet", hint, h("pre.command", { tabindex: "0" }, line), copier(line));
}
