// The tabs and the allowed sites: where tools can run, why they cannot, and the buttons to change that.

import { find, reconcile, createElement, setProperties } from "./dom.js";
import { explainUnavailable, parseSitePattern, safeText, formatSite } from "./format.js";

/** @typedef {import("../background/messages.js").Tab} Tab */
/** @typedef {import("../background/messages.js").PanelTab} PanelTab */
/** @typedef {(method: string, params?: Record<string, any>) => void} SendToWorker */
/** @typedef {Tab & {key: string, state: string, tools: number}} TabRow */

/**
 * Render the tabs of the allowed sites, and the number of others.
 * @param {Tab[]} tabs
 * @param {PanelTab[]} keys the gateway's view of the tabs
 * @param {SendToWorker} send
 */
export function renderTabs(tabs, keys, send) {
  const section = find("#tabs");
  const known = new Map(keys.map((one) => [one.tab, one]));
  const seen = tabs
    .filter((tab) => /^https?:/.test(tab.url ?? ""))
    .map((tab) => mergeTab(tab, known.get(tab.id)));
  reconcile(find(".list", section), seen, {
    key: (tab) => tab.id,
    create: (tab) => tabCard(tab, send),
    update: updateTab,
  });
  setProperties(find(".empty", section), { hidden: seen.length > 0 });
  const others = tabs.filter((tab) => tab.why === "ungranted").length;
  const text = others === 1 ? "One other tab is" : `${others} other tabs are`;
  setProperties(find("#others"), {
    hidden: others === 0,
    textContent: `${text} of sites that are not allowed.`,
  });
}

/**
 * Render the allowed sites.
 * @param {string[]} sites
 * @param {Tab | undefined} activeTab the tab in front
 * @param {SendToWorker} send
 */
export function renderSites(sites, activeTab, send) {
  const section = find("#sites");
  reconcile(find(".list", section), sites, {
    key: (site) => site,
    create: (site) => siteCard(site, send),
    update: () => undefined,
  });
  setProperties(find(".empty", section), { hidden: sites.length > 0 });
  renderCurrentSite(activeTab, send);
}

/** Handle the form that allows a site by name. Chrome asks for confirmation, because this is a user gesture. */
export function startSiteForm() {
  const error = find("#allow-error");
  find("#allow").addEventListener("submit", (event) => {
    event.preventDefault();
    const input = /** @type {HTMLInputElement} */ (find("#site"));
    const pattern = parseSitePattern(input.value);
    setProperties(error, {
      hidden: pattern !== null,
      textContent: pattern ? "" : "That is no site: type a name such as shop.example",
    });
    if (!pattern) return;
    chrome.permissions.request({ origins: [pattern] }).then(
      (isGranted) => isGranted && (input.value = ""),
      (refused) => setProperties(error, { hidden: false, textContent: String(refused.message) }),
    );
  });
}

/**
 * @param {Tab} tab
 * @param {PanelTab | undefined} known
 * @returns {TabRow}
 */
function mergeTab(tab, known) {
  const why = tab.why || known?.why || "";
  return {
    ...tab,
    why,
    key: known?.key ?? "",
    tools: known?.tools ?? 0,
    state: why ? "unavailable" : (known?.state ?? "ready"),
  };
}

/**
 * @param {TabRow} tab
 * @param {SendToWorker} send
 * @returns {HTMLElement}
 */
function tabCard(tab, send) {
  const reload = createElement("button", { type: "button", className: "reload" }, "Reload");
  reload.addEventListener("click", () => send("reload", { tab: tab.id }));
  const name = createElement(
    "h3",
    {},
    createElement("span", { className: "title" }),
    createElement("span", { className: "key faint" }),
  );
  const dot = createElement("span", { className: "dot", "aria-hidden": "true" });
  const head = createElement("div", { className: "row" }, dot, name, reload);
  return createElement(
    "article",
    { className: "card tab" },
    head,
    createElement("p", { className: "faint about" }),
  );
}

/**
 * @param {HTMLElement} element
 * @param {TabRow} tab
 */
function updateTab(element, tab) {
  const isReady = tab.state === "ready" && !tab.why;
  element.dataset.state = isReady ? "ready" : "unavailable";
  setProperties(find(".title", element), { textContent: safeText(tab.title || tab.url || "") });
  setProperties(find(".key", element), { textContent: tab.key });
  const tools = tab.tools === 1 ? "1 tool" : tab.tools ? `${tab.tools} tools` : "no tools";
  const notes = [tab.frozen ? "frozen" : "", tab.discarded ? "put to sleep" : ""].filter((part) => part);
  const state = isReady
    ? [tools, ...notes]
    : [`unavailable: ${explainUnavailable(tab.why || tab.state)}`, ...notes];
  const host = URL.canParse(tab.url ?? "") ? new URL(tab.url ?? "").host : "";
  setProperties(find(".about", element), { textContent: [host, ...state].join(" · ") });
  setProperties(find(".reload", element), { hidden: tab.why !== "reload" });
}

/**
 * @param {string} site
 * @param {SendToWorker} send
 * @returns {HTMLElement}
 */
function siteCard(site, send) {
  const remove = createElement(
    "button",
    { type: "button", "aria-label": `Remove ${formatSite(site)}` },
    "Remove",
  );
  remove.addEventListener("click", () => send("revoke", { site }));
  return createElement("p", { className: "card row" }, createElement("span", {}, formatSite(site)), remove);
}

/**
 * Render the site of the active tab. Only Chrome knows its URL until it is allowed.
 * @param {Tab | undefined} activeTab
 * @param {SendToWorker} send
 */
function renderCurrentSite(activeTab, send) {
  const line = find("#here");
  const isNew = activeTab?.why === "ungranted";
  setProperties(line, { hidden: !isNew });
  if (!isNew) return;
  setProperties(find("span", line), { textContent: "The site in this tab is not allowed." });
  const button = /** @type {HTMLButtonElement} */ (find("button", line));
  setProperties(button, { textContent: "Allow it" });
  button.onclick = () => {
    send("ask", { tab: activeTab?.id });
    setProperties(find("span", line), { textContent: "Chrome asks beside the address: choose Allow there." });
  };
}
