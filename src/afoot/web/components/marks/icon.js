// icon: the small marks of the console, drawn in a square of 16. Shapes of the states are in state_icon.js.

import { svg } from "../../lib/dom.js";

/** @typedef {[tag: string, attributes: Props]} Shape */

/** @param {string} d @param {Record<string, string | number>} [more] @returns {Shape} */
export const path = (d, more) => ["path", { d, ...more }];

/** @satisfies {Record<string, Shape[]>} */
const ICONS = {
  again: [path("M13 8a5 5 0 1 1-1.6-3.7L13 5.8M13 2.6v3.2H9.8")],
  answer: [path("M2.5 3.5h11v7.5H7.6L4.8 13.4V11H2.5z")],
  bell: [path("M3.5 11.5h9c-1-1.2-1.2-2.3-1.2-4.2a3.3 3.3 0 0 0-6.6 0c0 1.9-.2 3-1.2 4.2zM6.7 13.6h2.6")],
  check: [path("M3 8.6 6.3 12 13 4.6", { "stroke-width": 1.9 })],
  close: [path("M4.2 4.2l7.6 7.6M11.8 4.2l-7.6 7.6")],
  cluster: [path("M6 2.2h4v3.6H6zM1.8 10.2h4v3.6h-4zM10.2 10.2h4v3.6h-4zM8 5.8V8M3.8 10.2V8h8.4v2.2")],
  compare: [path("M5 2.5v11M11 2.5v11M2.5 5.5h5M8.5 10.5h5")],
  copy: [
    ["rect", { x: 5.5, y: 5.5, width: 8, height: 8, rx: 1.5 }],
    path("M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5"),
  ],
  document: [path("M4 1.8h5.4L12.6 5v9.2H4zM9.2 2v3.2h3.2M6 8.2h4.4M6 10.8h4.4")],
  down: [path("M4.5 6.3 8 9.8l3.5-3.5")],
  download: [path("M8 2.5v7.3M4.8 6.8 8 10l3.2-3.2M3 13h10")],
  find: [["circle", { cx: 7, cy: 7, r: 4.2 }], path("M10.2 10.2 13.5 13.5")],
  history: [path("M3 8a5.2 5.2 0 1 0 1.7-3.8L3 5.7M3 2.6v3.1h3.1M8 5.2V8.3l2 1.3")],
  inbox: [path("M2.2 9h3.3l1 1.8h3L10.5 9h3.3M2.2 9l2-5.5h7.6l2 5.5v3.5H2.2z")],
  info: [
    ["circle", { cx: 8, cy: 8, r: 5.8 }],
    path("M8 7.4v3.4"),
    ["circle", { cx: 8, cy: 5.2, r: 0.5, fill: "currentColor" }],
  ],
  left: [path("M9.8 4.5 6.3 8l3.5 3.5")],
  light: [
    ["circle", { cx: 8, cy: 8, r: 2.8 }],
    path(
      "M8 1.4v1.8M8 12.8v1.8M1.4 8h1.8M12.8 8h1.8M3.3 3.3l1.3 1.3M11.4 11.4l1.3 1.3M3.3 12.7l1.3-1.3M11.4 4.6l1.3-1.3",
    ),
  ],
  list: [path("M2.5 4h9M2.5 8h11M2.5 12h7")],
  dark: [path("M13.2 9.4A5.6 5.6 0 0 1 6.6 2.8a5.6 5.6 0 1 0 6.6 6.6z")],
  more: [
    path(
      "M2 8a1.4 1.4 0 1 1 2.8 0A1.4 1.4 0 0 1 2 8zm4.6 0a1.4 1.4 0 1 1 2.8 0 1.4 1.4 0 0 1-2.8 0zm4.6 0A1.4 1.4 0 1 1 14 8a1.4 1.4 0 0 1-2.8 0z",
      { class: "solid" },
    ),
  ],
  open: [path("M6 3.5H3.5v9h9V10M9 3h4v4M13 3 7.5 8.5")],
  play: [path("M5 3.2v9.6L12.6 8z", { class: "solid" })],
  prompt: [path("M2.2 3h11.6v8H7.4l-3 2.6V11H2.2zM5 6h6M5 8.4h4")],
  right: [path("M6.3 4.5 9.8 8l-3.5 3.5")],
  server: [path("M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01")],
  system: [["circle", { cx: 8, cy: 8, r: 5.6 }], path("M8 2.4a5.6 5.6 0 0 1 0 11.2z", { class: "solid" })],
  tab: [path("M2 4.2h12v9H2zM2 6.8h12M4 4.2V2.8h4v1.4")],
  up: [path("M4.5 9.8 8 6.3l3.5 3.5")],
  tool: [
    path(
      "M13.6 4.6a3.3 3.3 0 0 1-4.4 4L5 12.8a1.3 1.3 0 0 1-1.9-1.9l4.3-4.2a3.3 3.3 0 0 1 4-4.4L9.5 4.2l.4 1.9 1.9.4z",
    ),
  ],
  warning: [path("M8 2.2 14.6 13.6H1.4zM8 6.6v3.2"), ["circle", { cx: 8, cy: 11.6, r: 0.5, fill: "currentColor" }]],
};

/**
 * A mark of the console; without words, as a word or a label stands beside it.
 * @param {keyof typeof ICONS} name
 * @param {string} [more] class names
 */
export const icon = (name, more = "") => drawn(ICONS[name], more);

/** Shapes as an icon. @param {Shape[]} shapes @param {string} [more] */
export const drawn = (shapes, more = "") =>
  svg(
    "svg",
    { class: `icon ${more}`.trim(), viewBox: "0 0 16 16", "aria-hidden": "true" },
    ...shapes.map(([tag, attributes]) => svg(tag, attributes)),
  );
