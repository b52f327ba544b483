// callResult: the result of a call, as a table, as its content, or as JSON; to copy and to download.

import { each, h } from "../../lib/dom.js";
import { cellText, tableOf } from "../../lib/call/result_table.js";
import { isContainer, parse } from "../../lib/text/exact_json.js";
import { formatBytes, formatCount, joinNonEmpty, plural } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";
import { contentBlocks, downloadLink, jsonTree } from "../content.js";
import { copyButton } from "../controls.js";
import { icon } from "../marks/icon.js";

/** @typedef {NonNullable<CallView["result"]>} Result */
/** @typedef {import("../../lib/call/result_table.js").Table} Table */

const FIRST_ROWS = 10;
const MORE_ROWS = 200;

/** @param {Result} result */
export function callResult(result) {
  const { blocks, value, text } = partsOf(result);
  const table = tableOf(value);
  const views = /** @type {[string, () => HTMLElement][]} */ ([
    ...(table ? [["Table", () => resultTable(table)]] : []),
    ...(blocks.length ? [["Content", () => contentBlocks(blocks)]] : []),
    ...(value !== undefined ? [["JSON", () => jsonTree(value)]] : []),
  ]);
  const chosen = signal(views[0]?.[0] ?? "");
  const button = (/** @type {[string, unknown]} */ [name]) =>
    h(
      "button",
      { type: "button", "aria-pressed": () => String(chosen() === name), onclick: () => chosen.set(name) },
      name,
    );
  const size = formatBytes(new Blob([text]).size);
  const file = value === undefined ? "result.txt" : "result.json";
  return h(
    "section.card.call-result",
    h(
      "header.card-head",
      h("h2", "Result"),
      h("span.faint", joinNonEmpty(table && plural(table.rows.length, "row"), size)),
      h(
        "span.push",
        h(
          "span.view-switch",
          { role: "group", "aria-label": "Show as", shown: views.length > 1 },
          ...views.map(button),
        ),
        copyButton(text, { class: "small" }),
        downloadLink([text], file, h("span.action", icon("download", "s"), "Download"), "small"),
      ),
    ),
    result.is_error && h("p.problem.card-note", "The tool says that this is an error."),
    views.length
      ? each(
          () => views.filter(([name]) => name === chosen()),
          "0",
          ([name, make]) => h("div", { "data-view": name }, make()),
        )
      : h("p.card-note.faint", "It returned nothing."),
  );
}

/**
 * The content of a result that its structured form does not repeat; that form, or the JSON of its text; and the text to
 * copy.
 * @param {Result} result
 */
export function partsOf({ content, structured }) {
  const all = /** @type {Json[]} */ ([content ?? []].flat());
  const only = all.length === 1 && all[0]?.type === "text" ? String(all[0].text ?? "") : null;
  const wrapped = isWrapped(structured) ? structured.result : structured; // structured content must be an object
  if (only !== null && wrapped === only) return { blocks: all, value: undefined, text: only };
  const parsed = only === null ? undefined : parsedContainer(only);
  const value = structured === undefined ? parsed : wrapped;
  const isRepeated =
    parsed !== undefined && [value, structured].some((one) => JSON.stringify(one) === JSON.stringify(parsed));
  const text = value === undefined ? (only ?? JSON.stringify(all, null, 2)) : JSON.stringify(value, null, 2);
  return { blocks: isRepeated || only === JSON.stringify(value) ? [] : all, value, text };
}

/** @param {Json} value */
const isWrapped = (value) => isContainer(value) && Object.keys(value).join() === "result";

/** @param {string} text */
function parsedContainer(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

/** @param {Table} table */
function resultTable({ columns, rows, more }) {
  const limit = signal(FIRST_ROWS);
  const visible = () => rows.slice(0, limit()).map((row, at) => ({ key: String(at), row }));
  const cell = (
    /** @type {Record<string, Json>} */ row,
    /** @type {{key: string, isNumber: boolean}} */ { key, isNumber },
    /** @type {number} */ at,
  ) => h("td", { class: isNumber ? "num" : at ? "" : "mid" }, cellText(row[key]));
  const line = (/** @type {{row: Record<string, Json>}} */ { row }) =>
    h("tr", ...columns.map((column, at) => cell(row, column, at)));
  const head = columns.map(({ key, isNumber }) => h("th", { scope: "col", class: isNumber ? "num" : "" }, key));
  const left = () => rows.length - limit();
  return h(
    "div",
    Object.keys(more).length > 0 && h("div.card-note", jsonTree(more)),
    h(
      "div.data-scroll",
      { tabindex: 0, role: "region", "aria-label": "Rows of the result" },
      h("table.data", h("thead", h("tr", ...head)), h("tbody", each(visible, "key", line))),
    ),
    h(
      "button.quiet.more-rows",
      { type: "button", shown: () => left() > 0, onclick: () => limit.set(limit.peek() + MORE_ROWS) },
      icon("down", "s"),
      () => `Show ${formatCount(Math.min(MORE_ROWS, left()))} more ${left() > 1 ? "rows" : "row"}`,
    ),
  );
}
