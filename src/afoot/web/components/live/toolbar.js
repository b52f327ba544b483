// liveToolbar: search, the states as chips with their counts, and the menus of server and grouping. All is in the address.

import { each, h } from "../../lib/dom.js";
import { formatCount, safeText } from "../../lib/format.js";
import { navigate, route, withQuery } from "../../lib/router.js";
import { icon } from "../marks/icon.js";
import { stateIcon } from "../marks/state_icon.js";
import { FILTERS } from "./rows.js";

/** @typedef {import("./rows.js").LiveModel} LiveModel */

const GROUPINGS = { state: "state", server: "server", caller: "caller", none: "none" };

/** @param {() => LiveModel} model */
export function liveToolbar(model) {
  const wanted = () => route().query.state ?? "";
  const chip = (/** @type {string} */ key) => {
    const isHere = () => wanted() === key;
    const mark = key && key !== "ended" && stateIcon(/** @type {any} */ (key), null);
    const props = { href: () => withQuery({ state: key, call: null }), "aria-current": () => isHere() && "true" };
    const count = () => formatCount(model().counts[key || "all"]);
    const about = { "data-filter": key || "all", "data-none": () => !model().counts[key || "all"], ...props };
    return h("a.chip", about, mark, key ? FILTERS[key] : "All", " ", h("b", count));
  };
  const servers = () => [["", "all"], ...model().servers.map((name) => [name, safeText(name, 60)])];
  return h(
    "div.live-tools",
    searchField(),
    h("nav.chips-line", { "aria-label": "Which calls" }, ...["", ...Object.keys(FILTERS)].map(chip)),
    h("span.push"),
    menu("Server", "server", servers),
    menu("Group", "group", () => Object.entries(GROUPINGS), "boxed"),
  );
}

function searchField() {
  const words = "Search live calls";
  const oninput = (/** @type {any} */ { target }) => navigate(withQuery({ q: target.value }), { replace: true });
  const about = { type: "search", "aria-label": words, placeholder: words, "aria-keyshortcuts": "/" };
  const field = h("input", { ...about, ".value": () => route().query.q ?? "", oninput });
  return h("label.search-field", icon("find", "s"), field, h("kbd", { "aria-hidden": "true" }, "/"));
}

/**
 * A menu whose choice is in the address.
 * @param {string} label
 * @param {string} key in the query
 * @param {() => string[][]} options their values and words; the first is the usual one
 * @param {string} [look]
 */
function menu(label, key, options, look = "") {
  const isHere = (/** @type {string} */ value) => (route().query[key] ?? options()[0][0]) === value;
  const option = (/** @type {readonly string[]} */ [value, words]) =>
    h("option", { value, ".selected": () => isHere(value) }, `${label}: ${words}`);
  const onchange = (/** @type {any} */ { target }) => {
    const isUsual = target.value === options()[0][0];
    navigate(withQuery({ [key]: isUsual ? null : target.value, call: null }), { replace: true });
  };
  const select = h(
    "select",
    { "aria-label": label, onchange },
    each(options, ([value]) => value, option),
  );
  return h("span", { class: `menu ${look}`.trim() }, select, icon("down", "s"));
}
