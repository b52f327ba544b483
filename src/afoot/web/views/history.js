// The view of all calls that have ended: a time as lanes, and its calls as rows, which the gateway filters and sorts.

import { emptyMessage, loadingRows } from "../components/empty.js";
import { callRows } from "../components/history/call_rows.js";
import { exportButton } from "../components/history/export_button.js";
import { laneChart, selectionWords } from "../components/history/lane_chart.js";
import { timeRange } from "../components/history/time_range.js";
import { icon } from "../components/marks/icon.js";
import { searchField } from "../components/lists/search_field.js";
import { each, h } from "../lib/dom.js";
import { formatCount, plural, safeText } from "../lib/format.js";
import { callPages } from "../lib/history/call_pages.js";
import { spanOf } from "../lib/history/lanes.js";
import * as range from "../lib/history/range.js";
import { keepVisit, keptVisit, restoreScroll } from "../lib/history/visit.js";
import { errorMessage, resource } from "../lib/resource.js";
import { navigate, route, withQuery } from "../lib/router.js";
import { computed, effect, onCleanup, signal } from "../lib/signal.js";
import { store } from "../lib/store.js";
import { preciseNow } from "../lib/time.js";

/** @typedef {import("../lib/history/lanes.js").HistorySummary} HistorySummary */
/** @typedef {import("../lib/history/lanes.js").Span} Span */
/** @typedef {import("../lib/history/range.js").TimeRange} TimeRange */
/** @typedef {Record<string, string>} Query */
/** @typedef {ReturnType<typeof historyState>} HistoryState */

export const title = "History";
export const isWide = true;

const PARTS = 120; // of the time, whose number of calls at once is drawn
const CHIP_WORDS = { failed: "Failed", asked: "Asked", slower: "Slower than usual" };
const COLUMNS = [
  ["", ""],
  ["tool", "Tool"],
  ["", "Result"],
  ["", "Sub-calls"],
  ["caller", "Caller"],
  ["opened", "Started"],
  ["duration", "Duration"],
  ["", ""],
];

/** @returns {HTMLElement} */
export function view() {
  const state = historyState();
  const { query, time, summary, list } = state;
  const hasLanes = computed(() => summary.value() && told(summary.value()).length + state.live().length > 0);
  const isKnown = () => list.isLoaded() || list.problem();
  const more = h("div.load-more", { "aria-hidden": "true" });
  watchEnd(more, list);
  return h(
    "section.history",
    toolbar(state),
    errorMessage(summary.problem),
    () => (hasLanes() ? laneSection(state) : null),
    countBar(state),
    errorMessage(list.problem),
    callRows(list.rows, {
      label: "Calls",
      fold: list.fold,
      isUnfolded: list.isUnfolded,
      spanOf: (id) => state.spans().get(id),
      head: tableHead(query),
    }),
    loadingRows(isKnown, 12),
    emptyMessage(list.isLoaded, list.calls, () => nothingFound(query(), time())),
    more,
  );
}

/** The time, the summary and the list of the view; kept for when the person comes back. */
function historyState() {
  const kept = keptVisit();
  const query = signal(route.peek().query);
  const end = signal(/** @type {number} */ (kept?.state.end ?? preciseNow()));
  const newer = signal(0);
  const time = computed(() => range.historyTime(query(), end()));
  const refresh = () => {
    end.set(preciseNow());
    newer.set(0);
  };
  effect(() => {
    const { view, query: asked } = route();
    if (view !== "history") return; // another view is being loaded
    if (timeAndFilters(asked) !== timeAndFilters(query.peek())) refresh();
    query.set(asked);
  });
  const summary = resource(() => range.summaryPath(query(), time(), PARTS), { first: kept?.state.summary });
  const list = callPages((skip, limit) => range.pagePath(query(), time(), skip, limit), kept?.state.list);
  // The summary counts the same calls, unless the list has fewer.
  const counts = computed(() => {
    const found = /** @type {HistorySummary | null} */ (summary.value());
    if (range.isNarrower(query(), time())) return list.counts();
    return found && { total: found.calls, roots: found.roots };
  });
  const spans = computed(() => new Map(told(summary.value()).map((one) => [one[0], spanOf(one)])));
  const live = signal(/** @type {Call[]} */ ([]));
  effect(() => {
    summary.value();
    live.set(time().name && !query().q && !query().show ? liveCalls(query()) : []);
  });
  onCleanup(store.listen((kind, { call }) => kind === "finished" && fits(call.peek(), query.peek()) && newer.set(newer.peek() + 1))); // prettier-ignore
  keepVisit("history", () => ({ end: end.peek(), summary: summary.value.peek(), list: list.keep() }));
  if (kept) restoreScroll(kept.scroll);
  return { query, time, end, newer, refresh, summary, list, counts, spans, live };
}

