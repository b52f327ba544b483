// All tools on offer, by their servers.

import { each, h } from "../dom.js";
import { loaded } from "../load.js";
import { visible } from "../parts.js";
import { go, having, route, toolAt } from "../router.js";
import { computed } from "../signal.js";

export const title = "Tools";

const EVERY_S = 10;

/** @returns {HTMLElement} */
export function view() {
  const { value, problem } = loaded(() => "/api/tools", { everyS: EVERY_S });
  const wanted = () => (route().query.q ?? "").toLowerCase();
  const fits = (/** @type {any} */ { name, server, title, description }) =>
    [name, server, title, description].some((text) => text?.toLowerCase().includes(wanted()));
  const found = computed(() => (value()?.tools ?? []).filter(fits));
  const groups = computed(() => [...Map.groupBy(found(), (/** @type {any} */ tool) => tool.server)]);
  const oninput = (/** @type {any} */ { target }) => go(having({ q: target.value }), { replace: true });
  const about = { type: "search", "aria-label": "Search tools", placeholder: "Search tools" };
  const isOpen = () => Boolean(value()) && !problem();
  return h(
    "section",
    null,
    h("p", { class: "row filters" }, h("input", { ...about, ".value": () => route().query.q ?? "", oninput })), // prettier-ignore
    h("p", { class: "problem", hidden: () => !problem() }, () => visible(problem())),
    h("p", { class: "empty", hidden: () => found().length > 0 }, () => nothing(isOpen(), wanted())),
    each(groups, keyOf, group),
  );
}

/** All of a group that is shown. @param {[string, any[]]} group */
const keyOf = ([server, tools]) =>
  JSON.stringify([
    server,
    tools.map(({ name, description, title, approval }) => [name, description, title, approval]),
  ]);

/** @param {[string, any[]]} group */
function group([server, tools]) {
  const name = visible(server, 100);
  const items = tools.map((tool) =>
    h(
      "li",
      null,
      h("a", { class: "said", href: toolAt(tool.name) }, visible(tool.name, 200)),
      h("span", { class: "said soft" }, visible((tool.description || tool.title || "").split("\n")[0], 300)),
      tool.approval === "ask" && h("span", { class: "soft aside" }, "asks first"),
    ),
  );
  return h(
    "div",
    { class: "sheet" },
    h("h2", { class: "said" }, name),
    h("ul", { class: "lines" }, ...items),
  );
}

/** @param {boolean} isKnown @param {string} wanted */
function nothing(isKnown, wanted) {
  if (!isKnown) return "Looking …";
  if (wanted) return h("span", null, "No tool fits. ", h("a", { href: "/tools" }, "See all tools"));
  return h("span", null, "No tool is on offer. Serve some: ", h("code", null, "afoot serve tools.py"));
}
