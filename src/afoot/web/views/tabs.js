// Browsers, their tabs and the plugins: where tools are, and why some cannot run.

import { post } from "../api.js";
import { action } from "../control.js";
import { h } from "../dom.js";
import { loaded, trouble } from "../load.js";
import { empty, listed, many, visible } from "../parts.js";
import { places } from "../places.js";
import { link } from "../value.js";

export const title = "Tabs";

const EVERY_S = 3;
const HINT = "No browser is linked. To link yours, load the extension: ";

/** @returns {HTMLElement} */
export function view() {
  const { value, problem, again } = loaded(() => "/api/tabs", { everyS: EVERY_S });
  const browsers = () => /** @type {BrowserView[]} */ (value()?.browsers ?? []);
  const tabs = () => /** @type {TabView[]} */ (value()?.tabs ?? []);
  const plugins = () => /** @type {PluginView[]} */ (value()?.plugins ?? []);
  const all = () => [...browsers(), ...tabs(), ...plugins()];
  const odd = () => Object.entries(value()?.counted ?? {}).map(([what, times]) => `${what}: ${times}`);
  const reload = (/** @type {TabView} */ { key, title, url }) => {
    const work = () => post(`/api/tabs/${encodeURIComponent(key)}/reload`).finally(again);
    return [h("div.push", action("Reload", work, { "aria-label": `Reload ${visible(title || url, 100)}` }))];
  };
  return h(
    "section",
    trouble(problem),
    empty(value, all, () => [HINT, h("code", "afoot browser")]),
    places("Browsers", browsers, browser),
    places("Tabs", tabs, tab, reload),
    places("Plugins", plugins, plugin, way),
    h("p.soft", { shown: () => odd().length }, () => `Dropped or repaired: ${visible(odd().join(" · "))}`),
  );
}

/** @param {BrowserView} browser */
const browser = ({ name, profile, state, user_scripts: isAllowed, tabs, running }) => {
  const why = isAllowed ? "" : "plugins cannot run: allow user scripts in its settings";
  return { key: profile, name, about: profile, state, why, count: listed(many(tabs, "tab"), many(running, "call")) };
};

/** @param {TabView} tab */
function tab({ key, title, url, state, why, tools, left_out, active, frozen, plugins }) {
  const names = plugins.map((/** @type {string} */ one) => one.replace(/^plugin:|@.*$/g, ""));
  const about = listed(url, active && "in front", frozen && "frozen", ...names);
  const count = listed(many(tools, "tool"), left_out && `${left_out} over the limit`);
  return { key, name: `${key} ${title || url}`, about, state, why, count };
}

/** @param {PluginView} plugin */
const plugin = ({ name, version, state, why, tools }) => {
  return { key: name, name, about: version, state, why, count: many(tools, "tool") };
};

/** A page on which a plugin would run. @param {PluginView} plugin @param {() => PluginView} now */
const way = ({ start }, now) => {
  const page = start.includes("*") ? start : link(start, "");
  return [h("div.wide", { shown: () => now().state === "closed" && start }, "Open ", page)];
};
