// Calls that were, and are: a page of them at a time, searched by the gateway.

import { each, h } from "../dom.js";
import { loaded } from "../load.js";
import { visible, wordOf } from "../parts.js";
import { go, having, route } from "../router.js";
import { callRows } from "../rows.js";
import { computed, effect, ending } from "../signal.js";
import { store } from "../store.js";
import { after } from "../time.js";

export const title = "History";

const PAGE = "100";
const PAUSE_MS = 250; // in typing, before it is searched for
const FILTERS = ["q", "tool", "server", "state", "outcome"];
const NOW = ["live", "waiting", "running", "queued", "cancelling"];
const ENDED = ["ok", "failed", "timed_out", "cancelled", "refused", "lost", "uncertain"];

/** @returns {HTMLElement} */
export function view() {
  const query = () => route().query;
  const asked = () => Object.entries(query()).filter(([name]) => [...FILTERS, "before"].includes(name));
  const path = () => `/api/calls?${new URLSearchParams([["limit", PAGE], ...asked()])}`;
  const { value, problem, again } = loaded(path);
  const calls = () => value()?.calls ?? [];
  const isFiltered = () => FILTERS.some((name) => query()[name]);
  const rows = callRows(calls, "Calls, the newest first");
  turnPages(rows, value);
  return h(
    "section",
    null,
    filters(value, isFiltered, again),
    h("p", { class: "problem", hidden: () => !problem() }, () => visible(problem())),
    newer(calls, again),
    h("p", { class: "empty", hidden: () => calls().length > 0 }, () => nothing(value(), isFiltered())),
    rows,
    pages(value),
  );
}

/** @param {() => any} page @param {() => boolean} isFiltered @param {() => void} again */
function filters(page, isFiltered, again) {
  const tools = loaded(() => (page() ? "/api/tools" : "")).value; // what is shown first is asked for first
  const named = (/** @type {"tool" | "server"} */ key) => {
    const of = key === "tool" ? "name" : "server";
    const found = [
      ...(tools()?.tools ?? []).map((/** @type {any} */ one) => one[of]),
      ...(page()?.calls ?? []).map((/** @type {any} */ one) => one[key]),
      route().query[key],
    ];
    return [...new Set(found.filter(Boolean))].sort().map((name) => [name, visible(name, 80)]);
  };
  const submit = (/** @type {Event} */ event) => (event.preventDefault(), again());
  return h(
    "form",
    { class: "row filters", role: "search", onsubmit: submit },
    search(),
    choice("Tool", "every tool", () => named("tool"), "tool"),
    choice("Server", "every server", () => named("server"), "server"),
    choice("State now", "every state", () => NOW.map(worded), "state"),
    choice("How it ended", "every outcome", () => ENDED.map(worded), "outcome"),
    h("a", { href: "/history", hidden: () => !isFiltered() }, "Clear"),
  );
}

/** @param {string} kind */
const worded = (kind) => [kind, kind === "live" ? "all that live" : wordOf(kind)];

function search() {
  let stop = () => {};
  ending(() => stop());
  const oninput = (/** @type {any} */ { target }) => {
    stop();
    stop = after(PAUSE_MS, () => go(having({ q: target.value, before: null }), { replace: true }));
  };
  const hint = "Search ids, tools, messages, arguments";
  const about = { type: "search", "aria-label": hint, placeholder: hint, "aria-keyshortcuts": "/" };
  return h("input", { ...about, ".value": () => route().query.q ?? "", oninput });
}

/** @param {string} label @param {string} all @param {() => string[][]} options value and words @param {string} key */
function choice(label, all, options, key) {
  const chosen = () => route().query[key] ?? "";
  const onchange = (/** @type {any} */ { target }) => {
    const other = key === "state" ? "outcome" : key === "outcome" ? "state" : null; // nothing has both
    go(having({ before: null, ...(other && { [other]: null }), [key]: target.value }));
  };
  const option = (/** @type {string[]} */ [value, words]) =>
    h("option", { value, ".selected": () => chosen() === value }, words);
  return h("select", { "aria-label": label, onchange }, each(() => [["", all], ...options()], String, option)); // prettier-ignore
}

/** Calls that came since: a button, as nothing may move by itself. @param {() => any[]} calls @param {() => void} again */
function newer(calls, again) {
  const count = computed(() => {
    const { q, tool, server, state, outcome, before } = route().query;
    if (q || outcome || before || (state && state !== "live")) return 0;
    const [newest, shown] = [calls()[0]?.opened ?? 0, new Set(calls().map((one) => one.id))];
    const isNew = (/** @type {import("../fold.js").Call} */ call) =>
      call.opened >= newest && !shown.has(call.id) && [call.tool, undefined, ""].includes(tool) && [call.server, undefined, ""].includes(server); // prettier-ignore
    return store.roots().filter((entry) => isNew(entry.call.peek())).length;
  });
  const words = () => `${count()} newer ${count() === 1 ? "call" : "calls"}: show`;
  return h("button", { class: "newer", hidden: () => !count(), onclick: again }, words);
}

/** @param {any} page @param {boolean} isFiltered */
function nothing(page, isFiltered) {
  if (!page) return "Looking …";
  if (isFiltered) return h("span", null, "No call fits. ", h("a", { href: "/history" }, "See all calls"));
  const hint = h("a", { href: "/tools" }, "run a tool yourself");
  return h("span", null, "No call was made yet. What agents call stays here; or ", hint, ".");
}

/** @param {() => any} page */
function pages(page) {
  const isLater = () => Boolean(route().query.before);
  return h(
    "nav",
    { class: "row", "aria-label": "Pages", hidden: () => !isLater() && !page()?.next },
    h("a", { class: "button", href: () => having({ before: null }), hidden: () => !isLater() }, "Newest"),
    h("a", { class: "button", href: () => having({ before: page()?.next }), hidden: () => !page()?.next }, "Older"), // prettier-ignore
  );
}

/** A page that was turned is read from its top. @param {HTMLElement} rows @param {() => any} page */
function turnPages(rows, page) {
  let last = route.peek().query.before;
  effect(() => {
    page();
    const { before } = route.peek().query;
    if (before === last) return;
    last = before;
    rows.focus({ preventScroll: true });
    rows.scrollIntoView();
  });
}
