// The service worker of the extension. Every listener is added at top level, synchronously: the browser may stop the
// worker between any two lines, and starts it again for an event.

import { SidePanel, PANEL_PORT } from "./side_panel.js";
import { GatewayLink } from "./gateway_link.js";
import { Plugins } from "./plugins.js";
import { isFromThisLoad, senderSite } from "./page_context.js";
import { PageContexts } from "./page_contexts.js";
import { SitePermissions, allowedSites, removeSite, syncContentScripts } from "./site_permissions.js";
import { listTabs } from "./tabs.js";
import { coalesced } from "./concurrency.js";

/** @typedef {import("./frames.js").Frame} Frame */

const CONTEXT_PORT = "afoot.room";
const RECONNECT_ALARM = "afoot.link";
const TAB_LIST_MS = 100;
const AWAY_AFTER_TRIES = 3; // to reconnect; then nobody is called to questions that cannot be answered
const RELOAD_SETTLE_MS = 5000; // after a load of the extension, in which relays of the load before may still connect
let lastTabList = ""; // the last tab list that the gateway got, as JSON
let extensionLoadedAt = -Infinity; // when the extension was installed or reloaded, if this worker saw it
let lastFocusedWindow = 0; // by a person
/** @type {boolean | undefined} */
let sentUserScripts; // whether plugins could run, as the last hello told the gateway

/** @type {(method: string, params: Record<string, any>) => void} */
const sendToGateway = (method, params) => link.send(method, params);

const sitePermissions = new SitePermissions();
const plugins = new Plugins((tab, source) =>
  contexts.all.some(({ address }) => address.tab === String(tab) && address.source === source),
);
const contexts = new PageContexts({
  send: sendToGateway,
  isAllowed: (sender) => sitePermissions.has(senderSite(sender)),
  sourceOf: (key) => plugins.sourceOf(key),
  isCurrent: (source) => plugins.isCurrent(source),
  isStale: (at) => extensionLoadedAt > -Infinity && at < plugins.firstSyncAt,
  changed: () => {
    tabsChanged();
    if (performance.now() - extensionLoadedAt < RELOAD_SETTLE_MS) void dropStaleContexts();
  },
});
const sidePanel = new SidePanel({
  send: sendToGateway,
  scene: async () => ({
    link: { state: link.state, why: link.why, url: link.url },
    userScripts: plugins.canRun,
    plugins: plugins.count,
    id: chrome.runtime.id,
    sites: await allowedSites(),
    tabs: await listTabs(tabsWithContext()),
  }),
  commands: {
    answer: ({ question, action, content }) =>
      sendDecision(question, "panel.answer", { question, action, content }),
    stop: ({ call, reason }) => sendDecision(call, "panel.cancel", { call, reason }),
    pair: () => link.connect(),
    revoke: ({ site }) => removeSite(site),
    reload: ({ tab }) => reloadTab(tab),
    ask: ({ tab }) => requestSiteAccess(Number(tab)),
  },
});
const link = new GatewayLink({
  pairing: chrome.runtime.getURL("pairing.json"),
  prepareHello,
  receive,
  changed: () => {
    if (link.state === "off" && link.tries > AWAY_AFTER_TRIES) sidePanel.setAway();
    sidePanel.refresh();
  },
  isWanted: () => sidePanel.isOpen || contexts.all.length > 0,
});

const tabsChanged = coalesced(() => void sendTabList(), TAB_LIST_MS);

chrome.runtime.onConnect.addListener((port) => {
  if (port.name === CONTEXT_PORT) contexts.connect(port, false);
  else if (port.name === PANEL_PORT) sidePanel.connect(port);
  else port.disconnect();
  void link.connect();
});
chrome.runtime.onUserScriptConnect.addListener((port) => {
  if (port.name === CONTEXT_PORT) contexts.connect(port, true);
  else port.disconnect();
  void link.connect();
});
chrome.runtime.onInstalled.addListener(() => {
  extensionLoadedAt = performance.now();
  void dropStaleContexts();
});
chrome.runtime.onStartup.addListener(() => void restore());
chrome.alarms.onAlarm.addListener(() => void restore());
chrome.permissions.onAdded.addListener(() => void onSitesChanged());
chrome.permissions.onRemoved.addListener(() => void onSitesChanged());
chrome.tabs.onUpdated.addListener((id, change) => {
  tabsChanged();
  if (change.url) void plugins.runInTab(id, change.url);
});
chrome.tabs.onActivated.addListener(() => tabsChanged());
chrome.tabs.onCreated.addListener(() => tabsChanged());
chrome.tabs.onRemoved.addListener(() => tabsChanged());
chrome.tabs.onReplaced.addListener((_added, removed) => {
  contexts.markReplaced(removed);
  tabsChanged();
});
chrome.windows.onFocusChanged.addListener(() => tabsChanged());
chrome.action.onClicked.addListener((tab) => {
  void chrome.sidePanel.open({ windowId: tab.windowId });
  if (tab.id !== undefined && !tab.url) void requestSiteAccess(tab.id);
});
chrome.notifications.onClicked.addListener((id) => sidePanel.openForQuestion(id, lastFocusedWindow));

void restore();

