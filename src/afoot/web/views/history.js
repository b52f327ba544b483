// The view of all calls, a page at a time, filtered by the gateway.

import { each, h } from "../lib/dom.js";
import { resource, errorMessage } from "../lib/resource.js";
import { emptyMessage, searchField, statusLabel } from "../components/status.js";
import { plural, safeText } from "../lib/format.js";
import { navigate, withQuery, route } from "../lib/router.js";
import { callTable } from "../components/call_table.js";
import { computed } from "../lib/signal.js";
import { store } from "../lib/store.js";

export const title = "History";

const PAGE = "100";
const FILTERS = ["q", "tool", "server", "state", "outcome"];
const LIVE_STATES = ["live", "waiting", "running", "queued", "cancelling"];
const OUTCOMES = ["ok", "failed", "timed_out", "cancelled", "refused", "lost", "uncertain"];

/** @returns {HTMLElement} */
export function view() {
  const asked = () => Object.entries(route().query).filter(([name]) => [...FILTERS, "before"].includes(name));
  const { value, problem, refetch } = resource(
    () => `/api/calls?${new URLSearchParams([["limit", PAGE], ...asked()])}`,
  );
  const calls = () => /** @type {CallView[]} */ (value()?.calls ?? []);
  const isFiltered = () => FILTERS.some((name) => route().query[name]);
  return h(
    "section",
    filters(value, isFiltered, refetch),
    errorMessage(problem),
    newerButton(calls, refetch),
    emptyMessage(value, calls, () => (isFiltered() ? noMatch() : noCalls())),
    callTable(calls, "Calls, the newest first"),
    pageLinks(() => value()?.next),
  );
}

/** @param {() => any} page @param {() => boolean} isFiltered @param {() => void} refetch */
function filters(page, isFiltered, refetch) {
  const tools = resource(() => (page() ? "/api/tools" : "")).value; // the calls are fetched first
  const known = (/** @type {"tool" | "server"} */ key, /** @type {"name" | "server"} */ offered) => () => {
    const names = (tools()?.tools ?? []).map((/** @type {ToolView} */ one) => one[offered]);
    const called = (page()?.calls ?? []).map((/** @type {CallView} */ one) => one[key]);
    return [...new Set([...names, ...called, route().query[key]])].filter(Boolean).sort();
  };
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void refetch();
  };
  return h(
    "form.row.filters",
    { role: "search", onsubmit },
    searchField("Search ids, tools, messages, arguments"),
    filterSelect("tool", "Tool", "every tool", known("tool", "name")),
    filterSelect("server", "Server", "every server", known("server", "server")),
    filterSelect("state", "State now", "every state", () => LIVE_STATES),
    filterSelect("outcome", "How it ended", "every outcome", () => OUTCOMES),
    h("a", { href: "/history", shown: isFiltered }, "Clear"),
  );
}

/** @param {string} key @param {string} label @param {string} all @param {() => string[]} values */
function filterSelect(key, label, all, values) {
  const other = { state: "outcome", outcome: "state" }[key]; // a call has a live state or an outcome
  const onchange = (/** @type {any} */ { target }) =>
    navigate(withQuery({ before: null, ...(other && { [other]: null }), [key]: target.value }));
  const option = (/** @type {string} */ value) => {
    const words = value === "" ? all : value === "live" ? "all that live" : statusLabel(value);
    return h("option", { value, ".selected": () => (route().query[key] ?? "") === value }, safeText(words, 80));
  };
  const options = () => ["", ...values()];
  return h("select", { "aria-label": label, onchange }, each(options, String, option));
}

/**
 * A button for newer calls, because the list does not move by itself.
 * @param {() => CallView[]} calls
 * @param {() => void} refetch
 */
function newerButton(calls, refetch) {
  const count = computed(() => {
    const { state = "live", q, tool, server, outcome, before } = route().query;
    if (state !== "live" || q || outcome || before) return 0; // unknown whether a new call matches
    const newest = calls()[0]?.opened ?? 0;
    const shown = new Set(calls().map((one) => one.id));
    const fits = (/** @type {Call} */ one) =>
      one.opened >= newest &&
      !shown.has(one.id) &&
      one.tool === (tool ?? one.tool) &&
      one.server === (server ?? one.server);
    return store.roots().flatMap(withChildren).filter(fits).length;
  });
  return h("button.newer", { shown: count, onclick: refetch }, () => `${plural(count(), "newer call")}: show`);
}

/** @param {Entry} entry @returns {Call[]} */
const withChildren = ({ call, below }) => [call.peek(), ...below().flatMap(withChildren)];

const noMatch = () => ["No call fits. ", h("a", { href: "/history" }, "See all calls")];
const noCalls = () => [
  "No call was made yet. Agents make them, or ",
  h("a", { href: "/tools" }, "run a tool yourself"),
];

/** @param {() => string | undefined} next */
function pageLinks(next) {
  const isLater = () => route().query.before;
  const newest = h("a.button", { href: () => withQuery({ before: null }), shown: isLater }, "Newest");
  const older = h("a.button", { href: () => withQuery({ before: next() }), shown: next }, "Older");
  return h("nav.row", { "aria-label": "Pages", shown: () => isLater() || next() }, newest, older);
}
