// tableOf: the rows of a result that reads best as a table. Pure.

import { isContainer, isObject } from "../text/exact_json.js";

/** @typedef {{columns: {key: string, isNumber: boolean}[], rows: Record<string, Json>[], more: Record<string, Json>}} Table `more`: the members beside the rows */

const MAX_COLUMNS = 12;

/**
 * The table in a value: a list of objects, or an object with just one such list. Null: it is no table.
 * @param {Json} value
 * @returns {Table | null}
 */
export function tableOf(value) {
  if (Array.isArray(value)) return rowsTable(value, {});
  if (!isObject(value)) return null;
  const lists = Object.entries(value).filter(([, one]) => Array.isArray(one) && rowsTable(one, {}));
  if (lists.length !== 1) return null;
  const [[name, rows]] = lists;
  const more = Object.fromEntries(Object.entries(value).filter(([key]) => key !== name));
  return rowsTable(rows, more);
}

/** The text of a cell. @param {Json} value */
export function cellText(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** @param {Json[]} rows @param {Record<string, Json>} more @returns {Table | null} */
function rowsTable(rows, more) {
  if (!rows.length || !rows.every(isObject)) return null;
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  if (!keys.length || keys.length > MAX_COLUMNS) return null;
  // Rows that have little in common, or that are deep, are easier to read as a tree.
  const filled = rows.reduce((sum, row) => sum + Object.keys(row).length, 0);
  const deep = rows.reduce((sum, row) => sum + Object.values(row).filter(isContainer).length, 0);
  if (filled < (rows.length * keys.length) / 2 || deep > filled / 3) return null;
  const columns = keys.map((key) => ({ key, isNumber: rows.every((row) => isNumber(row[key])) }));
  return { columns, rows, more };
}

/** @param {Json} value */
const isNumber = (value) => value == null || typeof value === "number" || JSON.isRawJSON(value);