/** Bring everything into its right state, whatever event started the worker. */
async function restore() {
  checkUserScriptsSwitch(); // before all that may fail or wait
  void link.connect();
  if (!(await chrome.alarms.get(RECONNECT_ALARM)))
    await chrome.alarms.create(RECONNECT_ALARM, { periodInMinutes: 0.5 });
  await syncContentScripts();
}

/** Reconnect if a person turned the switch for user scripts since the last hello. No event tells of it. */
function checkUserScriptsSwitch() {
  if (sentUserScripts !== undefined && sentUserScripts !== plugins.canRun) link.reconnect();
}

/** @returns {Promise<() => void>} */
async function prepareHello() {
  await syncContentScripts(); // they must be registered before the gateway reloads a tab
  const [profile, tabs] = await Promise.all([profileId(), listTabs(tabsWithContext())]);
  return () => {
    lastTabList = JSON.stringify(tabs);
    sentUserScripts = plugins.canRun;
    sendToGateway("link.hello", {
      version: chrome.runtime.getManifest().version,
      profile,
      rooms: contexts.all.map((context) => context.view),
      running: contexts.all.flatMap((context) => context.running),
      tabs,
      userScripts: sentUserScripts,
      label: browserName(),
    });
    contexts.resend();
    if (sidePanel.isOpen) sidePanel.reportOpen();
  };
}

/** @param {Frame} frame */
function receive(frame) {
  const { method, params } = frame;
  if (method === "tool.dispatch" || method === "tool.cancel" || method === "tool.settled")
    contexts.deliver(frame);
  else if (method === "link.welcome") void onWelcome(params);
  else if (method === "plugin.sync") void setPlugins(params.plugins);
  else if (method === "panel.state") sidePanel.setState(params);
  else if (method === "panel.said") sidePanel.showResult(params);
  else if (method === "tab.reload") void reloadTab(params.tab);
  else if (method === "link.reload") chrome.runtime.reload();
  else if (method === "ping") {
    checkUserScriptsSwitch(); // a linked worker is alive, and its alarm may be late
    if (sidePanel.isOpen) sidePanel.reportOpen(); // the panel is still open
  }
}

/** @param {Record<string, any>} params */
async function onWelcome({ abort = [], plugins: bodies = [] }) {
  contexts.abort(abort);
  await setPlugins(bodies);
}

/** @param {import("./messages.js").PluginBundle[]} bodies */
async function setPlugins(bodies) {
  const done = plugins.setPlugins(bodies);
  contexts.syncPlugins();
  await done;
}

async function onSitesChanged() {
  sitePermissions.clear();
  await syncContentScripts();
  const refusedPorts = new Set();
  for (const { port } of contexts.all)
    if (!(await sitePermissions.has(senderSite(port.sender)))) refusedPorts.add(port);
  contexts.close((context) => refusedPorts.has(context.port));
  sidePanel.refresh();
}

async function dropStaleContexts() {
  for (const context of contexts.all.filter((one) => one.address.source === "page")) {
    if (!(await isFromThisLoad(context))) contexts.close((one) => one === context);
  }
}

async function sendTabList() {
  checkUserScriptsSwitch();
  const tabs = await listTabs(tabsWithContext());
  lastFocusedWindow = Number(tabs.find((tab) => tab.focused)?.window ?? lastFocusedWindow);
  sidePanel.refresh();
  const text = JSON.stringify(tabs);
  if (text === lastTabList || link.state !== "on") return;
  lastTabList = text;
  sendToGateway("tab.list", { tabs });
}

/**
 * Send a person's decision to the gateway, or show in the panel that it could not be sent.
 * @param {string} about
 * @param {string} method
 * @param {Record<string, any>} params
 */
function sendDecision(about, method, params) {
  if (!link.send(method, params))
    sidePanel.showResult({ about, error: "the gateway is not connected: try again" });
}

/** @returns {Set<string>} ids of the tabs that have a context */
function tabsWithContext() {
  return new Set(contexts.all.map((context) => context.address.tab));
}

/** @param {unknown} tab */
async function reloadTab(tab) {
  await chrome.tabs.reload(Number(tab)).catch((error) => console.debug("not reloaded", tab, error));
}

/**
 * Let Chrome ask for access beside the address bar: the extension cannot see the URL of a site that is not allowed.
 * @param {number} tabId
 */
async function requestSiteAccess(tabId) {
  await chrome.permissions
    .addHostAccessRequest({ tabId })
    .catch((error) => console.debug("not asked", error));
}

/** @returns {Promise<string>} the random id of this browser profile, made once */
async function profileId() {
  const { profile } = await chrome.storage.local.get("profile");
  if (typeof profile === "string") return profile;
  const newProfile = crypto.randomUUID();
  await chrome.storage.local.set({ profile: newProfile });
  return newProfile;
}

/** @returns {string} */
function browserName() {
  /** @type {{brand: string}[]} */
  const brands = /** @type {any} */ (navigator).userAgentData?.brands ?? [];
  const known = brands.map((one) => one.brand).filter((brand) => !/not.*brand/i.test(brand));
  return known.find((brand) => brand !== "Chromium") ?? known[0] ?? "";
}
