// Browsers, their tabs and the plugins: where tools are, and why some cannot run.

import { post } from "../api.js";
import { each, h } from "../dom.js";
import { attempt, loaded, trouble } from "../load.js";
import { mark, visible } from "../parts.js";
import { computed, signal } from "../signal.js";
import { link } from "../value.js";

export const title = "Tabs";

/** @typedef {import("../dom.js").Child} Child */
const EVERY_S = 3;
const KINDS = /** @type {Record<string, string>} shape and colour of a state */ ({
  ready: "ok",
  connected: "ok",
  unavailable: "stalled",
  lost: "lost",
  closed: "queued",
});

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, again } = loaded(() => "/api/tabs", { everyS: EVERY_S });
  const failed = signal("");
  const reload = (/** @type {string} */ key) => async () => {
    await attempt(failed, () => post(`/api/tabs/${encodeURIComponent(key)}/reload`));
    again();
  };
  const list = (/** @type {string} */ name) => () => /** @type {any[]} */ (value()?.[name] ?? []);
  const isEmpty = () => ["browsers", "tabs", "plugins"].every((name) => !list(name)().length);
  const odd = () => Object.entries(value()?.counted ?? {}).map(([what, times]) => `${what}: ${times}`);
  return h(
    "section",
    null,
    h("p", { class: "problem", hidden: () => !problem() }, () => visible(problem())),
    trouble(failed),
    h("p", { class: "empty", hidden: () => !isEmpty() }, () => nothing(value())),
    listed("Browsers", list("browsers"), browser),
    listed("Tabs", list("tabs"), tab, ({ key, title, url }) =>
      h(
        "button",
        { onclick: reload(key) },
        "Reload",
        h("span", { class: "sr" }, ` ${visible(title || url, 100)}`),
      ),
    ),
    listed("Plugins", list("plugins"), plugin),
    h("p", { class: "soft", hidden: () => !odd().length }, () => `Dropped or repaired: ${visible(odd().join(" · "))}`), // prettier-ignore
  );
}

/**
 * What somebody may press stays as it is while all around it changes.
 * @param {string} name
 * @param {() => any[]} list
 * @param {(one: any) => Child[]} parts
 * @param {(one: any) => Child} [button]
 */
function listed(name, list, parts, button = () => null) {
  const keyOf = (/** @type {any} */ one) => one.key ?? one.profile ?? one.name;
  const line = (/** @type {any} */ first) => {
    const one = computed(() => list().find((other) => keyOf(other) === keyOf(first)) ?? first);
    const part = (/** @type {number} */ at) => () => h("div", null, parts(one())[at]);
    return h("li", { class: "place" }, part(0), part(1), part(2), button(first));
  };
  return h(
    "div",
    { class: "sheet", hidden: () => !list().length },
    h("h2", null, name),
    h("ul", { class: "lines" }, each(list, keyOf, line)),
  );
}

/** @param {any} browser @returns {Child[]} */
const browser = ({ name, profile, state, user_scripts, tabs, running }) => [
  two(name, profile),
  stated(state, user_scripts ? "" : "plugins cannot run: allow user scripts in its settings"),
  count(`${many(tabs, "tab")}, ${many(running, "call")}`),
];

/** @param {any} tab @returns {Child[]} */
function tab({ key, title, url, state, why, tools, left_out, active, frozen, plugins }) {
  const names = plugins.map((/** @type {string} */ one) => one.replace(/^plugin:|@.*$/g, ""));
  const more = [url, active && "in front", frozen && "frozen", ...names].filter(Boolean);
  return [
    two(`${key} ${title || url}`, more.join(" · ")),
    stated(state, why),
    count(`${many(tools, "tool")}${left_out ? `, ${left_out} over the limit` : ""}`),
  ];
}

/** @param {any} plugin @returns {Child[]} */
function plugin({ name, version, state, why, start, tools }) {
  const isClosed = state === "closed" && start;
  const way = isClosed && h("div", null, "Open ", start.includes("*") ? visible(start) : link(start, ""));
  return [two(name, version), stated(state, why), h("div", null, count(many(tools, "tool")), way)];
}

/** @param {string} first @param {string} second */
const two = (first, second) =>
  h("div", { class: "said" }, visible(first, 200), h("div", { class: "said soft" }, visible(second, 300)));

/** @param {string} state @param {string} why */
const stated = (state, why) =>
  h("div", null, mark(() => KINDS[state] ?? "queued", () => state), h("div", { class: "soft" }, visible(why, 300))); // prettier-ignore

/** @param {string} text */
const count = (text) => h("span", { class: "soft" }, text);

/** @param {number} number @param {string} what */
const many = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

/** @param {any} known */
function nothing(known) {
  if (!known) return "Looking …";
  return h("span", null, "No browser is linked. To link yours, load the extension: ", h("code", null, "afoot browser")); // prettier-ignore
}
