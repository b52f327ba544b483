// Tabs and sites: where tools can run, why not, and what a person can do about it.

import { find, keep, make, set } from "./dom.js";
import { because, patternOf, readable, siteName } from "./words.js";

/** @typedef {import("../messages.js").Tab} Tab */
/** @typedef {import("../messages.js").PanelTab} PanelTab */
/** @typedef {(method: string, params?: Record<string, any>) => void} Say */
/** @typedef {Tab & {key: string, state: string, tools: number}} Seen */

/**
 * Show the tabs of the allowed sites, and count the others.
 * @param {Tab[]} tabs
 * @param {PanelTab[]} keys what the gateway says of them
 * @param {Say} say
 */
export function showTabs(tabs, keys, say) {
  const section = find("#tabs");
  const known = new Map(keys.map((one) => [one.tab, one]));
  const seen = tabs
    .filter((tab) => /^https?:/.test(tab.url ?? ""))
    .map((tab) => join(tab, known.get(tab.id)));
  keep(find(".list", section), seen, {
    key: (tab) => tab.id,
    create: (tab) => tabCard(tab, say),
    update: refreshTab,
  });
  set(find(".empty", section), { hidden: seen.length > 0 });
  const others = tabs.filter((tab) => tab.why === "ungranted").length;
  const text = others === 1 ? "One other tab is" : `${others} other tabs are`;
  set(find("#others"), { hidden: others === 0, textContent: `${text} of sites that are not allowed.` });
}

/**
 * Show the allowed sites.
 * @param {string[]} sites
 * @param {Tab | undefined} here the tab in front
 * @param {Say} say
 */
export function showSites(sites, here, say) {
  const section = find("#sites");
  keep(find(".list", section), sites, {
    key: (site) => site,
    create: (site) => siteCard(site, say),
    update: () => undefined,
  });
  set(find(".empty", section), { hidden: sites.length > 0 });
  showHere(here, say);
}

/** Let a person allow a site by its name: Chrome asks once more, as the click is here. */
export function listenForSites() {
  const error = find("#allow-error");
  find("#allow").addEventListener("submit", (event) => {
    event.preventDefault();
    const input = /** @type {HTMLInputElement} */ (find("#site"));
    const pattern = patternOf(input.value);
    set(error, {
      hidden: pattern !== null,
      textContent: pattern ? "" : "That is no site: type a name such as shop.example",
    });
    if (!pattern) return;
    chrome.permissions.request({ origins: [pattern] }).then(
      (isGranted) => isGranted && (input.value = ""),
      (refused) => set(error, { hidden: false, textContent: String(refused.message) }),
    );
  });
}

/**
 * @param {Tab} tab
 * @param {PanelTab | undefined} known
 * @returns {Seen}
 */
function join(tab, known) {
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
 * @param {Seen} tab
 * @param {Say} say
 * @returns {HTMLElement}
 */
function tabCard(tab, say) {
  const reload = make("button", { type: "button", className: "reload" }, "Reload");
  reload.addEventListener("click", () => say("reload", { tab: tab.id }));
  const name = make("h3", {}, make("span", { className: "title" }), make("span", { className: "key faint" }));
  const dot = make("span", { className: "dot", "aria-hidden": "true" });
  const head = make("div", { className: "row" }, dot, name, reload);
  return make("article", { className: "card tab" }, head, make("p", { className: "faint about" }));
}

/**
 * @param {HTMLElement} element
 * @param {Seen} tab
 */
function refreshTab(element, tab) {
  const isReady = tab.state === "ready" && !tab.why;
  element.dataset.state = isReady ? "ready" : "unavailable";
  set(find(".title", element), { textContent: readable(tab.title || tab.url || "") });
  set(find(".key", element), { textContent: tab.key });
  const tools = tab.tools === 1 ? "1 tool" : tab.tools ? `${tab.tools} tools` : "no tools";
  const rest = [tab.frozen ? "frozen" : "", tab.discarded ? "put to sleep" : ""].filter((part) => part);
  const state = isReady ? [tools, ...rest] : [`unavailable: ${because(tab.why || tab.state)}`, ...rest];
  const host = URL.canParse(tab.url ?? "") ? new URL(tab.url ?? "").host : "";
  set(find(".about", element), { textContent: [host, ...state].join(" · ") });
  set(find(".reload", element), { hidden: tab.why !== "reload" });
}

/**
 * @param {string} site
 * @param {Say} say
 * @returns {HTMLElement}
 */
function siteCard(site, say) {
  const remove = make("button", { type: "button", "aria-label": `Remove ${siteName(site)}` }, "Remove");
  remove.addEventListener("click", () => say("revoke", { site }));
  return make("p", { className: "card row" }, make("span", {}, siteName(site)), remove);
}

/**
 * The site in front, whose address only Chrome knows until it is allowed.
 * @param {Tab | undefined} here
 * @param {Say} say
 */
function showHere(here, say) {
  const line = find("#here");
  const isNew = here?.why === "ungranted";
  set(line, { hidden: !isNew });
  if (!isNew) return;
  set(find("span", line), { textContent: "The site in this tab is not allowed." });
  const button = /** @type {HTMLButtonElement} */ (find("button", line));
  set(button, { textContent: "Allow it" });
  button.onclick = () => {
    say("ask", { tab: here?.id });
    set(find("span", line), { textContent: "Chrome asks beside the address: choose Allow there." });
  };
}
