// statusList: servers, browsers, tabs and plugins as rows with their state and buttons.

import { each, h } from "../lib/dom.js";
import { statusBadge } from "./status.js";
import { safeText } from "../lib/format.js";
import { computed } from "../lib/signal.js";

/** @typedef {{key: string, name: string, about: string, state: string, why: string, count: string}} StatusItem */

const STATE_STATUS = /** @type {Record<string, string>} shape and colour of a state */ ({
  ...{
    ready: "ok",
    connected: "ok",
    starting: "running",
    idle: "queued",
    closed: "queued",
    unavailable: "stalled",
    "at its quota": "hindered",
  },
  ...{ lost: "lost", failed: "failed", unusable: "failed", stopped: "cancelled", disabled: "cancelled" },
});

/**
 * A list under an optional title. Buttons keep their elements while the text around them changes.
 * @template T
 * @param {string} title
 * @param {() => T[]} list
 * @param {(item: T) => StatusItem} describe
 * @param {(item: T, now: () => T) => Child[]} [more] buttons, and elements below the row
 */
export function statusList(title, list, describe, more = () => []) {
  const line = (/** @type {T} */ item, /** @type {() => T} */ now) => {
    const place = computed(() => describe(now()));
    const text = (/** @type {keyof StatusItem} */ part) => () => safeText(place()[part], 400);
    const kind = () => STATE_STATUS[place().state] ?? "queued";
    const word = text("state");
    const names = h("div", h("b", text("name")), h("div.soft", text("about")));
    const state = h("div", statusBadge(kind, word), h("div.soft", text("why")));
    return h("li.status-item", names, state, h("div.soft", text("count")), ...more(item, now));
  };
  const keyOf = (/** @type {T} */ item) => describe(item).key;
  const lines = h("ul.lines", each(list, keyOf, line));
  return h("div.sheet", { shown: () => list().length }, title && h("h2", title), lines);
}
