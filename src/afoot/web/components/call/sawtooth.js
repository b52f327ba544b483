// sawtooth: the silence of a call over time. It rises while nothing is heard and falls with each report, below the line of
// its limit; where the clock stood still, the ground is amber.

import { h, svg } from "../../lib/dom.js";
import { formatSpan, plural } from "../../lib/format.js";
import { lengthOf, outline } from "../../lib/call/silence.js";

/** @typedef {import("../../lib/call/silence.js").Silence} Silence */

const WIDTH = 400;
const HEIGHT = 46;
const LIMIT_Y = 7;
const BASE_Y = HEIGHT - 1;
const USUAL_TOP_S = 10; // the height of the drawing of a call without a limit

/** @param {() => Silence | null} silence */
export function sawtooth(silence) {
  return h(
    "figure.sawtooth",
    { shown: () => silence()?.teeth.length || silence()?.still.length },
    () => drawing(silence()),
    h(
      "figcaption",
      h("span", "silence, 0:00"),
      h(
        "span",
        h(
          "span.t-bad",
          { shown: () => limitOf(silence()) !== null },
          () => `- - limit ${formatSpan(limitOf(silence()) ?? 0)}`,
        ),
        h("span.t-you", { shown: () => silence()?.still.length }, " ■ asked"),
      ),
      h("span", () => (silence() ? formatSpan(spanOf(silence())) : "")),
    ),
  );
}

/** @param {Silence | null} silence */
const limitOf = (silence) => silence?.limit_s ?? null;

/** @param {Silence | null} silence */
const spanOf = (silence) => (silence ? silence.until - silence.from : 0);

/** @param {Silence | null} silence */
function drawing(silence) {
  if (!silence || silence.until <= silence.from) return null;
  const { from, until, limit_s, longest, still } = silence;
  const top_s = limit_s ?? Math.max(USUAL_TOP_S, longest ? lengthOf(longest) * 1.2 : 0);
  const x = (/** @type {number} */ at) => (((at - from) / (until - from)) * WIDTH).toFixed(1);
  const y = (/** @type {number} */ seconds) => Math.max(1, BASE_Y - (seconds / top_s) * (BASE_Y - LIMIT_Y)).toFixed(1);
  const points = outline(silence, (until - from) / WIDTH).map(([at, seconds]) => `${x(at)},${y(seconds)}`);
  const line = [...points, `${WIDTH},${BASE_Y}`].join(" ");
  const grounds = still.map((one) =>
    svg("rect", {
      class: "sawtooth-still",
      x: x(one.from),
      y: LIMIT_Y,
      width: Math.max(1, Number(x(one.until)) - Number(x(one.from))),
      height: HEIGHT - LIMIT_Y,
    }),
  );
  const dots = still.map((one) =>
    svg("line", { class: "sawtooth-asked", x1: x(one.from), x2: x(one.until), y1: BASE_Y - 1, y2: BASE_Y - 1 }),
  );
  const limit =
    limit_s !== null && svg("line", { class: "sawtooth-limit", x1: 0, x2: WIDTH, y1: LIMIT_Y, y2: LIMIT_Y });
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words(silence) },
    ...grounds,
    svg("polygon", { class: "sawtooth-area", points: `0,${BASE_Y} ${line}` }),
    svg("polyline", { class: "sawtooth-line", points: line }),
    svg("line", { class: "sawtooth-base", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }),
    limit,
    ...dots,
  );
}

/** The drawing in words. @param {Silence} silence */
function words({ from, until, limit_s, longest, still, asked_s }) {
  const most = longest
    ? `longest ${formatSpan(lengthOf(longest))}, from ${formatSpan(longest.from - from)} on`
    : "never silent";
  const limit = limit_s === null ? "no limit" : `limit ${formatSpan(limit_s)}`;
  const asked = still.length ? `; asked ${plural(still.length, "time")} for ${formatSpan(asked_s)}` : "";
  return `Silence over ${formatSpan(until - from)}: ${most}, ${limit}${asked}`;
}
