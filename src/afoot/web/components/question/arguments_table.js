// argumentsTable: the arguments of an approval beside those of the last approved run. Each change is marked word by
// word, and nothing that is new is folded away.

import { h } from "../../lib/dom.js";
import { isContainer, isObject, isRedacted, parse } from "../../lib/text/exact_json.js";
import { safeText } from "../../lib/format.js";
import { diffWords } from "../../lib/text/text_diff.js";
import { collapsible, jsonTree } from "../content.js";

/** One argument, now and before; undefined: it was not given. @typedef {{name: string, now: Json, before: Json, isChanged: boolean}} Row */

const SHOWN_NAMES = 6; // of the members of a folded value

/** @param {Pick<QuestionView, "arguments" | "changed">} question */
export function argumentsTable({ arguments: given, changed }) {
  if (!isObject(given)) return jsonTree(given, Infinity);
  const before = argumentsBefore(given, changed);
  const rows = argumentRows(given, before);
  if (!rows.length) return h("p.dim", "No arguments are given.");
  const columns = ["Argument", "Now", ...(before ? ["Last approved run"] : [])];
  const head = h("tr", ...columns.map((name) => h("th", { scope: "col" }, name)));
  const body = rows.map((row) => argumentRow(row, before !== null));
  return h("table.arguments", { "data-columns": columns.length }, h("thead", head), h("tbody", ...body));
}

/**
 * The arguments of the last approved run; null if there was none, or they are too long to compare.
 * @param {Record<string, Json>} given
 * @param {QuestionView["changed"]} changed
 * @returns {Record<string, Json> | null}
 */
export function argumentsBefore(given, changed) {
  if (!changed) return null;
  if (!changed.arguments) return given;
  try {
    const before = parse(changed.arguments.before);
    return isObject(before) ? before : null;
  } catch {
    return null;
  }
}

/**
 * Every argument of now or before, in the order of now.
 * @param {Record<string, Json>} given
 * @param {Record<string, Json> | null} before
 * @returns {Row[]}
 */
export function argumentRows(given, before) {
  const names = [...new Set([...Object.keys(given), ...Object.keys(before ?? {})])];
  const valueIn = (/** @type {Record<string, Json>} */ all, /** @type {string} */ name) =>
    Object.hasOwn(all, name) ? all[name] : undefined;
  return names.map((name) => {
    const [now, then] = [valueIn(given, name), valueIn(before ?? {}, name)];
    return { name, now, before: then, isChanged: before === null || toText(now) !== toText(then) };
  });
}

/** @param {Row} row @param {boolean} hasBefore */
function argumentRow({ name, now, before, isChanged }, hasBefore) {
  const isMarked = hasBefore && isChanged;
  const canCompare = isMarked && now !== undefined && before !== undefined && !isRedacted(now) && !isRedacted(before);
  const pieces = canCompare ? diffWords(toText(before), toText(now)) : [];
  const marked = (/** @type {"gone" | "new"} */ kind, /** @type {"del" | "ins"} */ tag) =>
    h("code", ...pieces.filter((one) => one.kind === "same" || one.kind === kind)
      .map((one) => (one.kind === "same" ? h("span", one.text) : h(tag, one.text)))); // prettier-ignore
  const last = !isChanged ? h("span.faint", "same") : canCompare ? marked("gone", "del") : valueCell(before, true);
  return h(
    "tr",
    { "data-changed": isMarked },
    h("th", { scope: "row" }, isMarked && h("span.sr", "changed: "), h("code", safeText(name, 300))),
    h("td", canCompare ? marked("new", "ins") : valueCell(now, isChanged)),
    hasBefore && h("td", last),
  );
}

/** @param {Json} value @param {boolean} isOpen */
function valueCell(value, isOpen) {
  if (value === undefined) return h("span.faint", "not given");
  if (isRedacted(value)) return h("i.faint", "not shown: it is secret");
  if (!isContainer(value)) return h("code", toText(value));
  const names = Array.isArray(value) ? [] : Object.keys(value);
  if (!Object.keys(value).length) return h("code", toText(value));
  const size = Array.isArray(value) ? `[ ${value.length} ]` : `{ ${names.length} }`;
  const more = names.length > SHOWN_NAMES ? ", …" : "";
  const summary = [h("code", size), " ", h("span.faint", `${names.slice(0, SHOWN_NAMES).join(", ")}${more}`)];
  return collapsible(summary, () => jsonTree(value, Infinity), isOpen);
}

/** @param {Json} value */
const toText = (value) => (value === undefined ? "" : JSON.stringify(value, null, 2));
