// The servers behind the gateway: how they are, what they said, connected anew, logged in.

import { post } from "../api.js";
import { each, h } from "../dom.js";
import { attempt, loaded, trouble } from "../load.js";
import { mark, visible, when } from "../parts.js";
import { go, having, route } from "../router.js";
import { signal } from "../signal.js";
import { link } from "../value.js";

export const title = "Servers";

const EVERY_S = 3;
const KINDS = /** @type {Record<string, string>} shape and colour of a state */ ({
  ready: "ok",
  idle: "queued",
  starting: "running",
  failed: "failed",
  unusable: "failed",
  stopped: "cancelled",
  disabled: "cancelled",
});

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, again } = loaded(() => "/api/servers", { everyS: EVERY_S });
  const servers = () => value()?.servers ?? [];
  const names = () => servers().map((/** @type {any} */ one) => one.name);
  const problems = () => [problem(), ...(value()?.problems ?? [])].filter(Boolean);
  const card = (/** @type {string} */ name) => {
    /** @type {any} */ let last = {}; // what is gone is drawn once more before it goes
    return server(name, () => (last = servers().find((/** @type {any} */ one) => one.name === name) ?? last), again); // prettier-ignore
  };
  return h(
    "section",
    null,
    h("ul", { class: "problem", hidden: () => !problems().length }, each(problems, String, (text) => h("li", { class: "said" }, visible(text)))), // prettier-ignore
    h("p", { class: "empty", hidden: () => names().length > 0 }, () => nothing(value())),
    each(names, String, card),
  );
}

/** @param {string} name @param {() => any} one @param {() => void} again */
function server(name, one, again) {
  const [problem, path] = [signal(""), `/api/servers/${encodeURIComponent(name)}`];
  const isOpen = () => route().query.logs === name;
  const reload = () => attempt(problem, () => post(`${path}/reload`)).then(again);
  const state = mark(() => KINDS[one().state] ?? "queued", () => one().state); // prettier-ignore
  return h(
    "article",
    { class: "sheet", "aria-label": visible(name, 100) },
    h("div", { class: "row first" }, h("h2", { class: "said" }, visible(name, 100)), state, h("div", { class: "push" }, ...actions(name, isOpen, reload))), // prettier-ignore
    h("p", { class: "problem said", hidden: () => !one().error }, () => visible(one().error)),
    trouble(problem),
    h("p", { class: "facts" }, each(() => facts(one()), String, (text) => h("span", { class: "said" }, text))), // prettier-ignore
    login(path, one),
    each(() => (isOpen() ? [name] : []), String, () => logs(path)), // prettier-ignore
  );
}

/** @param {string} name @param {() => boolean} isOpen @param {() => Promise<any>} reload */
function actions(name, isOpen, reload) {
  const isBusy = signal(false);
  const onclick = async () => {
    isBusy.set(true);
    await reload();
    isBusy.set(false);
  };
  const of = () => h("span", { class: "sr" }, ` ${visible(name, 100)}`);
  const open = () => go(having({ logs: isOpen() ? null : name }), { replace: true });
  return [
    h("button", { onclick: open, "aria-expanded": () => String(isOpen()) }, "Logs", of()),
    h("button", { onclick, disabled: isBusy }, () => (isBusy() ? "Connecting …" : "Reload"), of()),
  ];
}

/** What is known of a server, in words. @param {any} server @returns {string[]} */
function facts({
  transport,
  target,
  era,
  version,
  tools,
  resources,
  prompts,
  pid,
  in_use,
  origin,
  lasting,
  ...more
}) {
  const many = (/** @type {number} */ n, /** @type {string} */ what) =>
    n > 0 && `${n} ${what}${n === 1 ? "" : "s"}`;
  const told = [
    `${tools ?? 0} ${tools === 1 ? "tool" : "tools"}`,
    many(resources, "resource"),
    many(prompts, "prompt"),
    in_use > 0 && `${in_use} in use`,
    [transport, target].filter(Boolean).join(" "),
    era && `speaks ${era}`,
    version && `says it is ${version}`,
    pid && `pid ${pid}`,
    origin && `${lasting ? "from " : ""}${origin}`,
    ...Object.entries(more.counted ?? {}).map(([what, times]) => `${what}: ${times}`),
  ];
  return told.filter(Boolean).map((text) => visible(text, 200));
}

/** Whether it wants a login, and the way to one. @param {string} path @param {() => any} one */
function login(path, one) {
  const [problem, url] = [signal(""), signal("")];
  const begin = async () => {
    const begun = await attempt(problem, () => post(`${path}/login`));
    url.set(begun?.url ?? "");
    if (begun?.error) problem.set(begun.error);
  };
  const isNeeded = () => one().login === "needed";
  const words = () => (isNeeded() ? "It wants a login." : "Logged in.");
  const way = () => url() && h("span", null, "Open on the gateway's machine: ", link(url(), "log in"));
  return h(
    "div",
    { class: "row", hidden: () => !one().login },
    h("span", { class: () => (isNeeded() ? "hint" : "soft") }, words),
    h("button", { onclick: begin, hidden: () => !isNeeded() }, "Log in"),
    h("span", { hidden: () => !isNeeded() }, way),
    trouble(problem),
  );
}

/** @param {string} path */
function logs(path) {
  const { value, problem } = loaded(() => `${path}/logs?limit=200`, { everyS: EVERY_S });
  const line = (/** @type {{at: number, text: string}} */ { at, text }) => `${when(at)}  ${visible(text)}`;
  const text = () => problem() || (value()?.lines ?? []).map(line).join("\n") || "It has said nothing.";
  return h("pre", { class: "said", tabindex: "0", "aria-label": "Logs" }, () =>
    value() ? text() : "Looking …",
  );
}

/** @param {any} known */
function nothing(known) {
  if (!known) return "Looking …";
  return h("span", null, "No server is behind this gateway. Name one in afoot.toml, or serve it: ", h("code", null, "afoot serve mcp.json")); // prettier-ignore
}
