// narrowRow: a live call in two lines, for the side panel and for the frame of a host: name and per cent, then words and
// both clocks; its bar is the lower edge.

import { ceilingLine, silenceRing } from "../marks/clocks.js";
import { progressBar, shownFraction } from "../marks/progress_bar.js";
import { stateIcon } from "../marks/state_icon.js";
import { callWords } from "../../lib/call/call_words.js";
import { readClocks } from "../../lib/call/clock_reading.js";
import { h } from "../../lib/dom.js";
import { formatLeft, formatNumber, formatPercent, formatSpan, safeText } from "../../lib/format.js";
import { computed } from "../../lib/signal.js";
import { isLive, stateOf } from "../../lib/state.js";

/**
 * @typedef {object} RowOptions
 * @property {() => number} at the gateway's time; it stands still while the gateway cannot be reached
 * @property {number} [depth] how many calls it is below
 * @property {(call: () => Call) => Node | null} [action] its button
 * @property {(call: Call) => string} [words] in place of its own
 */

/**
 * @param {() => Call} call
 * @param {RowOptions} options
 */
export function narrowRow(call, { at, depth = 0, action, words }) {
  const clocks = computed(() => (call().finished === null ? readClocks(call(), at()) : null));
  const state = computed(() => stateOf(call(), clocks()));
  const line = computed(() => {
    const own = words?.(call()) ?? "";
    return own ? { warning: "", text: own } : callWords(call(), state(), clocks());
  });
  const name = safeText(call().tool, 200);
  return h(
    "article.narrow-row",
    { "data-state": state, "data-call": () => call().id, "style.--depth": String(depth) },
    stateIcon(state),
    h(
      "div.row-line",
      h("h3.cut", { title: name }, name),
      h("span.figure", () => (isLive(state()) ? liveFigure(call()) : endedFigure(call()))),
      action ? action(call) : null,
    ),
    h(
      "div.row-line.second",
      h(
        "p.cut.words",
        h("span.t-bad", () => line().warning),
        " ",
        h("span", () => line().text),
      ),
      clockFigures(clocks, state),
    ),
    progressBar(call, `${name}: progress`, state),
  );
}

/**
 * Both clocks with their figures; nothing for a call that is over.
 * @param {() => ClockReading | null} clocks
 * @param {() => import("../../lib/state.js").CallState} state
 */
function clockFigures(clocks, state) {
  const isAsked = () => clocks()?.answer_left_s != null;
  const silence = () => {
    const now = clocks();
    if (!now || (now.idle_s === null && !now.frozen)) return "";
    return now.answer_left_s != null ? formatLeft(now.answer_left_s) : formatSpan(now.silent_s);
  };
  return h(
    "span.clock-figures",
    { shown: () => isLive(state()) && clocks() !== null },
    silenceRing(clocks),
    h(
      "span.clock-figure",
      { "data-asked": isAsked, "data-last": () => clocks()?.is_silence_last && !clocks()?.frozen },
      silence,
    ),
    ceilingLine(clocks),
    h("span.clock-figure", { "data-last": () => clocks()?.is_ceiling_last && !clocks()?.frozen }, () =>
      formatSpan(clocks()?.used_s ?? 0),
    ),
  );
}

/** How far it is: per cent, or what it counts without a total. @param {Call} call */
function liveFigure(call) {
  const share = shownFraction(call);
  if (share !== null) return formatPercent(share);
  const counted = call.latest?.progress;
  return counted == null ? "" : formatNumber(counted);
}

/** How long it took. @param {Call} call */
const endedFigure = ({ opened, finished }) => formatSpan((finished ?? opened) - opened);
