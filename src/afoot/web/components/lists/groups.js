// groupedRows: rows under the heads of their groups, as every list of the console has them.

import { each, h } from "../../lib/dom.js";
import { formatCount } from "../../lib/format.js";

/** @typedef {{key: string, title: string, note?: string}} Group */

/**
 * @template T
 * @param {() => readonly (Group & {items: T[]})[]} groups
 * @param {(item: T) => string} keyOf
 * @param {(item: T, now: () => T) => Element} row
 * @param {{label: string, head?: HTMLElement | null}} options
 */
export function groupedRows(groups, keyOf, row, { label, head = null }) {
  const group = (/** @type {Group & {items: T[]}} */ first, /** @type {() => Group & {items: T[]}} */ now) =>
    h(
      "section",
      { "aria-label": () => now().title },
      h(
        "h2.list-group",
        () => now().title,
        h("span.count", () => formatCount(now().items.length)),
        h("span.push.count", () => now().note),
      ),
      h(
        "ul",
        { "aria-label": first.title },
        each(() => now().items, keyOf, row),
      ),
    );
  return h("div.list", { "aria-label": label, shown: () => groups().length }, head, each(groups, "key", group));
}

/** The names of columns. @param {`div.${string}`} tag @param {...string} names a name with a space before it is of numbers */
export const columnNames = (tag, ...names) =>
  h(tag, { "aria-hidden": "true" }, ...names.map((name) => h(name.startsWith(" ") ? "span.num" : "span", name.trim())));
