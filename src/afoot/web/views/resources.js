// The view of resources and templates: what each server offers to read, who is told of its changes, and its contents.

import { submitForm } from "../components/controls.js";
import { emptyMessage, loadingRows, noMatch } from "../components/empty.js";
import { schemaForm } from "../components/form/form.js";
import { columnNames, groupedRows } from "../components/lists/groups.js";
import { lookup } from "../components/lists/lookup.js";
import { searchField } from "../components/lists/search_field.js";
import { each, h } from "../lib/dom.js";
import { formatBytes, plural, safeText } from "../lib/format.js";
import { fillTemplate, variablesOf } from "../lib/text/uri_template.js";
import { errorMessage, resource } from "../lib/resource.js";
import { route, withQuery } from "../lib/router.js";
import { computed } from "../lib/signal.js";

/** @typedef {{uri?: string, uriTemplate?: string, name: string, title?: string, description?: string, mimeType?: string, size?: number, server: string}} Offer */

export const title = "Resources";
export const isWide = true;

const REFRESH_S = 10;
const HEAD = ["Resource", "Description", "Type", " Subscribed"];

/** @returns {HTMLElement} */
export function view() {
  const { value, problem } = resource(() => "/api/resources", { everyS: REFRESH_S });
  const all = () => /** @type {Offer[]} */ ([...(value()?.resources ?? []), ...(value()?.templates ?? [])]);
  const wanted = () => (route().query.q ?? "").toLowerCase();
  const fits = (/** @type {Offer} */ { name, title, description, server, ...one }) =>
    [name, title, description, server, addressOf(one)].some((text) => text?.toLowerCase().includes(wanted()));
  const groups = computed(() =>
    [...Map.groupBy(all().filter(fits), ({ server }) => server)].map(([server, items]) => ({
      key: server,
      title: safeText(server, 100),
      items,
    })),
  );
  const clients = computed(
    () => new Map((value()?.subscriptions ?? []).map((/** @type {any} */ one) => [one.uri, one.clients])),
  );
  const problems = () => /** @type {string[]} */ (value()?.problems ?? []);
  const chosen = computed(() => all().filter((one) => addressOf(one) === route().query.open));
  const list = groupedRows(groups, addressOf, (one) => offerRow(one, clients), {
    label: "Resources",
    head: columnNames("div.list-head.offer-columns", ...HEAD),
  });
  return h(
    "section",
    h("div.toolbar", { role: "search" }, searchField("Search resources")),
    errorMessage(problem),
    h(
      "ul.problem",
      each(problems, String, (text) => h("li", safeText(text))),
    ),
    loadingRows(() => value() || problem()),
    emptyMessage(value, groups, () =>
      all().length ? noMatch(wanted(), "/resources") : ["No server offers a resource."],
    ),
    h("div.split", { "data-open": () => chosen().length > 0 }, list, each(chosen, addressOf, readPane)),
  );
}

/** The URI of a resource, or its template. @param {Pick<Offer, "uri" | "uriTemplate">} offer */
const addressOf = ({ uri, uriTemplate }) => uri ?? uriTemplate ?? "";

/** @param {Offer} offer @param {() => Map<string, number>} clients by URI */
function offerRow(offer, clients) {
  const { name, title, description, mimeType, uri } = offer;
  const address = addressOf(offer);
  const isOpen = () => route().query.open === address;
  const what = safeText((description || title || name).split("\n")[0], 300);
  const count = () => clients().get(uri ?? "");
  return h(
    "li.list-row.offer-columns",
    { "aria-current": () => isOpen() && "true" },
    h(
      "span.name",
      h("a.row-link.mono", { href: () => withQuery({ open: isOpen() ? null : address }) }, safeText(address, 200)),
    ),
    h("span.about.cut", what),
    h("span.faint.cut", safeText(mimeType ?? (uri ? "" : "template"), 100)),
    h("span.num", () => (count() ? plural(count() ?? 0, "client") : "")),
  );
}

/** A resource that is read, or a template whose variables are asked first. @param {Offer} offer */
function readPane(offer) {
  const { title, name, description, uri, uriTemplate, size } = offer;
  const { ask, node } = lookup("/api/resources/read");
  const variables = uri ? [] : variablesOf(uriTemplate ?? "");
  const schema = {
    type: "object",
    properties: Object.fromEntries(variables.map((one) => [one, { type: "string" }])),
    required: variables,
  };
  const fields = schemaForm(schema, { key: `resource:${addressOf(offer)}` });
  const read = async () => {
    if (uri) return ask({ uri });
    const found = fields.read();
    if (found) await ask({ uri: fillTemplate(uriTemplate ?? "", found.value) });
  };
  return h(
    "div.offer-pane",
    h("h2", safeText(title || name, 200)),
    h("p.dim", safeText(description)),
    h("p.mono", safeText(addressOf(offer), 2000), size ? ` · ${formatBytes(size)}` : ""),
    submitForm("form", read, variables.length > 0 && fields.node, h("div.buttons", h("button.main", "Read"))),
    node,
  );
}
