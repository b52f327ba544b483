// The view of browsers, their tabs and the plugins, and why some tools cannot run.

import { post } from "../lib/api.js";
import { externalLink } from "../components/content.js";
import { actionButton } from "../components/controls.js";
import { emptyMessage, loadingRows } from "../components/empty.js";
import { groupedRows } from "../components/lists/groups.js";
import { placeRow } from "../components/lists/place_row.js";
import { h } from "../lib/dom.js";
import { joinNonEmpty, plural, safeText } from "../lib/format.js";
import { errorMessage, resource } from "../lib/resource.js";
import { computed } from "../lib/signal.js";

export const title = "Tabs";
export const isWide = true;

const REFRESH_S = 3;
/** @typedef {{kind: "browser", one: BrowserView} | {kind: "tab", one: TabView} | {kind: "plugin", one: PluginView}} Item */

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, refetch } = resource(() => "/api/tabs", { everyS: REFRESH_S });
  const groups = computed(() => {
    /** @type {[string, Item[]][]} */
    const lists = [
      ["Browsers", (value()?.browsers ?? []).map((/** @type {BrowserView} */ one) => ({ kind: "browser", one }))],
      ["Tabs", (value()?.tabs ?? []).map((/** @type {TabView} */ one) => ({ kind: "tab", one }))],
      ["Plugins", (value()?.plugins ?? []).map((/** @type {PluginView} */ one) => ({ kind: "plugin", one }))],
    ];
    return lists.filter(([, items]) => items.length).map(([title, items]) => ({ key: title, title, items }));
  });
  const odd = () => Object.entries(value()?.counted ?? {}).map(([what, times]) => `${what}: ${times}`);
  return h(
    "section",
    errorMessage(problem),
    groupedRows(groups, keyOf, (first, newest) => itemRow(first, newest, refetch), {
      label: "Browsers, tabs and plugins",
    }),
    loadingRows(() => value() || problem(), 4),
    emptyMessage(value, groups, () => [
      "No browser is linked. To link yours, load the extension: ",
      h("code", "afoot browser"),
    ]),
    h("p.faint.card-body", { shown: () => odd().length }, () => `Dropped or repaired: ${safeText(odd().join(" · "))}`),
  );
}

/** @param {Item} item */
const keyOf = (item) =>
  item.kind === "browser" ? item.one.profile : item.kind === "tab" ? item.one.key : item.one.name;

/** @param {Item} first @param {() => Item} newest @param {() => unknown} refetch */
function itemRow(first, newest, refetch) {
  if (first.kind === "browser") return placeRow(() => browserPlace(/** @type {BrowserView} */ (newest().one)));
  if (first.kind === "plugin")
    return placeRow(
      () => pluginPlace(/** @type {PluginView} */ (newest().one)),
      [],
      startPageLink(first.one, () => /** @type {PluginView} */ (newest().one)),
    );
  const { key, title, url } = first.one;
  const reload = () => post(`/api/tabs/${encodeURIComponent(key)}/reload`).finally(refetch);
  const button = actionButton("Reload", reload, {
    class: "small",
    "aria-label": `Reload ${safeText(title || url, 100)}`,
  });
  return placeRow(() => tabPlace(/** @type {TabView} */ (newest().one)), [button]);
}

/** @param {BrowserView} browser */
const browserPlace = ({ name, profile, state, user_scripts: isAllowed, tabs, running }) => ({
  key: profile,
  name,
  about: profile,
  state,
  why: isAllowed ? "" : "plugins cannot run: allow user scripts in its settings",
  count: joinNonEmpty(plural(tabs, "tab"), running && `${plural(running, "call")} now`),
});

/** @param {TabView} tab */
function tabPlace({ key, title, url, state, why, tools, left_out, active, visible, frozen, plugins }) {
  const names = plugins.map((/** @type {string} */ one) => one.replace(/^plugin:|@.*$/g, ""));
  const about = [url, active && "in front", !visible && "hidden", frozen && "frozen", ...names]
    .filter(Boolean)
    .join(" · ");
  const count = joinNonEmpty(plural(tools, "tool"), left_out && `${left_out} over the limit`);
  return { key, name: title || url, aside: key, about, state, why, count };
}

/** @param {PluginView} plugin */
const pluginPlace = ({ name, version, state, why, tools }) => ({
  key: name,
  name,
  about: version,
  state,
  why,
  count: plural(tools, "tool"),
});

/** A link to a page of a plugin. @param {PluginView} plugin @param {() => PluginView} now */
const startPageLink = ({ start }, now) => {
  const page = start.includes("*") ? start : externalLink(start, "");
  return h("div.list-more", { shown: () => now().state === "closed" && start }, h("p", "Open ", page));
};
