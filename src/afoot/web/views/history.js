// Calls that were, and are: a page of them at a time, searched by the gateway.

import { each, h } from "../dom.js";
import { loaded, trouble } from "../load.js";
import { empty, many, search, visible, wordOf } from "../parts.js";
import { go, having, route } from "../router.js";
import { callRows } from "../rows.js";
import { computed } from "../signal.js";
import { store } from "../store.js";

export const title = "History";

const PAGE = "100";
const FILTERS = ["q", "tool", "server", "state", "outcome"];
const NOW = ["live", "waiting", "running", "queued", "cancelling"];
const ENDED = ["ok", "failed", "timed_out", "cancelled", "refused", "lost", "uncertain"];

/** @returns {HTMLElement} */
export function view() {
  const asked = () => Object.entries(route().query).filter(([name]) => [...FILTERS, "before"].includes(name));
  const { value, problem, again } = loaded(() => `/api/calls?${new URLSearchParams([["limit", PAGE], ...asked()])}`);
  const calls = () => /** @type {CallView[]} */ (value()?.calls ?? []);
  const isFiltered = () => FILTERS.some((name) => route().query[name]);
  return h(
    "section",
    filters(value, isFiltered, again),
    trouble(problem),
    newer(calls, again),
    empty(value, calls, () => (isFiltered() ? unfit() : unused())),
    callRows(calls, "Calls, the newest first"),
    pages(() => value()?.next),
  );
}

/** @param {() => any} page @param {() => boolean} isFiltered @param {() => void} again */
function filters(page, isFiltered, again) {
  const tools = loaded(() => (page() ? "/api/tools" : "")).value; // what is shown first is asked for first
  const known = (/** @type {"tool" | "server"} */ key, /** @type {"name" | "server"} */ offered) => () => {
    const names = (tools()?.tools ?? []).map((/** @type {ToolView} */ one) => one[offered]);
    const called = (page()?.calls ?? []).map((/** @type {CallView} */ one) => one[key]);
    return [...new Set([...names, ...called, route().query[key]])].filter(Boolean).sort();
  };
  const onsubmit = (/** @type {Event} */ event) => (event.preventDefault(), again());
  return h(
    "form.row.filters",
    { role: "search", onsubmit },
    search("Search ids, tools, messages, arguments"),
    choice("tool", "Tool", "every tool", known("tool", "name")),
    choice("server", "Server", "every server", known("server", "server")),
    choice("state", "State now", "every state", () => NOW),
    choice("outcome", "How it ended", "every outcome", () => ENDED),
    h("a", { href: "/history", shown: isFiltered }, "Clear"),
  );
}

/** @param {string} key @param {string} label @param {string} all @param {() => string[]} values */
function choice(key, label, all, values) {
  const other = { state: "outcome", outcome: "state" }[key]; // nothing has both
  const onchange = (/** @type {any} */ { target }) =>
    go(having({ before: null, ...(other && { [other]: null }), [key]: target.value }));
  const option = (/** @type {string} */ value) => {
    const words = value === "" ? all : value === "live" ? "all that live" : wordOf(value);
    return h("option", { value, ".selected": () => (route().query[key] ?? "") === value }, visible(words, 80));
  };
  const options = () => ["", ...values()];
  return h("select", { "aria-label": label, onchange }, each(options, String, option));
}

/** Calls that came since: a button, as nothing may move by itself. @param {() => CallView[]} calls @param {() => void} again */
function newer(calls, again) {
  const count = computed(() => {
    const { state = "live", q, tool, server, outcome, before } = route().query;
    if (state !== "live" || q || outcome || before) return 0; // who knows whether it fits
    const [newest, shown] = [calls()[0]?.opened ?? 0, new Set(calls().map((one) => one.id))];
    const fits = (/** @type {Call} */ one) =>
      one.opened >= newest &&
      !shown.has(one.id) &&
      one.tool === (tool ?? one.tool) &&
      one.server === (server ?? one.server);
    return store.roots().flatMap(withBelow).filter(fits).length;
  });
  return h("button.newer", { shown: count, onclick: again }, () => `${many(count(), "newer call")}: show`);
}

/** @param {Entry} entry @returns {Call[]} */
const withBelow = ({ call, below }) => [call.peek(), ...below().flatMap(withBelow)];

const unfit = () => ["No call fits. ", h("a", { href: "/history" }, "See all calls")];
const unused = () => ["No call was made yet. Agents make them, or ", h("a", { href: "/tools" }, "run a tool yourself")];

/** @param {() => string | undefined} next */
function pages(next) {
  const isLater = () => route().query.before;
  const newest = h("a.button", { href: () => having({ before: null }), shown: isLater }, "Newest");
  const older = h("a.button", { href: () => having({ before: next() }), shown: next }, "Older");
  return h("nav.row", { "aria-label": "Pages", shown: () => isLater() || next() }, newest, older);
}
