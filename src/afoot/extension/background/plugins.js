// Plugins: runs the plugins of the gateway as user scripts, each in its own world (B2).

import { serialized } from "./concurrency.js";

/** @typedef {import("./messages.js").PluginBundle} Body */

const SCRIPT_PREFIX = "plugin.";
const STORAGE_KEY = "plugins"; // in session storage: digest of a key → NAME@HASH
const GATEWAY_WAIT_MS = 5000;

/** The plugins to run now, and the keys of all plugins since the browser started. */
export class Plugins {
  /** @type {Body[] | null} null: not known yet */
  #plugins = null;
  /** @type {Map<string, string> | null} */
  #sourcesByKey = null;
  /** @type {(() => void)[]} */
  #waiting = [];
  #hasContext;
  #isSynced = false; // whether the worlds and user scripts of all plugins are set up
  firstSyncAt = Infinity; // when the gateway first sent its plugins

  /** @param {(tab: number, source: string) => boolean} hasContext */
  constructor(hasContext) {
    this.#hasContext = hasContext;
  }

  /** The number of plugins to run. */
  get count() {
    return this.#plugins?.length ?? 0;
  }

  /**
   * Whether the switch "Allow User Scripts" is on. A worker that ran when it was turned off keeps the API, but its
   * methods throw.
   */
  get canRun() {
    try {
      chrome.userScripts.getScripts().catch(() => undefined);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Run these plugins and no others.
   * @param {Body[]} bodies
   */
  async setPlugins(bodies) {
    this.#plugins = bodies;
    this.#isSynced = false;
    this.firstSyncAt = Math.min(this.firstSyncAt, performance.now());
    const known = await this.#loadSources();
    for (const one of bodies) known.set(await digest(one.key), `${one.name}@${one.hash}`);
    for (const tell of this.#waiting.splice(0)) tell();
    await chrome.storage.session.set({ [STORAGE_KEY]: Object.fromEntries(known) });
    await this.syncUserScripts();
  }

  /**
   * Whether the plugin of a context is to be run; true while that is not known yet.
   * @param {string} source
   * @returns {boolean}
   */
  isCurrent(source) {
    return this.#plugins === null || this.#plugins.some((one) => pluginSource(one) === source);
  }

  /**
   * The source of the plugin that has a key; null for an unknown key.
   * @param {unknown} key
   * @returns {Promise<string | null>}
   */
  async sourceOf(key) {
    if (typeof key !== "string") return null;
    const name = await digest(key);
    if (!(await this.#loadSources()).has(name) && this.#plugins === null) await this.#waitForGateway();
    const found = (await this.#loadSources()).get(name);
    return found === undefined ? null : `plugin:${found}`;
  }

  /**
   * Register and unregister user scripts as needed, and run all plugins in the open tabs that lack them. A script that is
   * registered already may be missing in a tab: one that was opened while the switch was off.
   */
  syncUserScripts = serialized(async () => {
    if (!this.canRun || this.#plugins === null) return;
    const known = (await chrome.userScripts.getScripts()).filter((one) => one.id.startsWith(SCRIPT_PREFIX));
    const byId = new Map(this.#plugins.map((one) => [SCRIPT_PREFIX + one.name, one]));
    const isSame = (/** @type {chrome.userScripts.RegisteredUserScript} */ one) =>
      byId.has(one.id) &&
      scriptFingerprint(one) === scriptFingerprint(userScriptOf(/** @type {Body} */ (byId.get(one.id))));
    const unchanged = new Set(known.filter(isSame).map((one) => one.id));
    const ids = known.map((one) => one.id).filter((id) => !unchanged.has(id));
    if (ids.length) await chrome.userScripts.unregister({ ids });
    for (const [id, one] of byId) await this.#start(one, unchanged.has(id));
    this.#isSynced = true;
  });

  /**
   * Run the plugins in a tab whose URL changed without a load.
   * @param {number} tab
   * @param {string} url
   */
  async runInTab(tab, url) {
    if (!this.canRun) return;
    // Right after the switch was turned on, a plugin would run in a world that cannot send messages.
    if (!this.#isSynced) await this.syncUserScripts();
    for (const one of this.#plugins ?? []) await this.#execute(one, tab, url);
  }

  /**
   * @param {Body} plugin
   * @param {boolean} isRegistered
   */
  async #start(plugin, isRegistered) {
    try {
      if (!isRegistered) {
        await chrome.userScripts.configureWorld({ worldId: plugin.name, messaging: true });
        await chrome.userScripts.register([userScriptOf(plugin)]);
      }
      await this.#execute(plugin);
    } catch (error) {
      console.warn(`plugin ${plugin.name} cannot be run:`, error);
    }
  }

  /**
   * @param {Body} plugin
   * @param {number} [only] the tab, if it is to be run in one alone
   * @param {string} [url]
   */
  async #execute(plugin, only, url) {
    const fitting = await chrome.tabs.query({ url: plugin.matches });
    const excluded = plugin.excludes?.length ? await chrome.tabs.query({ url: plugin.excludes }) : [];
    const not = new Set(excluded.map((tab) => tab.id));
    const isMeant = (/** @type {chrome.tabs.Tab} */ tab) =>
      only === undefined ? !tab.discarded : tab.id === only && tab.url === url;
    for (const { id } of fitting.filter(isMeant)) {
      if (id === undefined || not.has(id) || this.#hasContext(id, pluginSource(plugin))) continue;
      await this.#inject(plugin, id);
    }
  }

  /**
   * @param {Body} plugin
   * @param {number} tabId
   */
  async #inject(plugin, tabId) {
    const world = { world: /** @type {const} */ ("USER_SCRIPT"), worldId: plugin.name };
    const js = scriptSources(plugin);
    await chrome.userScripts
      .execute({ target: { tabId }, js, injectImmediately: true, ...world })
      .catch((error) => console.debug(`plugin ${plugin.name} not run in tab ${tabId}:`, error));
  }

  async #loadSources() {
    if (!this.#sourcesByKey) {
      const stored = await chrome.storage.session.get(STORAGE_KEY);
      this.#sourcesByKey ??= new Map(Object.entries(/** @type {any} */ (stored)[STORAGE_KEY] ?? {}));
    }
    return this.#sourcesByKey;
  }

  /** @returns {Promise<void>} when the gateway has said what it wants, or it took too long */
  #waitForGateway() {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      setTimeout(resolve, GATEWAY_WAIT_MS);
    });
  }
}

/**
 * @param {Body} plugin
 * @returns {string}
 */
export function pluginSource(plugin) {
  return `plugin:${plugin.name}@${plugin.hash}`;
}

/**
 * @param {Body} plugin
 * @returns {chrome.userScripts.RegisteredUserScript}
 */
function userScriptOf(plugin) {
  return {
    id: SCRIPT_PREFIX + plugin.name,
    matches: plugin.matches,
    ...(plugin.excludes?.length ? { excludeMatches: plugin.excludes } : {}),
    js: scriptSources(plugin),
    world: "USER_SCRIPT",
    worldId: plugin.name,
    runAt: "document_start",
    allFrames: false,
  };
}

/**
 * @param {Body} plugin
 * @returns {[chrome.userScripts.ScriptSource, ...chrome.userScripts.ScriptSource[]]}
 */
function scriptSources(plugin) {
  const files = plugin.files ? [{ code: plugin.files }] : [];
  return [{ code: plugin.body ?? "" }, ...files];
}

/**
 * @param {chrome.userScripts.RegisteredUserScript} script
 * @returns {string}
 */
function scriptFingerprint({ matches, excludeMatches, js }) {
  return JSON.stringify([matches, excludeMatches ?? [], (js ?? []).map((one) => one.code)]);
}

/**
 * The digest of a key. Only digests are stored.
 * @param {string} key
 * @returns {Promise<string>}
 */
async function digest(key) {
  const found = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  return Array.from(new Uint8Array(found), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
