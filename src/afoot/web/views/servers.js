// The view of the servers behind the gateway: their state, logs, restarts and logins; and of the callers.

import { del, post } from "../lib/api.js";
import { externalLink } from "../components/content.js";
import { actionButton } from "../components/controls.js";
import { emptyMessage, loadingRows, noMatch } from "../components/empty.js";
import { groupedRows } from "../components/lists/groups.js";
import { placeRow } from "../components/lists/place_row.js";
import { addServerForm } from "../components/lists/add_server.js";
import { searchField } from "../components/lists/search_field.js";
import { each, h } from "../lib/dom.js";
import { formatAgo, formatClock, formatSpan, formatTime, joinNonEmpty, plural, safeText } from "../lib/format.js";
import { errorMessage, resource } from "../lib/resource.js";
import { navigate, route, withQuery } from "../lib/router.js";
import { computed, signal } from "../lib/signal.js";
import { now } from "../lib/time.js";

export const title = "Servers";
export const isWide = true;

const REFRESH_S = 3;

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, refetch } = resource(() => "/api/servers", { everyS: REFRESH_S });
  const { value: callers } = resource(() => "/api/callers", { everyS: REFRESH_S });
  const wanted = () => (route().query.q ?? "").toLowerCase();
  const fits = (/** @type {ServerView} */ { name, target }) => `${name} ${target}`.toLowerCase().includes(wanted());
  const all = () => /** @type {ServerView[]} */ (value()?.servers ?? []);
  const problems = () => /** @type {string[]} */ (value()?.problems ?? []);
  const isAdding = () => "add" in route().query;
  const groups = computed(() => {
    const items = all().filter(fits);
    return items.length ? [{ key: "servers", title: "Servers", items }] : [];
  });
  const calling = computed(() => {
    const items = /** @type {CallerView[]} */ (callers()?.callers ?? []);
    return items.length ? [{ key: "callers", title: "Callers", note: "with calls now, or a quota", items }] : [];
  });
  const bar = h(
    "div.toolbar",
    { role: "search" },
    searchField("Search servers"),
    h("a.button.quiet.boxed.push", { href: () => withQuery({ add: isAdding() ? null : "1" }) }, "Add a server…"),
  );
  return h(
    "section",
    bar,
    errorMessage(problem),
    () => (isAdding() ? addServerForm(refetch) : null),
    h(
      "ul.problem",
      each(problems, String, (text) => h("li", safeText(text))),
    ),
    groupedRows(
      groups,
      ({ name }) => name,
      (one, newest) => serverRow(one, newest, refetch),
      { label: "Servers" },
    ),
    loadingRows(() => value() || problem(), 4),
    emptyMessage(value, groups, () => (all().length ? noMatch(wanted(), "/servers") : noServers())),
    groupedRows(
      calling,
      ({ caller }) => caller,
      (_, newest) => placeRow(() => callerPlace(newest())),
      { label: "Callers" },
    ),
  );
}

const noServers = () => [
  "No server is behind this gateway. Name one in afoot.toml, add one here, or serve its file: ",
  h("code", "afoot serve mcp.json"),
];

/** @param {ServerView} server @param {() => ServerView} newest @param {() => unknown} refetch */
function serverRow({ name }, newest, refetch) {
  const path = `/api/servers/${encodeURIComponent(name)}`;
  const url = signal("");
  const isOpen = () => route().query.logs === name;
  const of = ` ${safeText(name, 100)}`;
  const begin = async () => {
    const begun = await post(`${path}/login`);
    url.set(begun.url ?? "");
    if (begun.error) throw new Error(begun.error);
  };
  const again = (/** @type {Promise<unknown>} */ done) => done.finally(refetch);
  const button = (
    /** @type {string} */ label,
    /** @type {() => Promise<unknown>} */ work,
    /** @type {() => unknown} */ shown,
  ) => h("span", { shown }, actionButton(label, work, { class: "small", "aria-label": label + of }));
  const logs = h(
    "button.small",
    {
      type: "button",
      "aria-expanded": () => String(isOpen()),
      "aria-label": `Logs${of}`,
      onclick: () => navigate(withQuery({ logs: isOpen() ? null : name }), { replace: true }),
    },
    "Logs",
  );
  const buttons = [
    button("Log in", begin, () => newest().login === "needed"),
    button(
      "Log out",
      () => again(post(`${path}/logout`)),
      () => newest().login === "logged in",
    ),
    logs,
    button(
      "Reload",
      () => again(post(`${path}/reload`)),
      () => true,
    ),
    button(
      "Remove",
      () => again(del(path)),
      () => !newest().lasting,
    ),
  ];
  const below = () => (url() || isOpen() || notes().length ? serverMore(path, { url, isOpen, notes }) : null);
  const notes = computed(() => {
    const { refused = [], renamed = [] } = newest();
    return [...refused.map((/** @type {string} */ why) => `not offered: ${why}`), ...renamed];
  });
  return placeRow(() => serverPlace(newest()), buttons, below);
}

