// The plugins that the gateway hands over: run as user scripts, one world each (B2).

import { inTurn } from "./turn.js";

/** @typedef {import("../messages.js").Body} Body */

const PREFIX = "plugin.";
const KNOWN = "plugins"; // in the session's storage: digest of a key → NAME@HASH
const UNKNOWN_MS = 5000;

/** Plugins as they are to be run now, and all that were since the browser started. */
export class Plugins {
  /** @type {Body[] | null} null: the gateway has not said yet */
  #wanted = null;
  /** @type {Map<string, string> | null} */
  #known = null;
  /** @type {(() => void)[]} */
  #waiting = [];
  #isRoomThere;
  since = Infinity; // when the gateway first said what it wants

  /** @param {(tab: number, source: string) => boolean} isRoomThere */
  constructor(isRoomThere) {
    this.#isRoomThere = isRoomThere;
  }

  /** How many are to be run. */
  get count() {
    return this.#wanted?.length ?? 0;
  }

  /** Whether the switch "Allow User Scripts" is on. */
  get isPossible() {
    return chrome.userScripts !== undefined;
  }

  /**
   * These plugins and no others are to be run.
   * @param {Body[]} bodies
   */
  async want(bodies) {
    this.#wanted = bodies;
    this.since = Math.min(this.since, performance.now());
    const known = await this.#all();
    for (const one of bodies) known.set(await digest(one.key), `${one.name}@${one.hash}`);
    for (const tell of this.#waiting.splice(0)) tell();
    await chrome.storage.session.set({ [KNOWN]: Object.fromEntries(known) });
    await this.fit();
  }

  /**
   * Whether a room's plugin is to be run, as far as that is known.
   * @param {string} source
   * @returns {boolean}
   */
  isCurrent(source) {
    return this.#wanted === null || this.#wanted.some((one) => sourceOf(one) === source);
  }

  /**
   * The plugin that has a key; null if none that we were ever given.
   * @param {unknown} key
   * @returns {Promise<string | null>}
   */
  async sourceOf(key) {
    if (typeof key !== "string") return null;
    const name = await digest(key);
    if (!(await this.#all()).has(name) && this.#wanted === null) await this.#told();
    const found = (await this.#all()).get(name);
    return found === undefined ? null : `plugin:${found}`;
  }

  /** Make what is registered fit what is wanted, and run what is new in the tabs that are open. */
  fit = inTurn(async () => {
    if (!this.isPossible || this.#wanted === null) return;
    const known = (await chrome.userScripts.getScripts()).filter((one) => one.id.startsWith(PREFIX));
    const wanted = new Map(this.#wanted.map((one) => [PREFIX + one.name, one]));
    const isSame = (/** @type {chrome.userScripts.RegisteredUserScript} */ one) =>
      wanted.has(one.id) && essence(one) === essence(scriptOf(/** @type {Body} */ (wanted.get(one.id))));
    const kept = new Set(known.filter(isSame).map((one) => one.id));
    const ids = known.map((one) => one.id).filter((id) => !kept.has(id));
    if (ids.length) await chrome.userScripts.unregister({ ids });
    for (const [id, one] of wanted) if (!kept.has(id)) await this.#run(one);
  });

  /**
   * Run the plugins in a tab that has another address without having loaded anew.
   * @param {number} tab
   * @param {string} url
   */
  async visit(tab, url) {
    if (!this.isPossible) return;
    for (const one of this.#wanted ?? []) await this.#execute(one, tab, url);
  }

  /** @param {Body} plugin */
  async #run(plugin) {
    try {
      await chrome.userScripts.configureWorld({ worldId: plugin.name, messaging: true });
      await chrome.userScripts.register([scriptOf(plugin)]);
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
      if (id === undefined || not.has(id) || this.#isRoomThere(id, sourceOf(plugin))) continue;
      await this.#inject(plugin, id);
    }
  }

  /**
   * @param {Body} plugin
   * @param {number} tabId
   */
  async #inject(plugin, tabId) {
    const world = { world: /** @type {const} */ ("USER_SCRIPT"), worldId: plugin.name };
    const js = codeOf(plugin);
    await chrome.userScripts
      .execute({ target: { tabId }, js, injectImmediately: true, ...world })
      .catch((error) => console.debug(`plugin ${plugin.name} not run in tab ${tabId}:`, error));
  }

  async #all() {
    if (!this.#known) {
      const stored = await chrome.storage.session.get(KNOWN);
      this.#known ??= new Map(Object.entries(/** @type {any} */ (stored)[KNOWN] ?? {}));
    }
    return this.#known;
  }

  /** @returns {Promise<void>} when the gateway has said what it wants, or it took too long */
  #told() {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      setTimeout(resolve, UNKNOWN_MS);
    });
  }
}

/**
 * @param {Body} plugin
 * @returns {string}
 */
export function sourceOf(plugin) {
  return `plugin:${plugin.name}@${plugin.hash}`;
}

/**
 * @param {Body} plugin
 * @returns {chrome.userScripts.RegisteredUserScript}
 */
function scriptOf(plugin) {
  return {
    id: PREFIX + plugin.name,
    matches: plugin.matches,
    ...(plugin.excludes?.length ? { excludeMatches: plugin.excludes } : {}),
    js: codeOf(plugin),
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
function codeOf(plugin) {
  const files = plugin.files ? [{ code: plugin.files }] : [];
  return [{ code: plugin.body ?? "" }, ...files];
}

/**
 * @param {chrome.userScripts.RegisteredUserScript} script
 * @returns {string}
 */
function essence({ matches, excludeMatches, js }) {
  return JSON.stringify([matches, excludeMatches ?? [], (js ?? []).map((one) => one.code)]);
}

/**
 * Keys are not kept: a digest is enough to know one again.
 * @param {string} key
 * @returns {Promise<string>}
 */
async function digest(key) {
  const found = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  return Array.from(new Uint8Array(found), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
