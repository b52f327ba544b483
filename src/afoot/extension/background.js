// The worker: every listener at top level, as the browser may end it between any two lines and start it anew.

import { Desk, PANEL } from "./background/desk.js";
import { Link } from "./background/link.js";
import { siteOf } from "./background/place.js";
import { Plugins } from "./background/plugins.js";
import { Rooms } from "./background/rooms.js";
import { Guestbook, allowed, disallow, fitScripts } from "./background/sites.js";
import { isCurrent } from "./background/stale.js";
import { listTabs } from "./background/tabs.js";
import { gathered } from "./background/turn.js";

/** @typedef {import("./background/gate.js").Frame} Frame */

const ROOM = "afoot.room";
const ALARM = "afoot.link";
const GATHER_MS = 100;
const STALE = 3; // tries to come back
const SETTLING_MS = 5000; // so long after a load the relays of the one before may still come
let listed = ""; // the tabs as the gateway was told of them last
let loaded = -Infinity; // when the extension itself was loaded, if this worker saw it
let front = 0; // the window where a person was last
let couldPlug = chrome.userScripts !== undefined;

/** @type {(method: string, params: Record<string, any>) => void} */
const say = (method, params) => link.say(method, params);

const guests = new Guestbook();
const plugins = new Plugins((tab, source) =>
  rooms.all.some(({ place }) => place.tab === String(tab) && place.source === source),
);
const rooms = new Rooms({
  say,
  isBusy: () => link.isBusy,
  isWelcome: (sender) => guests.has(siteOf(sender)),
  sourceOf: (key) => plugins.sourceOf(key),
  isCurrent: (source) => plugins.isCurrent(source),
  isStale: (at) => loaded > -Infinity && at < plugins.since,
  changed: () => {
    look();
    if (performance.now() - loaded < SETTLING_MS) void dropStale();
  },
});
const desk = new Desk({
  say,
  scene: async () => ({
    link: { state: link.state, why: link.why, url: link.url },
    userScripts: plugins.isPossible,
    plugins: plugins.count,
    id: chrome.runtime.id,
    sites: await allowed(),
    tabs: await listTabs(inhabited()),
  }),
  commands: {
    answer: ({ question, action, content }) => ask(question, "panel.answer", { question, action, content }),
    stop: ({ call, reason }) => ask(call, "panel.cancel", { call, reason }),
    pair: () => link.connect(),
    revoke: ({ site }) => disallow(site),
    reload: ({ tab }) => reload(tab),
    ask: ({ tab }) => askFor(Number(tab)),
  },
});
const link = new Link({
  pairing: chrome.runtime.getURL("pairing.json"),
  greet,
  hear,
  changed: () => {
    if (link.state === "off" && link.tries > STALE) desk.tell({}); // what was shown is long over
    desk.show();
  },
  isWanted: () => desk.isOpen || rooms.all.length > 0,
});

const look = gathered(() => void tellTabs(), GATHER_MS);

chrome.runtime.onConnect.addListener((port) => {
  if (port.name === ROOM) rooms.join(port, false);
  else if (port.name === PANEL) desk.join(port);
  else port.disconnect();
  void link.connect();
});
chrome.runtime.onUserScriptConnect.addListener((port) => {
  if (port.name === ROOM) rooms.join(port, true);
  else port.disconnect();
  void link.connect();
});
chrome.runtime.onInstalled.addListener(() => {
  loaded = performance.now();
  void dropStale();
});
chrome.runtime.onStartup.addListener(() => void wake());
chrome.alarms.onAlarm.addListener(() => void wake());
chrome.permissions.onAdded.addListener(() => void fitSites());
chrome.permissions.onRemoved.addListener(() => void fitSites());
chrome.tabs.onUpdated.addListener((id, change) => {
  look();
  if (change.url) void plugins.visit(id, change.url);
});
chrome.tabs.onActivated.addListener(() => look());
chrome.tabs.onCreated.addListener(() => look());
chrome.tabs.onRemoved.addListener(() => look());
chrome.tabs.onReplaced.addListener((_added, removed) => {
  rooms.replace(removed);
  look();
});
chrome.windows.onFocusChanged.addListener(() => look());
chrome.action.onClicked.addListener((tab) => {
  void chrome.sidePanel.open({ windowId: tab.windowId });
  if (tab.id !== undefined && !tab.url) void askFor(tab.id);
});
chrome.notifications.onClicked.addListener((id) => desk.open(id, front));

void wake();

