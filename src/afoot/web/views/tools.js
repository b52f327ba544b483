// All tools on offer, by their servers.

import { each, h } from "../dom.js";
import { loaded, trouble } from "../load.js";
import { empty, search, visible } from "../parts.js";
import { route, toolAt } from "../router.js";
import { computed } from "../signal.js";

export const title = "Tools";

const EVERY_S = 10;

/** @returns {HTMLElement} */
export function view() {
  const { value, problem } = loaded(() => "/api/tools", { everyS: EVERY_S });
  const wanted = () => (route().query.q ?? "").toLowerCase();
  const fits = (/** @type {ToolView} */ { name, server, title, description }) =>
    [name, server, title, description].some((text) => text?.toLowerCase().includes(wanted()));
  const found = computed(() => /** @type {ToolView[]} */ (value()?.tools ?? []).filter(fits));
  const groups = computed(() => [...Map.groupBy(found(), (tool) => tool.server)]);
  const all = () => ["No tool fits. ", h("a", { href: "/tools" }, "See all tools")];
  const none = () => ["No tool is on offer. Serve some: ", h("code", "afoot serve tools.py")];
  const nothing = empty(value, found, () => (wanted() ? all() : none()));
  const field = h("p.row.filters", search("Search tools"));
  return h("section", field, trouble(problem), nothing, each(groups, JSON.stringify, group));
}

/** @param {[string, ToolView[]]} group */
function group([server, tools]) {
  const items = tools.map(({ name, description, title, approval }) => {
    const what = visible((description || title || "").split("\n")[0], 300);
    const asks = approval === "ask" && h("span.aside", "asks first");
    return h("li", h("a", { href: toolAt(name) }, visible(name, 200)), h("span.soft", what), asks);
  });
  return h("div.sheet", h("h2", visible(server, 100)), h("ul.lines", ...items));
}
