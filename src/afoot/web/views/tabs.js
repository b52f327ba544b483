// The view of browsers, their tabs and the plugins, and why some tools cannot run.

import { post } from "../lib/api.js";
import { actionButton } from "../components/controls.js";
import { h } from "../lib/dom.js";
import { resource, errorMessage } from "../lib/resource.js";
import { emptyMessage } from "../components/status.js";
import { joinNonEmpty, plural, safeText } from "../lib/format.js";
import { statusList } from "../components/status_list.js";
import { externalLink } from "../components/content.js";

export const title = "Tabs";

const REFRESH_S = 3;
const HINT = "No browser is linked. To link yours, load the extension: ";

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, refetch } = resource(() => "/api/tabs", { everyS: REFRESH_S });
  const browsers = () => /** @type {BrowserView[]} */ (value()?.browsers ?? []);
  const tabs = () => /** @type {TabView[]} */ (value()?.tabs ?? []);
  const plugins = () => /** @type {PluginView[]} */ (value()?.plugins ?? []);
  const all = () => [...browsers(), ...tabs(), ...plugins()];
  const odd = () => Object.entries(value()?.counted ?? {}).map(([what, times]) => `${what}: ${times}`);
  const reload = (/** @type {TabView} */ { key, title, url }) => {
    const work = () => post(`/api/tabs/${encodeURIComponent(key)}/reload`).finally(refetch);
    return [h("div.push", actionButton("Reload", work, { "aria-label": `Reload ${safeText(title || url, 100)}` }))];
  };
  return h(
    "section",
    errorMessage(problem),
    emptyMessage(value, all, () => [HINT, h("code", "afoot browser")]),
    statusList("Browsers", browsers, browserItem),
    statusList("Tabs", tabs, tabItem, reload),
    statusList("Plugins", plugins, pluginItem, startPageLink),
    h("p.soft", { shown: () => odd().length }, () => `Dropped or repaired: ${safeText(odd().join(" · "))}`),
  );
}

/** @param {BrowserView} browser */
const browserItem = ({ name, profile, state, user_scripts: isAllowed, tabs, running }) => {
  const why = isAllowed ? "" : "plugins cannot run: allow user scripts in its settings";
  return {
    key: profile,
    name,
    about: profile,
    state,
    why,
    count: joinNonEmpty(plural(tabs, "tab"), plural(running, "call")),
  };
};

/** @param {TabView} tab */
function tabItem({ key, title, url, state, why, tools, left_out, active, frozen, plugins }) {
  const names = plugins.map((/** @type {string} */ one) => one.replace(/^plugin:|@.*$/g, ""));
  const about = joinNonEmpty(url, active && "in front", frozen && "frozen", ...names);
  const count = joinNonEmpty(plural(tools, "tool"), left_out && `${left_out} over the limit`);
  return { key, name: `${key} ${title || url}`, about, state, why, count };
}

/** @param {PluginView} plugin */
const pluginItem = ({ name, version, state, why, tools }) => {
  return { key: name, name, about: version, state, why, count: plural(tools, "tool") };
};

/** A link to a page of a plugin. @param {PluginView} plugin @param {() => PluginView} now */
const startPageLink = ({ start }, now) => {
  const page = start.includes("*") ? start : externalLink(start, "");
  return [h("div.wide", { shown: () => now().state === "closed" && start }, "Open ", page)];
};