/** @param {HistorySummary | null} summary */
const told = (summary) => summary?.spans ?? [];

/** What an address asks for, without the selection and the order. @param {Query} query */
const timeAndFilters = (query) => JSON.stringify({ ...query, from: null, to: null, sort: null });

/** The calls that live and that the filters allow. @param {Query} query */
const liveCalls = (query) =>
  store.roots.peek().flatMap(withChildren).filter((call) => call.state !== "finished" && fits(call, query)); // prettier-ignore

/** @param {Entry} entry @returns {Call[]} */
const withChildren = ({ call, below }) => [call.peek(), ...below.peek().flatMap(withChildren)];

/** @param {Call} call @param {Query} query */
const fits = (call, { tool = call.tool, server = call.server, caller = call.caller }) =>
  call.tool === tool && call.server === server && call.caller === caller;

/** The search, the time, the chips with their counts, the menus and the export. @param {HistoryState} state */
function toolbar({ query, time, summary, counts }) {
  const known = () => /** @type {HistorySummary | null} */ (summary.value());
  const chip = (/** @type {keyof typeof CHIP_WORDS} */ name) => {
    const isOn = () => query().show === name;
    const href = () => withQuery({ show: isOn() ? null : name });
    const count = () => formatCount(known()?.[name] ?? 0);
    return h(
      "a.chip",
      { href, "aria-current": () => isOn() && "true" },
      CHIP_WORDS[name],
      h("b", { shown: known }, count),
    );
  };
  const tools = () =>
    distinct(
      (known()?.tools ?? []).map(({ tool }) => tool),
      query().tool,
    );
  const servers = () =>
    distinct(
      (known()?.tools ?? []).map(({ server }) => server),
      query().server,
    );
  const callers = () =>
    distinct(
      (known()?.callers ?? []).map(({ caller }) => caller),
      query().caller,
    );
  const count = () => counts()?.total ?? 0;
  const label = () => `Export ${plural(count(), "call")}`;
  return h(
    "div.toolbar",
    { role: "search" },
    searchField("Search history"),
    timeRange(time),
    h("span.chips", chip("failed"), chip("asked"), chip("slower")),
    filterMenu("tool", "Tool", tools, query),
    filterMenu("server", "Server", servers, query),
    filterMenu("caller", "Caller", callers, query),
    h(
      "span.push",
      { shown: count },
      exportButton(label, () => range.exportPath(query.peek(), time())),
    ),
  );
}

/** @param {string[]} values @param {string | undefined} chosen */
const distinct = (values, chosen) => [...new Set(chosen ? [...values, chosen] : values)].sort();

/** @param {string} key @param {string} label @param {() => string[]} values @param {() => Query} query */
function filterMenu(key, label, values, query) {
  const onchange = (/** @type {any} */ { target }) => navigate(withQuery({ [key]: target.value }));
  const option = (/** @type {string} */ value) =>
    h("option", { value, ".selected": () => (query()[key] ?? "") === value }, value ? safeText(value, 80) : label);
  const select = h(
    "select",
    { "aria-label": label, onchange },
    each(() => ["", ...values()], String, option),
  );
  return h("span.menu", { "data-chosen": () => Boolean(query()[key]) }, select, icon("down", "s"));
}

/** @param {HistoryState} state */
function laneSection({ query, time, end, summary, live }) {
  const known = () => /** @type {HistorySummary} */ (summary.value());
  return laneChart(known, {
    selected: () => range.selectedTime(query(), time()),
    select: (chosen) =>
      navigate(withQuery({ from: chosen && chosen.since.toFixed(0), to: chosen && chosen.until.toFixed(0) })),
    live,
    now: end,
  });
}

