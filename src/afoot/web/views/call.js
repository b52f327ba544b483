// The view of one call: progress, arguments, result and history.

import { post } from "../lib/api.js";
import { callDetails, remoteCalls } from "../components/call_card.js";
import { progressChart } from "../components/chart.js";
import { copyButton, disclosureButtons, submitForm } from "../components/controls.js";
import { each, h } from "../lib/dom.js";
import { callFromView } from "../lib/fold.js";
import { resource, errorMessage } from "../lib/resource.js";
import { answeredQuestions, toolResult, section, failureDetails } from "../components/call_result.js";
import { statusBadge, statusOf } from "../components/status.js";
import { formatDuration, formatTime, joinNonEmpty, plural, safeText } from "../lib/format.js";
import { callPath, toolPath } from "../lib/router.js";
import { callTable } from "../components/call_table.js";
import { runForm } from "../components/run_form.js";
import { store } from "../lib/store.js";
import { progressPoints, timeline, wireMessages } from "../components/call_timeline.js";
import { contentBlocks, jsonTree } from "../components/content.js";
import { shellCommand } from "../lib/shell_command.js";

/** @typedef {() => CallView} View the newest known view */

export const title = "Call";

const UNCERTAIN_WARNING =
  "It is uncertain what it did: its effects may have happened. Press once more to run it all the same.";

/** @param {Route} route @returns {HTMLElement} */
export function view({ params: { id = "" } }) {
  const changed = () => {
    store.about();
    if (!store.get(id)) store.roots(); // the call may be added later
    return store.get(id)?.call();
  };
  const { value, problem } = resource(() => {
    changed();
    return `/api${callPath(id)}`;
  });
  const make = (/** @type {CallView} */ _, /** @type {View} */ newest) => callView(newest, changed);
  const found = () => [value()].filter(Boolean);
  return h("section", errorMessage(problem), each(found, "id", make));
}

/** @param {View} view @param {() => unknown} changed */
function callView(view, changed) {
  const { id, tool } = view();
  const call = () => store.get(id)?.reading() ?? callFromView(view());
  const drawn = progressPoints(view, call);
  const progress = () =>
    drawn().length > 1 && section("Progress", progressChart(drawn(), `Progress of ${safeText(tool, 100)}`));
  return h(
    "div",
    summary(view, call),
    callActions(view),
    optionalSection(view, "failure", "What went wrong", failureDetails),
    optionalSection(view, "result", "Result", toolResult),
    optionalSection(view, "partials", "Partial results", (all) => h("div", ...all.map(contentBlocks))),
    optionalSection(view, "arguments", "Arguments", jsonTree),
    progress,
    childCalls(view, changed),
    h("div", { shown: () => view().remote?.length }, section("Calls at a gateway behind this one", remoteCalls(view))),
    optionalSection(view, "settled", "Questions", answeredQuestions),
    section("What happened", timeline(view(), changed)),
    section("Wire", wireMessages(view(), changed)),
    optionalSection(view, "limits", "Limits", jsonTree),
  );
}

/**
 * A section for a field that is not empty, created again only when its value changes.
 * @template {keyof CallView} K
 * @param {View} view
 * @param {K} name
 * @param {string} title
 * @param {(one: any) => HTMLElement} make
 */
function optionalSection(view, name, title, make) {
  const found = () => [view()[name]].filter((one) => one && (!Array.isArray(one) || one.length));
  return each(found, JSON.stringify, (one) => section(title, make(one)));
}

/**
 * The summary at the top: state, progress bar, message, tool and server.
 * @param {View} view
 * @param {() => Call} call
 */
function summary(view, call) {
  const { id, tool, server, opened, parent, rerun_of: before, trace, task } = view();
  const name = safeText(tool, 200);
  const kind = () => statusOf(call());
  const link = (/** @type {string} */ text, /** @type {string | null | undefined} */ id) =>
    id && h("a", { href: callPath(id) }, text);
  const named = (/** @type {string} */ what, /** @type {string} */ text) =>
    h("span", `${what} `, h("code", text), copyButton(text));
  const cpu = () => view().cpu_s && `${formatDuration(view().cpu_s ?? 0)} of processor time`;
  const more = [
    h("span", `opened ${formatTime(opened)}`),
    h("span", { shown: cpu }, cpu),
    link("runs an earlier call again", before),
    link("part of another call", parent),
    named(task ? "task" : "id", id),
    trace && named("trace", trace),
  ];
  const head = h("div.head", h("h2.name", name), h("span.from", safeText(server, 100)), statusBadge(kind));
  const answer = h("p", { shown: () => call().open.size }, h("a.button", { href: "/inbox" }, "Answer in the inbox"));
  return h("div.sheet.summary", { "data-kind": kind }, head, ...callDetails(call, name, ...more), answer);
}

/** The calls that the call made. @param {View} view @param {() => unknown} changed */
function childCalls(view, changed) {
  const summary = () => {
    const { total, live, failed } = view().children ?? {};
    return total && joinNonEmpty(plural(total, "call"), live && `${live} live`, failed && `${failed} failed`);
  };
  const path = `/api/calls?${new URLSearchParams({ parent: view().id, limit: "100" })}`;
  const { value, problem } = resource(() => {
    if (!summary()) return "";
    changed();
    return path;
  });
  const rows = callTable(() => value()?.calls ?? [], "Calls below it");
  return h("div", { shown: summary }, section("Calls below it", h("p.soft", summary), errorMessage(problem), rows));
}

/** The buttons to cancel, run again and copy. @param {View} view */
function callActions(view) {
  const isLive = () => ["queued", "running"].includes(view().state);
  return disclosureButtons(
    ["Cancel…", (close) => cancelForm(view().id, close), isLive],
    ["Run again…", () => rerunForm(view())],
    ["Copy as command…", () => commandPanel(view())],
  );
}

/** @param {string} id @param {() => void} close */
function cancelForm(id, close) {
  const words = h("input", { type: "text", name: "reason" });
  const stop = async () => {
    await post(`/api${callPath(id)}/cancel`, words.value ? { reason: words.value } : {});
    close();
  };
  const label = h("label", "Why (the tool and its caller are told) ", words);
  return submitForm("form.sheet.row", stop, label, h("button.main", "Cancel the call"));
}

/** A form with the arguments of a call, to run its tool again. @param {CallView} call */
function rerunForm({ id, tool, outcome, arguments: value }) {
  const isLookup = /^(resource|prompt) /.test(tool); // its arguments are texts, and it has no tool
  const { value: found, problem } = resource(() => (isLookup ? "" : `/api${toolPath(tool)}`));
  const texts = Object.fromEntries(Object.keys(value ?? {}).map((key) => [key, { type: "string" }]));
  const schema = () => (isLookup ? [{ type: "object", properties: texts }] : found() ? [found().inputSchema] : []);
  const hint = "A new call, linked to this one, and approved anew.";
  const how = { to: `/api${callPath(id)}/rerun`, title: "Run it again", label: "Run it again", hint };
  const make = (/** @type {Schema} */ one) =>
    runForm(one, { key: `rerun:${id}`, value }, { ...how, warning: outcome === "uncertain" && UNCERTAIN_WARNING });
  return h("div.panel", errorMessage(problem), each(schema, JSON.stringify, make));
}

/** @param {CallView} call */
function commandPanel({ tool, arguments: given }) {
  const { line, variables } = shellCommand(tool, given ?? {});
  const names = variables.join(", ");
  const hint = names && h("p", `What is secret is not shown. Set it first, in `, h("code", names), ".");
  return h("div.sheet", hint, h("pre.command", { tabindex: "0" }, line), copyButton(line));
}
