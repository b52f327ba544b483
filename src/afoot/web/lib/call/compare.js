// compareMembers: two objects member by member, such as the arguments of two runs. Pure.

import { isObject } from "../text/exact_json.js";

/** A member of one or both: its JSON text, or null where it is not there. @typedef {{key: string, now: string | null, before: string | null, isSame: boolean}} Member */

/**
 * The members of two objects, in the order of the first; other values are one member without a name.
 * @param {Json} now
 * @param {Json} before
 * @returns {Member[]}
 */
export function compareMembers(now, before) {
  if (!isObject(now) || !isObject(before)) return [member("", now, before)];
  const keys = new Set([...Object.keys(now), ...Object.keys(before)]);
  return [...keys].map((key) => member(key, now[key], before[key]));
}

/** @param {string} key @param {Json} now @param {Json} before @returns {Member} */
function member(key, now, before) {
  const [one, other] = [now, before].map((value) => (value === undefined ? null : JSON.stringify(value)));
  return { key, now: one, before: other, isSame: one === other || sortedJson(now) === sortedJson(before) };
}

/** JSON whose members are in order, so that the order of a caller makes no difference. @param {Json} value */
const sortedJson = (value) =>
  JSON.stringify(value, (_, one) =>
    isObject(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one,
  );
