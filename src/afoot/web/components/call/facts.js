// callFacts: the column beside a call: its arguments, when and for whom it ran, its limits, its ids.

import { each, h } from "../../lib/dom.js";
import {
  answerInWords,
  approvalInWords,
  childrenInWords,
  formatInstant,
  limitsInWords,
} from "../../lib/call/facts_in_words.js";
import { formatSpan, joinNonEmpty, plural, safeText } from "../../lib/format.js";
import { isContainer, isObject, isRedacted } from "../../lib/text/exact_json.js";
import { callPath, toolPath } from "../../lib/router.js";
import { tick } from "../../lib/time.js";
import { collapsible, jsonTree } from "../content.js";
import { copyButton } from "../controls.js";
import { icon } from "../marks/icon.js";

/** @typedef {import("../../lib/call/spans.js").Row} Row */

const MAX_SHORT = 200; // characters of a value that is shown in its line

/**
 * The facts of a call as pairs.
 * @param {() => CallView} view
 * @param {() => Row[]} rows
 * @param {() => number | null} usual_s how long the tool usually takes
 */
export function callFacts(view, rows, usual_s) {
  const { opened, caller, server, rerun_of: before, parent, tool } = view();
  const ended = () => view().finished ?? tick();
  const approval = () => safeText(approvalInWords(view()), 300);
  const asked = () => (view().settled ?? []).filter(({ kind }) => kind !== "approval" && kind !== "below");
  const attempts = () => {
    const below = rows()
      .slice(1)
      .filter((row) => row.attempts > 1);
    return {
      own: view().attempt ?? rows()[0]?.attempts ?? 0,
      below: below
        .slice(0, 5)
        .map((row) => `${row.tool}: ${row.attempts}`)
        .join(", "),
    };
  };
  const isDetached = () => view().detached;
  return h(
    "dl.details",
    pair("Started", formatInstant(opened)),
    pair(
      "Duration",
      () => formatSpan(ended() - opened),
      " ",
      note(() => usual_s() !== null && `usually ${formatSpan(usual_s() ?? 0)}`),
    ),
    pair(
      "Caller",
      safeText(caller, 100),
      " ",
      note(() => isDetached() && "detached: nobody waits for it"),
    ),
    pair("Server", safeText(server, 100)),
    pair("Tool", h("a", { href: toolPath(tool) }, safeText(tool, 200))),
    pair("Approval", approval),
    each(asked, "id", (question, newest) =>
      h(
        "div",
        h("dt", "Question"),
        h("dd", () => safeText(answerInWords(newest()), 300)),
      ),
    ),
    pair(
      "Attempts",
      () => attempts().own,
      " ",
      note(() => attempts().below),
    ),
    pair("Sub-calls", () => childrenInWords(rows().slice(1))),
    h(
      "div",
      { shown: () => view().cpu_s },
      h("dt", "Processor"),
      h("dd", () => formatSpan(view().cpu_s ?? 0)),
    ),
    before && pair("Runs again", h("a", { href: callPath(before) }, "an earlier call")),
    parent && pair("Part of", h("a", { href: callPath(parent) }, "another call")),
  );
}

/** The ids of a call, each with a button that copies it. @param {() => CallView} view */
export function callIds(view) {
  const { id, trace, trace_url: place, task } = view();
  const named = (/** @type {string} */ name, /** @type {string} */ value) =>
    pair(
      name,
      h("code.cut", { title: value }, safeText(value, 100)),
      copyButton(value, { label: `Copy the ${name.toLowerCase()}`, class: "quiet small copy-mark" }),
    );
  return h(
    "dl.details.ids",
    named("Id", id),
    task && pair("Task", "its id is also that of a task"),
    trace && (place ? pair("Trace", traceLink(trace, place)) : named("Trace", trace)),
  );
}

/** A trace where traces are looked at. @param {string} trace @param {string} place */
function traceLink(trace, place) {
  const title = `${trace}, at ${safeText(URL.parse(place)?.host ?? "", 200)}`;
  return h(
    "a.trace-link",
    { href: place, target: "_blank", rel: "noopener noreferrer", title },
    h("code.cut", safeText(trace, 100)),
    icon("open", "s"),
    h("span.sr", "opens in another tab"),
  );
}

/** The arguments of a call, short ones in a line each. @param {Json} given */
export function callArguments(given) {
  const entries = Object.entries(given ?? {});
  if (!entries.length) return h("p.faint", "none");
  const one = (/** @type {[string, Json]} */ [key, value]) => {
    const name = h("span.faint", safeText(key, 100));
    if (isRedacted(value)) return h("div", name, " ", h("i.faint", "not shown: it is secret"));
    const text = JSON.stringify(value) ?? "";
    const isShort = text.length <= MAX_SHORT && !hasRedacted(value);
    return isShort || !isContainer(value)
      ? h("div", name, " ", safeText(text, MAX_SHORT * 10))
      : collapsible([name, ` ${Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`}`], () =>
          jsonTree(value),
        );
  };
  return h("div.well.mono.argument-list", ...entries.map(one));
}

/** The limits of a call as sentences. @param {NonNullable<CallView["limits"]>} limits */
export const callLimits = (limits) => h("p.dim", limitsInWords(limits));

/** How far the calls of a gateway behind this one are. @param {() => RemoteCall[]} remote */
export function remoteCalls(remote) {
  const words = (/** @type {RemoteCall} */ { state, outcome, message, progress, total }) =>
    safeText(
      joinNonEmpty(
        (outcome ?? state).replace("_", " "),
        progress != null && `${progress}${total ? ` of ${total}` : ""}`,
        message,
      ),
      300,
    );
  const row = (/** @type {RemoteCall} */ { tool }, /** @type {() => RemoteCall} */ newest) =>
    h(
      "li",
      h("b", safeText(tool, 200)),
      " ",
      h("span.dim", () => words(newest())),
    );
  return h(
    "section.card.remote",
    { shown: () => remote().length },
    h(
      "header.card-head",
      h("h2", "At a gateway behind this one"),
      h("span.faint", () => plural(remote().length, "call")),
    ),
    h("ul", each(remote, "id", row)),
  );
}

/** @param {string} name @param {...Child} value */
const pair = (name, ...value) => h("div", h("dt", name), h("dd", ...value));

/** @param {() => string | false | undefined} words */
const note = (words) => h("span.faint", () => safeText(words() || "", 300));

/** @param {Json} value @returns {boolean} */
const hasRedacted = (value) =>
  isContainer(value) &&
  (isRedacted(value) || Object.values(value).some(hasRedacted)) &&
  (isObject(value) || Array.isArray(value));