/** Whatever woke the worker: all is made as it should be, if it is not. */
async function wake() {
  void link.connect();
  if (!(await chrome.alarms.get(ALARM))) await chrome.alarms.create(ALARM, { periodInMinutes: 0.5 });
  await fitScripts();
  noticeSwitch();
}

/** The person may have turned the switch for user scripts; nothing but looking tells. */
function noticeSwitch() {
  if (couldPlug !== plugins.isPossible) link.renew();
  couldPlug = plugins.isPossible;
}

/** @returns {Promise<() => void>} */
async function greet() {
  await fitScripts(); // a tab that the gateway reloads must meet them
  const [profile, tabs] = await Promise.all([profileId(), listTabs(inhabited())]);
  return () => {
    listed = JSON.stringify(tabs);
    say("link.hello", {
      version: chrome.runtime.getManifest().version,
      profile,
      rooms: rooms.all.map((room) => room.view),
      running: rooms.all.flatMap((room) => room.running),
      tabs,
      userScripts: plugins.isPossible,
      label: browserName(),
    });
    for (const frame of rooms.all.flatMap((room) => room.kept)) say(frame.method, frame.params);
    if (desk.isOpen) desk.watch();
  };
}

/** @param {Frame} frame */
function hear(frame) {
  const { method, params } = frame;
  if (method === "tool.dispatch" || method === "tool.cancel" || method === "tool.settled")
    rooms.deliver(frame);
  else if (method === "link.welcome") void welcome(params);
  else if (method === "plugin.sync") void adopt(params.plugins);
  else if (method === "panel.state") desk.tell(params);
  else if (method === "panel.said") desk.said(params);
  else if (method === "tab.reload") void reload(params.tab);
  else if (method === "link.reload") chrome.runtime.reload();
  else if (method === "ping" && desk.isOpen) desk.watch(); // somebody still looks
}

/** @param {Record<string, any>} params */
async function welcome({ abort = [], plugins: bodies = [] }) {
  rooms.abort(abort);
  await adopt(bodies);
}

/** @param {import("./messages.js").Body[]} bodies */
async function adopt(bodies) {
  const done = plugins.want(bodies);
  rooms.sort();
  await done;
}

async function fitSites() {
  guests.clear();
  await fitScripts();
  const lost = new Set();
  for (const { port } of rooms.all) if (!(await guests.has(siteOf(port.sender)))) lost.add(port);
  rooms.close((room) => lost.has(room.port));
  desk.show();
}

async function dropStale() {
  for (const room of rooms.all.filter((one) => one.place.source === "page")) {
    if (!(await isCurrent(room))) rooms.close((one) => one === room);
  }
}

async function tellTabs() {
  noticeSwitch();
  const tabs = await listTabs(inhabited());
  front = Number(tabs.find((tab) => tab.focused)?.window ?? front);
  desk.show();
  const text = JSON.stringify(tabs);
  if (text === listed || link.state !== "on") return;
  listed = text;
  say("tab.list", { tabs });
}

/**
 * Say what a person decided; if nobody hears it, the person must know.
 * @param {string} about
 * @param {string} method
 * @param {Record<string, any>} params
 */
function ask(about, method, params) {
  if (!link.say(method, params)) desk.said({ about, error: "the gateway is not connected: try again" });
}

/** @returns {Set<string>} the tabs that have a room */
function inhabited() {
  return new Set(rooms.all.map((room) => room.place.tab));
}

/** @param {unknown} tab */
async function reload(tab) {
  await chrome.tabs.reload(Number(tab)).catch((error) => console.debug("not reloaded", tab, error));
}

/**
 * Chrome itself asks, beside the address: we cannot see the address of a site that is not allowed.
 * @param {number} tabId
 */
async function askFor(tabId) {
  await chrome.permissions
    .addHostAccessRequest({ tabId })
    .catch((error) => console.debug("not asked", error));
}

/** @returns {Promise<string>} which profile this is: made once, by chance */
async function profileId() {
  const { profile } = await chrome.storage.local.get("profile");
  if (typeof profile === "string") return profile;
  const made = crypto.randomUUID();
  await chrome.storage.local.set({ profile: made });
  return made;
}

/** @returns {string} */
function browserName() {
  /** @type {{brand: string}[]} */
  const brands = /** @type {any} */ (navigator).userAgentData?.brands ?? [];
  const known = brands.map((one) => one.brand).filter((brand) => !/not.*brand/i.test(brand));
  return known.find((brand) => brand !== "Chromium") ?? known[0] ?? "";
}