/** @param {ServerView} server */
function serverPlace({ name, state, error, transport, target, era, version, pid, origin, lasting, login, ...has }) {
  const odd = Object.entries(has.counted ?? {}).map(([what, times]) => `${what}: ${times}`);
  const up = has.up_since && `up ${formatSpan(Math.max(0, now() - has.up_since))}`;
  const restarts = has.restarts && plural(has.restarts, "restart");
  const offers = ["tool", "resource", "prompt"].map((what) => has[`${what}s`] > 0 && plural(has[`${what}s`], what));
  const about = [
    `${transport} ${target}`,
    era && `speaks ${era}`,
    version,
    pid && `pid ${pid}`,
    up,
    restarts,
    lasting ? `from ${origin}` : origin,
    login && (login === "needed" ? "needs a login" : login),
    ...odd,
  ];
  const count = joinNonEmpty(has.in_use ? `${plural(has.in_use, "call")} now` : "");
  return {
    key: name,
    name,
    aside: joinNonEmpty(...offers),
    about: about.filter(Boolean).join(" · "),
    state,
    why: error,
    count,
  };
}

/**
 * What is below the row of a server: the link of a login, notes on the names of its tools, and its logs.
 * @param {string} path @param {{url: () => string, isOpen: () => boolean, notes: () => string[]}} shown
 */
function serverMore(path, { url, isOpen, notes }) {
  const open = computed(() => (isOpen() ? [path] : []));
  return h(
    "div.list-more",
    h("p", { shown: url }, "Open on the gateway's machine: ", () => (url() ? externalLink(url(), "log in") : null)),
    h(
      "ul.faint",
      { shown: () => notes().length },
      each(notes, String, (text) => h("li", safeText(text, 400))),
    ),
    each(open, String, logLines),
  );
}

/** @param {string} path */
function logLines(path) {
  const { value, problem } = resource(() => `${path}/logs?limit=200`, { everyS: REFRESH_S });
  const line = (/** @type {{at: number, text: string}} */ { at, text }) => `${formatClock(at)}  ${safeText(text)}`;
  const text = () => problem() || (value()?.lines ?? []).map(line).join("\n") || "It has said nothing.";
  return h("pre", { tabindex: "0", role: "region", "aria-label": "Logs" }, () => (value() || problem() ? text() : ""));
}

/** A caller, and the used part of its quota. @param {CallerView} one */
function callerPlace({
  caller: name,
  live,
  queued,
  refused,
  last_refused: last,
  calls,
  cpu_s: cpu,
  quota: most,
  free_at,
}) {
  const about = [
    most?.calls && `${calls} of ${plural(most.calls, "call")} in ${formatSpan(most.per_s)}`,
    most?.cpu_s && `${formatSpan(cpu)} of ${formatSpan(most.cpu_s)} of processor time in ${formatSpan(most.per_s)}`,
    most?.concurrent && `${live} of ${most.concurrent} at once`,
  ];
  const isFull = free_at || (most?.concurrent && live >= most.concurrent);
  const told = last && `${plural(refused, "call")} refused, the last ${formatAgo(now() - last.at)}: over ${last.limit}`;
  const why = joinNonEmpty(free_at && `free again ${formatTime(free_at)}`, told);
  const count = joinNonEmpty(plural(live, "call"), queued && `${queued} queued`);
  return {
    key: name,
    name,
    about: about.filter(Boolean).join(" · "),
    state: isFull ? "at its quota" : "ready",
    why,
    count,
  };
}
