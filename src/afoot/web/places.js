// Where tools run, as lines: servers, browsers, tabs and plugins; how each is, and what can be done about it.

import { each, h } from "./dom.js";
import { mark, visible } from "./parts.js";
import { computed } from "./signal.js";

/** @typedef {{key: string, name: string, about: string, state: string, why: string, count: string}} Place */

const KINDS = /** @type {Record<string, string>} shape and colour of a state */ ({
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
 * Places under a title, if they need one. What somebody may press stays as it is while all around it changes.
 * @template T
 * @param {string} title
 * @param {() => T[]} list
 * @param {(item: T) => Place} describe
 * @param {(item: T, now: () => T) => Child[]} [more] buttons, and what stands below the line
 */
export function places(title, list, describe, more = () => []) {
  const line = (/** @type {T} */ item, /** @type {() => T} */ now) => {
    const place = computed(() => describe(now()));
    const text = (/** @type {keyof Place} */ part) => () => visible(place()[part], 400);
    const [kind, word] = [() => KINDS[place().state] ?? "queued", text("state")];
    const names = h("div", h("b", text("name")), h("div.soft", text("about")));
    const state = h("div", mark(kind, word), h("div.soft", text("why")));
    return h("li.place", names, state, h("div.soft", text("count")), ...more(item, now));
  };
  const keyOf = (/** @type {T} */ item) => describe(item).key;
  const lines = h("ul.lines", each(list, keyOf, line));
  return h("div.sheet", { shown: () => list().length }, title && h("h2", title), lines);
}
