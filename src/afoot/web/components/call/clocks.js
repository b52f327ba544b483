// callClocks: the two clocks of a call in full: as they stand while it lives, and how close they came once it has ended.

import { h } from "../../lib/dom.js";
import { formatLeft, formatPercent, formatSpan, safeText } from "../../lib/format.js";
import { lengthOf } from "../../lib/call/silence.js";
import { ceilingLine, silenceRing } from "../marks/clocks.js";
import { sawtooth } from "./sawtooth.js";

/** @typedef {import("../../lib/call/silence.js").Silence} Silence */

const FROZEN_WORDS = /** @type {Record<string, string>} */ ({
  asked: "Both stand still while a person is asked",
  below: "Both stand still: a call below asks",
  queued: "Neither runs before it starts",
  cancelling: "Only its time to stop runs",
});

/**
 * @param {() => ClockReading | null} reading of a live call; null once it has ended
 * @param {() => Silence | null} silence
 * @param {() => number | null} ceiling_s
 */
export function callClocks(reading, silence, ceiling_s) {
  const past = () => pastReading(silence(), ceiling_s());
  const shown = () => reading() ?? past();
  return h(
    "div.clock-pair",
    { shown },
    h("div.clock-silence", silenceRing(shown), h("div", ...silenceWords(reading, silence))),
    h("div.clock-ceiling", ...ceilingWords(reading, silence, shown)),
    h("p.clock-frozen", { shown: () => frozenWords(reading()) }, () => frozenWords(reading())),
    sawtooth(silence),
  );
}

/** @param {() => ClockReading | null} reading @param {() => Silence | null} silence */
function silenceWords(reading, silence) {
  const longest = () => silence()?.longest ?? null;
  const figure = () =>
    formatSpan(reading() ? (reading()?.silent_s ?? 0) : longest() ? lengthOf(/** @type {any} */ (longest())) : 0);
  const limit = () => (reading() ? reading()?.idle_s : silence()?.limit_s) ?? null;
  const isCounted = () => !reading() || limit() !== null || reading()?.frozen;
  const place = () => {
    const [found, one] = [silence(), longest()];
    if (reading() || !found || !one) return "";
    return `at ${formatSpan(one.from - found.from)}${found.where ? `, in ${safeText(found.where, 100)}` : ""}`;
  };
  return [
    h(
      "div",
      h("span.clock-label", () => (reading() ? "Silent" : "Longest silence")),
      " ",
      h("b", { "data-last": () => reading()?.is_silence_last }, figure),
      h("span.faint", () => (limit() === null ? "" : ` of ${formatLeft(limit() ?? 0)}`)),
    ),
    h("div.faint", { shown: place }, place),
    h("div.faint", { shown: () => !isCounted() }, "silence does not end it"),
  ];
}

/** @param {() => ClockReading | null} reading @param {() => Silence | null} silence @param {() => ClockReading | null} shown */
function ceilingWords(reading, silence, shown) {
  const limit = () => shown()?.ceiling_s ?? null;
  const share = () => {
    const left_s = reading()?.ceiling_left_s ?? null;
    if (left_s !== null) return `${formatLeft(left_s)} left`;
    return limit() === null ? "" : formatPercent(shown()?.used ?? 0);
  };
  const asked = () =>
    (silence()?.asked_s ?? 0) >= 0.05 && `and ${formatSpan(silence()?.asked_s ?? 0)} asked, which does not count`;
  return [
    h(
      "div.clock-line",
      h(
        "span",
        h("span.clock-label", "On the clock"),
        " ",
        h("b", { "data-last": () => reading()?.is_ceiling_last }, () => formatSpan(shown()?.used_s ?? 0)),
        h("span.faint", () => (limit() === null ? "" : ` of ${formatLeft(limit() ?? 0)}`)),
      ),
      h("span.faint", share),
    ),
    ceilingLine(shown),
    h("div.faint", { shown: asked }, asked),
  ];
}

/** @param {ClockReading | null} reading */
function frozenWords(reading) {
  const words = FROZEN_WORDS[reading?.frozen ?? ""] ?? "";
  const left_s = reading?.answer_left_s ?? null;
  return words && left_s !== null ? `${words}, ${formatLeft(left_s)} to answer` : words;
}

/**
 * The clocks of a call that has ended: the ring shows its longest silence, the line all that it used.
 * @param {Silence | null} silence
 * @param {number | null} ceiling_s
 * @returns {ClockReading | null}
 */
function pastReading(silence, ceiling_s) {
  if (!silence) return null;
  const { limit_s, longest, spent_s } = silence;
  const silent_s = longest ? lengthOf(longest) : 0;
  const used = ceiling_s ? Math.min(1, spent_s / ceiling_s) : 0;
  return {
    ...{
      silent_s,
      idle_s: limit_s,
      silence_left: limit_s ? Math.max(0, 1 - silent_s / limit_s) : 1,
      is_silence_last: false,
    },
    ...{ used_s: spent_s, ceiling_s, used, is_ceiling_last: false, ceiling_left_s: null },
    ...{ frozen: "", answer_left_s: null },
  };
}
