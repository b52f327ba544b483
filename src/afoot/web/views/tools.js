// The view of all tools, grouped by server; then all resources and prompts.

import { each, h } from "../lib/dom.js";
import { resource, errorMessage } from "../lib/resource.js";
import { emptyMessage, searchField } from "../components/status.js";
import { safeText } from "../lib/format.js";
import { route, toolPath } from "../lib/router.js";
import { computed } from "../lib/signal.js";

export const title = "Tools";

const REFRESH_S = 10;

/** @typedef {{uri?: string, uriTemplate?: string, name: string, title?: string, description?: string, server: string}} OfferView */

/** @returns {HTMLElement} */
export function view() {
  const { value, problem } = resource(() => "/api/tools", { everyS: REFRESH_S });
  const { value: resources } = resource(() => "/api/resources", { everyS: REFRESH_S });
  const { value: prompts } = resource(() => "/api/prompts", { everyS: REFRESH_S });
  const wanted = () => (route().query.q ?? "").toLowerCase();
  const fits = (/** @type {ToolView} */ { name, server, title, description }) =>
    [name, server, title, description].some((text) => text?.toLowerCase().includes(wanted()));
  const found = computed(() => /** @type {ToolView[]} */ (value()?.tools ?? []).filter(fits));
  const groups = computed(() => [...Map.groupBy(found(), (tool) => tool.server)]);
  const offers = computed(() => {
    const fit = (/** @type {OfferView} */ one) => JSON.stringify(one).toLowerCase().includes(wanted());
    const all = [...(resources()?.resources ?? []), ...(resources()?.templates ?? [])];
    /** @type {[string, OfferView[]][]} */
    const lists = [
      ["Resources", all.filter(fit)],
      ["Prompts", (prompts()?.prompts ?? []).filter(fit)],
    ];
    return lists.filter(([, items]) => items.length);
  });
  const all = () => ["No tool fits. ", h("a", { href: "/tools" }, "See all tools")];
  const none = () => ["No tool is on offer. Serve some: ", h("code", "afoot serve tools.py")];
  const nothing = emptyMessage(value, found, () => (wanted() ? all() : none()));
  const field = h("p.row.filters", searchField("Search tools"));
  const lists = [each(groups, JSON.stringify, toolGroup), each(offers, JSON.stringify, offerGroup)];
  return h("section", field, errorMessage(problem), nothing, ...lists);
}

/** The resources, or the prompts, of all servers. @param {[string, OfferView[]]} group */
function offerGroup([title, offers]) {
  const items = offers.map(({ uri, uriTemplate, name, title, description, server }) => {
    const what = safeText((description || title || "").split("\n")[0], 300);
    const subject = h("code", safeText(uri ?? uriTemplate ?? name, 200));
    return h("li", subject, h("span.soft", what), server !== "local" && h("span.aside", safeText(server, 100)));
  });
  return h("div.sheet", h("h2", title), h("ul.lines", ...items));
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
