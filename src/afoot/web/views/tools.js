// The view of all tools, grouped by server.

import { each, h } from "../lib/dom.js";
import { resource, errorMessage } from "../lib/resource.js";
import { emptyMessage, searchField } from "../components/status.js";
import { safeText } from "../lib/format.js";
import { route, toolPath } from "../lib/router.js";
import { computed } from "../lib/signal.js";

export const title = "Tools";

const REFRESH_S = 10;

/** @returns {HTMLElement} */
export function view() {
  const { value, problem } = resource(() => "/api/tools", { everyS: REFRESH_S });
  const wanted = () => (route().query.q ?? "").toLowerCase();
  const fits = (/** @type {ToolView} */ { name, server, title, description }) =>
    [name, server, title, description].some((text) => text?.toLowerCase().includes(wanted()));
  const found = computed(() => /** @type {ToolView[]} */ (value()?.tools ?? []).filter(fits));
  const groups = computed(() => [...Map.groupBy(found(), (tool) => tool.server)]);
  const all = () => ["No tool fits. ", h("a", { href: "/tools" }, "See all tools")];
  const none = () => ["No tool is on offer. Serve some: ", h("code", "afoot serve tools.py")];
  const nothing = emptyMessage(value, found, () => (wanted() ? all() : none()));
  const field = h("p.row.filters", searchField("Search tools"));
  return h("section", field, errorMessage(problem), nothing, each(groups, JSON.stringify, toolGroup));
}

/** @param {[string, ToolView[]]} group */
function toolGroup([server, tools]) {
  const items = tools.map(({ name, own, description, title, approval }) => {
    const what = safeText((description || title || "").split("\n")[0], 300);
    const asks = approval === "ask" && h("span.aside", "asks first");
    const called = own !== name && h("span.aside", `there ${safeText(own, 100)}`);
    return h("li", h("a", { href: toolPath(name) }, safeText(name, 200)), h("span.soft", what), called, asks);
  });
  return h("div.sheet", h("h2", safeText(server, 100)), h("ul.lines", ...items));
}
