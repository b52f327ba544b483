// callPane: a call beside the list it was chosen in: its progress, its two clocks, its timeline, the end of its story and
// its arguments. The page of the call has everything.

import { each, h } from "../../lib/dom.js";
import { approvalInWords, limitsInShort, stateInWords } from "../../lib/call/facts_in_words.js";
import {
  formatEstimate,
  formatPercent,
  formatProgress,
  joinNonEmpty,
  progressFraction,
  safeText,
  statusMessage,
} from "../../lib/format.js";
import { errorMessage } from "../../lib/resource.js";
import { callPath } from "../../lib/router.js";
import { rowAnswer } from "../question/answer_row.js";
import { callActions } from "./actions.js";
import { callModel } from "./call_model.js";
import { callClocks } from "./clocks.js";
import { callArguments } from "./facts.js";
import { storyExcerpt } from "./story.js";
import { copyButton } from "../controls.js";
import { icon } from "../marks/icon.js";
import { progressBar } from "../marks/progress_bar.js";
import { stateIcon } from "../marks/state_icon.js";
import { waterfall } from "./waterfall.js";

/** @typedef {import("./call_model.js").CallModel} CallModel */

const STORY_LINES = 6;
const ROW_PX = 24;
const MAX_ROWS = 12; // of the timeline; the page has all

/** @param {() => string} id of the chosen call; empty: none */
export function callPane(id) {
  const chosen = () => (id() ? [id()] : []);
  return h("aside.call-pane", { "aria-label": "Chosen call" }, each(chosen, String, paneOf));
}

/** @param {string} id */
function paneOf(id) {
  const model = callModel(id);
  const { problem, call, view, rows, silence, reading, story } = model;
  const known = () => (call() ? [{ id }] : []);
  const full = () => (view() ? [/** @type {CallView} */ (view())] : []);
  const shownRows = () => rows().slice(0, MAX_ROWS);
  const hidden = () => rows().length - shownRows().length;
  const ceiling_s = () => view()?.limits?.ceiling_s ?? null;
  return h(
    "div.pane-inside",
    errorMessage(problem),
    each(known, "id", () => paneHead(model)),
    h("section.pane-clocks", { shown: () => call() }, callClocks(reading, silence, ceiling_s)),
    h(
      "section",
      { shown: () => rows().length },
      h("h3", "Timeline", h("a.button.quiet.small.push", { href: callPath(id) }, "Open", icon("open", "s"))),
      waterfall(shownRows, { rowHeight: ROW_PX, current: id }),
      h("p.faint", { shown: () => hidden() > 0 }, () => `and ${hidden()} more calls, on its page`),
    ),
    each(full, "id", (first, newest) =>
      h(
        "div",
        h("section", h("h3", "Story"), storyExcerpt(story, first, STORY_LINES)),
        h(
          "section",
          h(
            "h3",
            "Arguments",
            h(
              "span.push",
              copyButton(() => JSON.stringify(newest().arguments ?? {}, null, 2), { class: "quiet small" }),
            ),
          ),
          callArguments(first.arguments),
        ),
        h(
          "section",
          h(
            "dl.details",
            h("div", h("dt", "Caller"), h("dd", safeText(first.caller, 100))),
            h(
              "div",
              h("dt", "Approval"),
              h("dd", () => safeText(approvalInWords(newest()), 300)),
            ),
            h("div", h("dt", "Limits"), h("dd", limitsInShort(first.limits ?? {}))),
          ),
        ),
      ),
    ),
  );
}

/** State, name, buttons, and the bar. @param {CallModel} model */
function paneHead(model) {
  const { id, call, state, isLive } = model;
  const { tool, server } = /** @type {Call} */ (call());
  const name = safeText(tool, 200);
  const end = () => {
    const known = call();
    const word = stateInWords(state() ?? "done", known?.outcome ?? null);
    const message = known && safeText(statusMessage(known), 1000);
    return message ? `${word}: ${message}` : word;
  };
  return h(
    "header.pane-head",
    h(
      "div.pane-title",
      stateIcon(() => state() ?? "queued"),
      h("h2.cut", name),
      h("span.faint.cut", safeText(server, 100)),
      h(
        "span.push",
        callActions(model, "small"),
        h(
          "a.button.quiet.small.square",
          { href: callPath(id), title: "Open its page", "aria-label": `Open the page of ${name}` },
          icon("open", "s"),
        ),
      ),
    ),
    h("div.pane-answer", rowAnswer({ id })),
    callProgress(model, name),
    h("p.pane-end", { shown: () => !isLive(), "data-state": state }, end),
  );
}

/** The numbers and the message of a report, once where the message has the numbers. @param {string | false} numbers @param {string} message */
const lastMessage = (numbers, message) =>
  numbers && message.includes(numbers) ? message : joinNonEmpty(numbers, message);

/** The bar of a live call, its per cent, and the time left; below it the last message. @param {CallModel} model @param {string} name */
export function callProgress({ call, state, isLive }, name) {
  const known = () => /** @type {Call} */ (call());
  const share = () => progressFraction(known());
  const percent = () => (share() === null ? formatProgress(known()) : formatPercent(share() ?? 0));
  const numbers = () => share() !== null && known().latest?.source !== "below" && formatProgress(known());
  const left = () => (state() === "running" || state() === "retrying" ? formatEstimate(known().eta) : "");
  return h(
    "div.call-progress",
    { shown: () => isLive() && !(state() === "waiting" && known().state === "queued") }, // its arguments say it all
    h(
      "div.call-bar",
      progressBar(known, `Progress of ${name}`, () => state() ?? "queued"),
      h("b", percent),
      h("span.faint", () => (left() ? `${left()} left` : "")),
    ),
    h("p.dim", () => safeText(lastMessage(numbers(), statusMessage(known()) ?? ""), 500)),
  );
}
