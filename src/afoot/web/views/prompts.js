// The view of prompts: what each server offers, a form for the arguments, and the messages that come of them.

import { submitForm } from "../components/controls.js";
import { emptyMessage, loadingRows, noMatch } from "../components/empty.js";
import { schemaForm } from "../components/form/form.js";
import { columnNames, groupedRows } from "../components/lists/groups.js";
import { lookup } from "../components/lists/lookup.js";
import { searchField } from "../components/lists/search_field.js";
import { each, h } from "../lib/dom.js";
import { safeText } from "../lib/format.js";
import { errorMessage, resource } from "../lib/resource.js";
import { route, withQuery } from "../lib/router.js";
import { computed } from "../lib/signal.js";

/** @typedef {{name: string, title?: string, description?: string, required?: boolean}} Argument */
/** @typedef {{name: string, title?: string, description?: string, server: string, arguments?: Argument[]}} Prompt */

export const title = "Prompts";
export const isWide = true;

const REFRESH_S = 10;
const HEAD = ["Prompt", "Description", "Arguments", ""];

/** @returns {HTMLElement} */
export function view() {
  const { value, problem } = resource(() => "/api/prompts", { everyS: REFRESH_S });
  const all = () => /** @type {Prompt[]} */ (value()?.prompts ?? []);
  const wanted = () => (route().query.q ?? "").toLowerCase();
  const fits = (/** @type {Prompt} */ { name, title, description, server }) =>
    [name, title, description, server].some((text) => text?.toLowerCase().includes(wanted()));
  const groups = computed(() =>
    [...Map.groupBy(all().filter(fits), ({ server }) => server)].map(([server, items]) => ({
      key: server,
      title: safeText(server, 100),
      items,
    })),
  );
  const chosen = computed(() => all().filter(({ name }) => name === route().query.open));
  const list = groupedRows(groups, ({ name }) => name, promptRow, {
    label: "Prompts",
    head: columnNames("div.list-head.offer-columns", ...HEAD),
  });
  return h(
    "section",
    h("div.toolbar", { role: "search" }, searchField("Search prompts")),
    errorMessage(problem),
    loadingRows(() => value() || problem()),
    emptyMessage(value, groups, () => (all().length ? noMatch(wanted(), "/prompts") : ["No server offers a prompt."])),
    h("div.split", { "data-open": () => chosen().length > 0 }, list, each(chosen, "name", promptPane)),
  );
}

/** @param {Prompt} prompt */
function promptRow({ name, title, description, arguments: wanted = [] }) {
  const isOpen = () => route().query.open === name;
  const what = safeText((description || title || "").split("\n")[0], 300);
  return h(
    "li.list-row.offer-columns",
    { "aria-current": () => isOpen() && "true" },
    h("span.name", h("a.row-link", { href: () => withQuery({ open: isOpen() ? null : name }) }, safeText(name, 200))),
    h("span.about.cut", what),
    h("span.faint.cut", safeText(wanted.map((one) => one.name).join(", "), 200)),
    h("span"),
  );
}

/** @param {Prompt} prompt */
function promptPane({ name, title, description, arguments: wanted = [] }) {
  const { ask, node } = lookup("/api/prompts/get");
  const fields = schemaForm(argumentSchema(wanted), { key: `prompt:${name}` });
  const fill = async () => {
    const found = wanted.length ? fields.read() : { value: {} };
    if (found) await ask({ name, arguments: found.value });
  };
  return h(
    "div.offer-pane",
    h("h2", safeText(title || name, 200)),
    h("p.dim", safeText(description)),
    submitForm("form", fill, wanted.length > 0 && fields.node, h("div.buttons", h("button.main", "Fill in"))),
    node,
  );
}

/** The arguments of a prompt, which are all texts, as a schema. @param {Argument[]} wanted */
function argumentSchema(wanted) {
  const field = (/** @type {Argument} */ { name, title, description }) => [
    name,
    { type: "string", title, description },
  ];
  const required = wanted.filter((one) => one.required).map(({ name }) => name);
  return { type: "object", properties: Object.fromEntries(wanted.map(field)), required };
}
