// callComparison: a call beside another run of its tool: arguments, duration, result, and both timelines on one scale.

import { h } from "../../lib/dom.js";
import { approvalInWords, childrenInWords, formatInstant, stateInWords } from "../../lib/call/facts_in_words.js";
import { compareMembers } from "../../lib/call/compare.js";
import { storyFeed } from "../../lib/call/story_feed.js";
import { callFromView } from "../../lib/fold.js";
import { formatSpan, safeText } from "../../lib/format.js";
import { errorMessage, resource } from "../../lib/resource.js";
import { callPath } from "../../lib/router.js";
import { computed } from "../../lib/signal.js";
import { lengthOf, silenceOver } from "../../lib/call/silence.js";
import { treeRows } from "../../lib/call/spans.js";
import { stateOf } from "../../lib/state.js";
import { diffWords } from "../../lib/text/text_diff.js";
import { preciseNow } from "../../lib/time.js";
import { icon } from "../marks/icon.js";
import { waterfall } from "./waterfall.js";
import { partsOf } from "./result.js";

/** @typedef {import("../../lib/call/spans.js").Row} Row */

const MAX_ROWS = 30; // of each timeline
const MAX_DIFF = 20_000; // characters of a result that are compared word by word

/**
 * @param {() => CallView} view
 * @param {() => Row[]} rows
 * @param {string} other the id of the other run
 * @param {() => void} close
 */
export function callComparison(view, rows, other, close) {
  const { value, problem } = resource(() => `/api${callPath(other)}`);
  const { story } = storyFeed(other);
  const before = () => /** @type {CallView | null} */ (value());
  const rowsBefore = computed(() => (story() ? treeRows(/** @type {Story} */ (story()), preciseNow()) : []));
  const spanOf = (/** @type {Row[]} */ all) =>
    all.reduce((end, { until }) => Math.max(end, until), 0) - (all[0]?.from ?? 0);
  const until = computed(() => Math.max(spanOf(rows()), spanOf(rowsBefore())));
  const drawn = (/** @type {() => Row[]} */ all, /** @type {string} */ current) =>
    waterfall(() => all().slice(0, MAX_ROWS), { rowHeight: 26, current, until });
  const head = () => {
    const found = before();
    return found && h("a", { href: callPath(other) }, formatInstant(found.opened));
  };
  return h(
    "section.card.call-compare",
    h(
      "header.card-head",
      h("h2", "Compared with the run of "),
      head,
      h(
        "span.push",
        h(
          "button.quiet.square",
          { type: "button", "aria-label": "Close the comparison", onclick: close },
          icon("close", "s"),
        ),
      ),
    ),
    errorMessage(problem),
    () => {
      const found = before();
      return found && h("div", figures(view(), found, rows(), rowsBefore()), resultDiff(view(), found));
    },
    h("h3", "This run"),
    drawn(rows, view().id),
    h("h3", "The other run"),
    drawn(rowsBefore, other),
  );
}

/** @param {CallView} now @param {CallView} before @param {Row[]} rows @param {Row[]} rowsBefore */
function figures(now, before, rows, rowsBefore) {
  const members = compareMembers(now.arguments ?? {}, before.arguments ?? {});
  const value = (/** @type {string | null} */ text) => (text === null ? "" : safeText(text, 300));
  const line = (/** @type {string} */ name, /** @type {string} */ one, /** @type {string} */ other, isMono = false) => {
    const isSame = one === other;
    return h(
      "tr",
      { "data-differs": !isSame },
      h("th", { scope: "row" }, !isSame && h("span", { "aria-label": "differs" }, "≠ "), name),
      h("td", { class: isMono ? "mono" : "" }, one),
      h("td", { class: isMono ? "mono dim" : "dim" }, isSame ? "same" : other),
    );
  };
  const [facts, factsBefore] = [factsOf(now, rows), factsOf(before, rowsBefore)];
  return h(
    "div.data-scroll",
    { tabindex: 0, role: "region", "aria-label": "Differences" },
    h(
      "table.data",
      h(
        "thead",
        h(
          "tr",
          h("th", { scope: "col" }, ""),
          h("th", { scope: "col" }, "This run"),
          h("th", { scope: "col" }, "The other run"),
        ),
      ),
      h(
        "tbody",
        ...facts.map(([name, one], at) => line(name, one, factsBefore[at][1])),
        ...members.map(({ key, now: one, before: other, isSame }) =>
          line(safeText(key, 100), value(one), value(isSame ? one : other), true),
        ),
      ),
    ),
  );
}

/** @param {CallView} call @param {Row[]} rows @returns {[string, string][]} */
function factsOf(call, rows) {
  const silence = rows[0] && silenceOver(rows[0]);
  const ended = call.finished ?? preciseNow();
  return [
    ["End", stateInWords(stateOf(callFromView(call)), call.outcome)],
    ["Duration", formatSpan(ended - call.opened)],
    ["On the clock", silence ? formatSpan(silence.spent_s) : ""],
    ["Longest silence", silence?.longest ? formatSpan(lengthOf(silence.longest)) : ""],
    ["Attempts", String(call.attempt ?? 0)],
    ["Sub-calls", childrenInWords(rows.slice(1))],
    ["Approval", approvalInWords(call)],
  ];
}

/** The results of both, word by word. @param {CallView} now @param {CallView} before */
function resultDiff(now, before) {
  const [one, other] = [now, before].map(({ result, failure }) =>
    result ? partsOf(result).text : (failure?.message ?? ""),
  );
  if (one === other) return h("p.card-note.faint", one ? "Both have the same result." : "Neither has a result.");
  if (one.length + other.length > MAX_DIFF)
    return h("p.card-note.faint", "The results differ; they are too long to compare word by word.");
  const tags = /** @type {const} */ ({ same: "span", gone: "del", new: "ins" });
  const pieces = diffWords(other, one).map(({ kind, text }) => h(tags[kind], text));
  return h("div.card-note", h("h3", "Result: this run in place of the other"), h("pre", { tabindex: 0 }, ...pieces));
}
