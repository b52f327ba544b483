// silenceRing and ceilingLine: the two clocks of a call. Silence can begin again, so it is a ring; the ceiling only goes
// one way, so it is a line with a wall. Both are dotted while they stand still.

import { h, svg } from "../../lib/dom.js";
import { effect } from "../../lib/signal.js";

const JUMP = 3; // per cent of the ring: it is filled by more at once only when a call was silent and is heard again

/** @type {ClockReading} */
const ASKED = {
  ...{ silent_s: 0, idle_s: null, silence_left: 1, is_silence_last: false },
  ...{ used_s: 0, ceiling_s: null, used: 0, is_ceiling_last: false, ceiling_left_s: null },
  ...{ frozen: "asked", answer_left_s: null },
};

/**
 * The ring of silence: full after a report, it empties clockwise; a pause sign while it stands still.
 * @param {() => ClockReading | null} reading null: the call has no such clock now
 */
export function silenceRing(reading) {
  const isShown = () => (reading()?.idle_s ?? null) !== null || reading()?.frozen;
  // A whole per cent is finer than a ring of 16 px can show, and changes a hundred times at most.
  const left = () => Math.round((reading()?.silence_left ?? 1) * 100);
  return svg(
    "svg",
    {
      class: "ring",
      viewBox: "0 0 16 16",
      "aria-hidden": "true",
      "data-last": () => reading()?.is_silence_last && !reading()?.frozen,
      "data-frozen": () => reading()?.frozen || null,
      visibility: () => (isShown() ? null : "hidden"),
    },
    svg("circle", { class: "track", cx: 8, cy: 8, r: 6.5, pathLength: 100 }),
    silenceArc(left),
    svg("path", { class: "pause", d: "M6.6 5.8v4.4M9.4 5.8v4.4" }),
  );
}

/**
 * The arc of a ring. It empties without an animation, which would draw each ring of the list in every frame.
 * @param {() => number} left per cent
 */
function silenceArc(left) {
  const circle = { cx: 8, cy: 8, r: 6.5, pathLength: 100, transform: "rotate(-90 8 8)" };
  const arc = svg("circle", { class: "arc", ...circle });
  let drawn = -1;
  effect(() => {
    const next = left();
    if (next === drawn) return;
    arc.toggleAttribute("data-jump", drawn >= 0 && next - drawn > JUMP);
    arc.setAttribute("stroke-dashoffset", String(next - 100));
    drawn = next;
  });
  return arc;
}

/** The ring of a call whose clocks stand still because a person is asked. */
export const frozenRing = () => silenceRing(() => ASKED);

/**
 * The line of the ceiling: it fills from the left, against a wall.
 * @param {() => ClockReading | null} reading
 */
export function ceilingLine(reading) {
  const used = () => ((reading()?.ceiling_s ?? null) === null ? null : (reading()?.used ?? 0));
  return h(
    "span.ceiling",
    {
      "aria-hidden": "true",
      "data-last": () => reading()?.is_ceiling_last && !reading()?.frozen,
      "data-frozen": () => reading()?.frozen || null,
      "style.visibility": () => (used() === null ? "hidden" : null),
    },
    h("i", { "style.--used": () => (used() ?? 0).toFixed(2) }), // half a pixel
  );
}
