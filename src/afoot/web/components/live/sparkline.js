// sparkline and sparkBars: small drawings of figures over time, beside the figure of now. Words beside them say the same.

import { svg } from "../../lib/dom.js";

const WIDTH = 88;
const HEIGHT = 24;
const MARGIN = 3;
const BOX = { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" };

/** A line; a value that is null is left out. @param {() => readonly (number | null)[]} values */
export function sparkline(values) {
  const points = () => linePoints(values());
  const end = () => points().at(-1);
  const path = () => points().map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""); // prettier-ignore
  return svg(
    "svg",
    { class: "sparkline", ...BOX, visibility: () => (points().length > 1 ? null : "hidden") },
    svg("path", { d: path }),
    svg("circle", { cx: () => end()?.[0] ?? 0, cy: () => end()?.[1] ?? 0, r: 2 }),
  );
}

/** A bar for each value; nothing is a short mark on the ground. @param {() => readonly number[]} values */
export function sparkBars(values) {
  const top = () => Math.max(1, ...values());
  const path = (/** @type {(value: number) => boolean} */ is) => () => {
    const all = values();
    const step = (WIDTH - MARGIN) / Math.max(1, all.length);
    const bars = all.map((value, at) => {
      const height = value ? MARGIN + (value / top()) * (HEIGHT - 2 * MARGIN) : 1;
      return is(value) ? `M${(at * step + 1).toFixed(1)} ${HEIGHT - MARGIN}v${(-height).toFixed(1)}` : "";
    });
    return bars.join("");
  };
  return svg(
    "svg",
    { class: "sparkline bars", ...BOX },
    svg("path", { class: "none", d: path((value) => !value) }),
    svg("path", { class: "some", d: path(Boolean) }),
  );
}

/** The points of a line between the margins. @param {readonly (number | null)[]} values @returns {[number, number][]} */
export function linePoints(values) {
  const known = values.flatMap((value, at) => (value === null ? [] : [[at, value]]));
  const top = Math.max(1e-9, ...known.map(([, value]) => value));
  const width = (WIDTH - 2 * MARGIN) / Math.max(1, values.length - 1);
  return known.map(([at, value]) => [MARGIN + at * width, HEIGHT - MARGIN - (value / top) * (HEIGHT - 2 * MARGIN)]);
}