/** How many calls the list has, the selected time, and what came since. @param {HistoryState} state */
function countBar({ query, time, counts, newer, refresh }) {
  const selected = () => range.selectedTime(query(), time());
  const roots = () => counts()?.roots ?? 0;
  const total = () => counts()?.total ?? 0;
  const chosen = h(
    "a.chip",
    { href: () => withQuery({ from: null, to: null }), shown: selected },
    () => {
      const found = selected();
      return found ? selectionWords(found) : "";
    },
    icon("close", "s"),
    h("span.sr", "show the whole time"),
  );
  const isTree = () => !range.isFiltered(query()) && roots() !== total();
  return h(
    "div.count-bar",
    { shown: counts },
    h("b", () => `${formatCount(total())} ${total() === 1 ? "call" : "calls"}`),
    h("span.dim", { shown: isTree }, () => `in ${formatCount(roots())} ${roots() === 1 ? "tree" : "trees"}`),
    chosen,
    h(
      "button.small.newer",
      { shown: () => time().name && newer(), onclick: refresh },
      () => `${plural(newer(), "newer call")}: show`,
    ),
    h("a.push.faint", { href: "/live" }, "Running calls are in Live"),
  );
}

/** The names of the columns; those that the list can be sorted by are links. @param {() => Query} query */
function tableHead(query) {
  const column = (/** @type {string[]} */ [name, words]) => {
    if (!name) return h("span", { role: "columnheader" }, words);
    const sort = () => range.sortOf(query());
    const isHere = () => sort().replace("-", "") === name;
    const way = () => (isHere() ? (sort().startsWith("-") ? "descending" : "ascending") : null);
    const link = h("a", { href: () => withQuery({ sort: range.nextSort(name, sort()) }) }, words, () =>
      isHere() ? icon(sort().startsWith("-") ? "down" : "up", "s") : null,
    );
    return h("span", { role: "columnheader", "aria-sort": way }, link);
  };
  return h("div.call-rows-head", { role: "row" }, ...COLUMNS.map(column));
}

/** Why the list is empty, and the way out. @param {Query} query @param {TimeRange} time @returns {Child[]} */
function nothingFound(query, time) {
  const words = time.name ? `in the last ${range.RANGES[time.name].words.replace(/^1 /, "")}` : "in this time";
  const names = [...range.FIELDS, "show", "outcome", "from", "to"];
  const clear = Object.fromEntries(names.map((name) => [name, null]));
  if (range.isFiltered(query))
    return [`No call ${words} fits ${filterWords(query)}. `, h("a", { href: withQuery(clear) }, "Clear the filters")];
  if (range.selectedTime(query, time))
    return ["No call was made in the selected time. ", h("a", { href: withQuery(clear) }, "Show the whole time")];
  const wider = Object.keys(range.RANGES).find((name) => range.RANGES[name].s > time.until - time.since);
  const link = wider
    ? h("a", { href: withQuery({ ...clear, range: wider }) }, `Show ${range.RANGES[wider].words}`)
    : h("a", { href: "/tools" }, "Run a tool yourself");
  return [`No call ended ${words}. `, link];
}

/** The filters in words. @param {Query} query */
function filterWords({ q, tool, server, caller, show, outcome }) {
  const words = {
    Text: q && `“${q}”`,
    tool,
    server,
    caller,
    outcome: outcome?.replaceAll("_", " "),
    only: CHIP_WORDS[/** @type {keyof typeof CHIP_WORDS} */ (show)]?.toLowerCase(),
  };
  const found = Object.entries(words).filter(([, value]) => value);
  return safeText(found.map(([name, value]) => `${name} ${value}`).join(", "), 300);
}

/** Fetch the next page when the end of the list comes near. @param {Element} end @param {HistoryState["list"]} list */
function watchEnd(end, { calls, loadMore }) {
  const observer = new IntersectionObserver((found) => found.some((one) => one.isIntersecting) && void loadMore(), {
    rootMargin: "600px",
  });
  effect(() => {
    calls();
    observer.unobserve(end); // observed anew, it tells whether the end is still near
    observer.observe(end);
  });
  onCleanup(() => observer.disconnect());
}
