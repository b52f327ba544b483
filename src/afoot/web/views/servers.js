// The view of the servers behind the gateway: state, logs, reload, login; and of the callers.

import { post } from "../lib/api.js";
import { actionButton } from "../components/controls.js";
import { each, h } from "../lib/dom.js";
import { resource, errorMessage } from "../lib/resource.js";
import { emptyMessage } from "../components/status.js";
import { formatDuration, formatTime, joinNonEmpty, plural, safeText } from "../lib/format.js";
import { statusList } from "../components/status_list.js";
import { navigate, withQuery, route } from "../lib/router.js";
import { computed, signal } from "../lib/signal.js";
import { externalLink } from "../components/content.js";

export const title = "Servers";

const REFRESH_S = 3;
const HINT = "No server is behind this gateway. Name one in afoot.toml, or serve it: ";

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, refetch } = resource(() => "/api/servers", { everyS: REFRESH_S });
  const { value: callers } = resource(() => "/api/callers", { everyS: REFRESH_S });
  const servers = () => /** @type {ServerView[]} */ (value()?.servers ?? []);
  const problems = () => /** @type {string[]} */ (value()?.problems ?? []);
  const wrong = (/** @type {string} */ text) => h("li", safeText(text));
  const more = (/** @type {ServerView} */ { name }, /** @type {() => ServerView} */ now) => {
    const path = `/api/servers/${encodeURIComponent(name)}`;
    return [serverButtons(name, path, refetch), nameNotes(now), loginRow(path, now), logPanel(name, path)];
  };
  return h(
    "section",
    errorMessage(problem),
    h("ul.problem", each(problems, String, wrong)),
    emptyMessage(value, servers, () => [HINT, h("code", "afoot serve mcp.json")]),
    statusList("", servers, serverItem, more),
    statusList("Callers", () => /** @type {CallerView[]} */ (callers()?.callers ?? []), callerItem),
  );
}

/** A caller, and the used part of its quota. @param {CallerView} one */
function callerItem({
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
  const about = joinNonEmpty(
    most?.calls && `${calls} of ${plural(most.calls, "call")} in ${formatDuration(most.per_s)}`,
    most?.cpu_s &&
      `${formatDuration(cpu)} of ${formatDuration(most.cpu_s)} of processor time in ${formatDuration(most.per_s)}`,
    most?.concurrent && `${live} of ${most.concurrent} at once`,
  );
  const isFull = free_at || (most?.concurrent && live >= most.concurrent);
  const told = last && `${plural(refused, "call")} refused, the last ${formatTime(last.at)}: over ${last.limit}`;
  const why = joinNonEmpty(free_at && `free again ${formatTime(free_at)}`, told);
  const count = joinNonEmpty(plural(live, "call"), queued && `${queued} queued`);
  return { key: name, name, about, state: isFull ? "at its quota" : "ready", why, count };
}

/** @param {ServerView} server */
function serverItem({
  name,
  state,
  error: why,
  transport,
  target,
  era,
  version,
  pid,
  origin,
  lasting,
  counted,
  ...has
}) {
  const from = lasting ? `from ${origin}` : origin;
  const says = version && `says it is ${version}`;
  const odd = Object.entries(counted ?? {}).map(([what, times]) => `${what}: ${times}`);
  const about = joinNonEmpty(`${transport} ${target}`, era && `speaks ${era}`, says, pid && `pid ${pid}`, from, ...odd);
  const some = ["resource", "prompt"].map((what) => has[`${what}s`] > 0 && plural(has[`${what}s`], what));
  const count = joinNonEmpty(plural(has.tools, "tool"), ...some, has.in_use && `${has.in_use} in use`);
  return { key: name, name, about, state, why, count };
}

/** @param {string} name @param {string} path @param {() => unknown} refetch */
function serverButtons(name, path, refetch) {
  const isOpen = () => route().query.logs === name;
  const of = ` ${safeText(name, 100)}`;
  const onclick = () => navigate(withQuery({ logs: isOpen() ? null : name }), { replace: true });
  const reload = () => post(`${path}/reload`).finally(refetch);
  const about = { onclick, "aria-expanded": () => String(isOpen()), "aria-label": `Logs${of}` };
  return h("div.push", h("button", about, "Logs"), actionButton("Reload", reload, { "aria-label": `Reload${of}` }));
}

/** The tools of a server that have another name here, or are not offered. @param {() => ServerView} now */
function nameNotes(now) {
  const refused = () => (now().refused ?? []).map((/** @type {string} */ why) => `not offered: ${why}`);
  const lines = () => /** @type {string[]} */ ([...refused(), ...(now().renamed ?? [])]);
  const note = (/** @type {string} */ text) => h("li", safeText(text, 400));
  return h("ul.wide.aside", { shown: () => lines().length }, each(lines, String, note));
}

/**
 * Whether a server needs a login, and the link to it.
 * @param {string} path
 * @param {() => ServerView} now
 */
function loginRow(path, now) {
  const url = signal("");
  const begin = async () => {
    const begun = await post(`${path}/login`);
    url.set(begun.url ?? "");
    if (begun.error) throw new Error(begun.error);
  };
  const isNeeded = () => now().login === "needed";
  const loginLink = () => (url() ? h("span", "Open on the gateway's machine: ", externalLink(url(), "log in")) : null);
  const state = h("span", () => (isNeeded() ? "It wants a login." : "Logged in."));
  const more = h("span.row", { shown: isNeeded }, actionButton("Log in", begin), loginLink);
  return h("div.wide.row", { shown: () => now().login }, state, more);
}

/** @param {string} name @param {string} path */
function logPanel(name, path) {
  const open = computed(() => (route().query.logs === name ? [path] : []));
  return h("div.wide", each(open, String, logLines));
}

/** @param {string} path */
function logLines(path) {
  const { value, problem } = resource(() => `${path}/logs?limit=200`, { everyS: REFRESH_S });
  const line = (/** @type {{at: number, text: string}} */ { at, text }) => `${formatTime(at)}  ${safeText(text)}`;
  const text = () => problem() || (value()?.lines ?? []).map(line).join("\n") || "It has said nothing.";
  return h("pre", { tabindex: "0", role: "region", "aria-label": "Logs" }, () => (value() ? text() : "Looking …"));
}
