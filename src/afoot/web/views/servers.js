// The servers behind the gateway: how they are, what they said, connected anew, logged in.

import { post } from "../api.js";
import { action } from "../control.js";
import { each, h } from "../dom.js";
import { loaded, trouble } from "../load.js";
import { empty, lasted, listed, many, visible, when } from "../parts.js";
import { places } from "../places.js";
import { go, having, route } from "../router.js";
import { computed, signal } from "../signal.js";
import { link } from "../value.js";

export const title = "Servers";

const EVERY_S = 3;
const HINT = "No server is behind this gateway. Name one in afoot.toml, or serve it: ";

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, again } = loaded(() => "/api/servers", { everyS: EVERY_S });
  const { value: callers } = loaded(() => "/api/callers", { everyS: EVERY_S });
  const servers = () => /** @type {ServerView[]} */ (value()?.servers ?? []);
  const problems = () => /** @type {string[]} */ (value()?.problems ?? []);
  const wrong = (/** @type {string} */ text) => h("li", visible(text));
  const more = (/** @type {ServerView} */ { name }, /** @type {() => ServerView} */ now) => {
    const path = `/api/servers/${encodeURIComponent(name)}`;
    return [buttons(name, path, again), login(path, now), logs(name, path)];
  };
  return h(
    "section",
    trouble(problem),
    h("ul.problem", each(problems, String, wrong)),
    empty(value, servers, () => [HINT, h("code", "afoot serve mcp.json")]),
    places("", servers, describe, more),
    places("Callers", () => /** @type {CallerView[]} */ (callers()?.callers ?? []), caller),
  );
}

/** Who calls, and what it has used of its quota. @param {CallerView} one */
function caller({ caller: name, live, queued, refused, last_refused: last, calls, cpu_s: cpu, quota: most, free_at }) {
  const about = listed(
    most?.calls && `${calls} of ${many(most.calls, "call")} in ${lasted(most.per_s)}`,
    most?.cpu_s && `${lasted(cpu)} of ${lasted(most.cpu_s)} of processor time in ${lasted(most.per_s)}`,
    most?.concurrent && `${live} of ${most.concurrent} at once`,
  );
  const isFull = free_at || (most?.concurrent && live >= most.concurrent);
  const told = last && `${many(refused, "call")} refused, the last ${when(last.at)}: over ${last.limit}`;
  const why = listed(free_at && `free again ${when(free_at)}`, told);
  const count = listed(many(live, "call"), queued && `${queued} queued`);
  return { key: name, name, about, state: isFull ? "at its quota" : "ready", why, count };
}

/** @param {ServerView} server */
function describe({ name, state, error: why, transport, target, era, version, pid, origin, lasting, counted, ...has }) {
  const [from, says] = [lasting ? `from ${origin}` : origin, version && `says it is ${version}`];
  const odd = Object.entries(counted ?? {}).map(([what, times]) => `${what}: ${times}`);
  const about = listed(`${transport} ${target}`, era && `speaks ${era}`, says, pid && `pid ${pid}`, from, ...odd);
  const some = ["resource", "prompt"].map((what) => has[`${what}s`] > 0 && many(has[`${what}s`], what));
  const count = listed(many(has.tools, "tool"), ...some, has.in_use && `${has.in_use} in use`);
  return { key: name, name, about, state, why, count };
}

/** @param {string} name @param {string} path @param {() => unknown} again */
function buttons(name, path, again) {
  const [isOpen, of] = [() => route().query.logs === name, ` ${visible(name, 100)}`];
  const onclick = () => go(having({ logs: isOpen() ? null : name }), { replace: true });
  const reload = () => post(`${path}/reload`).finally(again);
  const about = { onclick, "aria-expanded": () => String(isOpen()), "aria-label": `Logs${of}` };
  return h("div.push", h("button", about, "Logs"), action("Reload", reload, { "aria-label": `Reload${of}` }));
}

/** Whether it wants a login, and the way to one. @param {string} path @param {() => ServerView} now */
function login(path, now) {
  const url = signal("");
  const begin = async () => {
    const begun = await post(`${path}/login`);
    url.set(begun.url ?? "");
    if (begun.error) throw new Error(begun.error);
  };
  const isNeeded = () => now().login === "needed";
  const way = () => (url() ? h("span", "Open on the gateway's machine: ", link(url(), "log in")) : null);
  const state = h("span", () => (isNeeded() ? "It wants a login." : "Logged in."));
  const more = h("span.row", { shown: isNeeded }, action("Log in", begin), way);
  return h("div.wide.row", { shown: () => now().login }, state, more);
}

/** @param {string} name @param {string} path */
function logs(name, path) {
  const open = computed(() => (route().query.logs === name ? [path] : []));
  return h("div.wide", each(open, String, lines));
}

/** @param {string} path */
function lines(path) {
  const { value, problem } = loaded(() => `${path}/logs?limit=200`, { everyS: EVERY_S });
  const line = (/** @type {{at: number, text: string}} */ { at, text }) => `${when(at)}  ${visible(text)}`;
  const text = () => problem() || (value()?.lines ?? []).map(line).join("\n") || "It has said nothing.";
  return h("pre", { tabindex: "0", role: "region", "aria-label": "Logs" }, () => (value() ? text() : "Looking …"));
}
