// lookup: reads a resource or fills in a prompt. What a function of this gateway answers is a call, which is followed.

import { get, post } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { callFromView } from "../../lib/fold.js";
import {
  formatEstimate,
  formatPercent,
  formatSpan,
  progressFraction,
  safeText,
  statusMessage,
} from "../../lib/format.js";
import { attempt, errorMessage, serialized } from "../../lib/resource.js";
import { callPath } from "../../lib/router.js";
import { effect, signal } from "../../lib/signal.js";
import { stateOf, STATE_WORDS } from "../../lib/state.js";
import { store } from "../../lib/store.js";
import { now } from "../../lib/time.js";
import { contentBlocks } from "../content.js";
import { progressBar } from "../marks/progress_bar.js";
import { stateIcon } from "../marks/state_icon.js";

/** @typedef {{contents?: Json[], messages?: {role: string, content: Json}[]}} Answer */

/** Start lookups one after the other, and show the newest. @param {string} path of the API */
export function lookup(path) {
  const answer = signal(/** @type {Answer | null} */ (null));
  const call = signal(/** @type {CallView | null} */ (null));
  const problem = signal("");
  let number = 0;
  const ask = async (/** @type {object} */ body) => {
    number += 1;
    const own = number;
    answer.set(null);
    call.set(null);
    problem.set("");
    const [found, error] = await attempt(post(path, body));
    if (own !== number) return;
    problem.set(error?.message ?? "");
    if (found?.id && found.state) call.set(found);
    else if (found) answer.set(found);
  };
  followCall(call, (ended) => {
    if (ended.id !== call.peek()?.id) return;
    call.set(ended);
    problem.set(ended.failure?.message ?? "");
    if (ended.result) answer.set(answerOf(ended.result));
  });
  const node = h(
    "div.lookup",
    { "aria-live": "polite" },
    errorMessage(problem),
    () => callLine(call()),
    () => answerView(answer()),
  );
  return { ask, node };
}

/** Read the whole of a call once it has ended. @param {() => CallView | null} call @param {(ended: CallView) => void} then */
function followCall(call, then) {
  const read = serialized(async (isOver) => {
    const id = call()?.id;
    const [found] = id ? await attempt(get(`/api${callPath(id)}`)) : [null];
    if (!isOver() && found?.state === "finished") then(found);
  });
  effect(() => {
    const found = call();
    if (!found || found.result || found.failure) return;
    entryOf(found.id)?.call();
    void read();
  });
}

/** The entry of a call, also one that is added or brought by a snapshot later. @param {string} id */
function entryOf(id) {
  store.about();
  if (!store.get(id)) store.roots();
  return store.get(id);
}

/** The call of a lookup: how far it is, or how long it took. @param {CallView | null} view */
function callLine(view) {
  if (!view) return null;
  const call = () => entryOf(view.id)?.reading() ?? callFromView(view);
  const state = () => stateOf(call());
  const share = () => progressFraction(call());
  const spent = () => formatSpan((call().finished ?? now()) - call().opened);
  return h(
    "p.with-icon",
    stateIcon(state, null),
    h("a", { href: callPath(view.id) }, () => STATE_WORDS[state()]),
    h("span", { shown: () => call().state !== "finished" }, progressBar(call, "Progress", state)),
    h("span.num", () => (share() === null || call().state === "finished" ? "" : formatPercent(share() ?? 0))),
    h("span.faint", () => (call().state === "finished" ? "" : formatEstimate(call().eta))),
    h("span.dim.cut", () => (call().state === "finished" ? "" : safeText(statusMessage(call()), 200))),
    h("span.faint", spent),
  );
}

/** The answer in the result of a call of ours: messages, or contents as embedded resources. @param {NonNullable<CallView["result"]>} result @returns {Answer} */
export function answerOf({ content, structured }) {
  if (structured?.messages) return structured;
  return { contents: content.map((/** @type {Json} */ one) => one.resource ?? one) };
}

/** @param {Answer | null} answer */
function answerView(answer) {
  if (!answer) return null;
  if (answer.messages) {
    const message = (/** @type {{role: string, content: Json}} */ { role, content }) =>
      h("li.card", h("div.card-head", h("h3", safeText(role, 40))), h("div.card-body", contentBlocks(content)));
    return h("ol.messages", ...answer.messages.map(message));
  }
  const contents = answer.contents ?? [];
  if (!contents.length) return h("p.faint", "It has no content.");
  return contentBlocks(contents.map((resource) => ({ type: "resource", resource })));
}
