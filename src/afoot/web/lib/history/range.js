// historyTime and the queries of the history: the time, filters and order that the address of the view asks for. Pure.

/** @typedef {{since: number, until: number, name: string}} TimeRange `name` is a key of RANGES, or empty */
/** @typedef {Record<string, string>} Query */

/** The ranges that end now, in seconds, and their words. @type {Record<string, {s: number, words: string}>} */
export const RANGES = {
  "15m": { s: 900, words: "15 min" },
  "1h": { s: 3600, words: "1 hour" },
  "24h": { s: 86_400, words: "24 hours" },
  "7d": { s: 604_800, words: "7 days" },
};
export const DEFAULT_RANGE = "1h";
export const FIELDS = ["q", "tool", "server", "caller"];
export const BAD_OUTCOMES = "failed,timed_out,lost,uncertain";

/** What a chip shows: the query of the gateway. @type {Record<string, Query>} */
export const CHIPS = {
  failed: { outcome: BAD_OUTCOMES },
  asked: { asked: "true" },
  slower: { slower: "true" },
};
export const SORTS = ["tool", "caller", "opened", "duration"];
const DEFAULT_SORT = "-opened";

/**
 * The time that an address asks for: a range that ends now, or from `since` to `until`.
 * @param {Query} query
 * @param {number} now
 * @returns {TimeRange}
 */
export function historyTime({ range = DEFAULT_RANGE, since, until }, now) {
  const [first, last] = [Number(since), Number(until)];
  if (since && until && first < last) return { since: first, until: last, name: "" };
  const name = Object.hasOwn(RANGES, range) ? range : DEFAULT_RANGE;
  return { since: now - RANGES[name].s, until: now, name };
}

/**
 * The part of the time that was chosen in the drawing, or null.
 * @param {Query} query
 * @param {TimeRange} time
 * @returns {{since: number, until: number} | null}
 */
export function selectedTime({ from, to }, { since, until }) {
  if (!from || !to) return null;
  const [first, last] = [Math.max(since, Number(from)), Math.min(until, Number(to))];
  return first < last ? { since: first, until: last } : null;
}

/** Whether more than the time narrows the list: its trees then have only calls that match, and those above them. @param {Query} query */
export const isFiltered = (query) => [...FIELDS, "show", "outcome"].some((name) => query[name]);

/** Whether the list has fewer calls than the summary counts. @param {Query} query @param {TimeRange} time */
export const isNarrower = (query, time) =>
  selectedTime(query, time) !== null || Boolean(query.show) || Boolean(query.outcome);

/** The order of the list. @param {Query} query */
export const sortOf = ({ sort = DEFAULT_SORT }) => (SORTS.includes(sort.replace("-", "")) ? sort : DEFAULT_SORT);

/** The order after a click on a column: the other way round, or for a new column the usual way. @param {string} column @param {string} sort */
export function nextSort(column, sort) {
  const usual = column === "opened" || column === "duration" ? `-${column}` : column;
  const next = sort === usual ? (usual.startsWith("-") ? column : `-${column}`) : usual;
  return next === DEFAULT_SORT ? null : next;
}

/** @param {Query} query the filters, with those of a chip */
function filters(query) {
  const fields = FIELDS.filter((name) => query[name]).map((name) => [name, query[name]]);
  const outcome = query.outcome ? [["outcome", query.outcome]] : [];
  return Object.fromEntries([...fields, ...outcome, ...Object.entries(CHIPS[query.show] ?? {})]);
}

/** The path of the summary of a time. @param {Query} query @param {TimeRange} time @param {number} parts */
export const summaryPath = (query, { since, until }, parts) =>
  `/api/history?${new URLSearchParams({ since: String(since), until: String(until), parts: String(parts), ...filters(query) })}`;

/**
 * The query of the calls in the list, which the export has, too.
 * @param {Query} query
 * @param {TimeRange} time
 * @returns {Query}
 */
export function listQuery(query, time) {
  const { since, until } = selectedTime(query, time) ?? time;
  return { since: String(since), until: String(until), ...filters(query) };
}

/** The path of a page of the list. @param {Query} query @param {TimeRange} time @param {number} skip @param {number} limit */
export function pagePath(query, time, skip, limit) {
  /** @type {Query} */ const page = {
    ...listQuery(query, time),
    state: "finished",
    sort: sortOf(query),
    below: "true",
  };
  if (skip) page.skip = String(skip);
  else if (isNarrower(query, time)) page.count = "true";
  page[isFiltered(query) ? "above" : "roots"] = "true";
  return `/api/calls?${new URLSearchParams({ ...page, limit: String(limit) })}`;
}

/** The path of the calls that a call made, in order of their start. @param {string} parent */
export const childrenPath = (parent) =>
  `/api/calls?${new URLSearchParams({ parent, state: "finished", sort: "opened", below: "true", limit: "500" })}`;

/** The path of the export of the list. @param {Query} query @param {TimeRange} time */
export const exportPath = (query, time) => `/api/export?${new URLSearchParams(listQuery(query, time))}`;
