// The sites that a person has allowed. The content scripts run there and nowhere else.

import { serialized } from "./concurrency.js";

const RELAY_SCRIPT = "afoot.relay";
const PAGE_SCRIPT = "afoot.page";

/**
 * The match patterns of the allowed sites.
 * @returns {Promise<string[]>}
 */
export async function allowedSites() {
  const { origins = [] } = await chrome.permissions.getAll();
  return origins.filter((one) => /^(https?|\*):\/\//.test(one) || one === "<all_urls>").sort();
}

/**
 * Register the content scripts for the allowed sites. Registrations outlive the browser, so usually there is nothing
 * to do.
 */
export const syncContentScripts = serialized(async () => {
  const matches = await allowedSites();
  const registered = await chrome.scripting.getRegisteredContentScripts({ ids: [PAGE_SCRIPT, RELAY_SCRIPT] });
  const wanted = matches.length ? await contentScripts(matches) : [];
  if (
    JSON.stringify(registered.map(scriptFingerprint).sort()) ===
    JSON.stringify(wanted.map(scriptFingerprint).sort())
  )
    return;
  const ids = registered.map((one) => one.id);
  if (ids.length) await chrome.scripting.unregisterContentScripts({ ids });
  if (wanted.length) await chrome.scripting.registerContentScripts(wanted);
});

/**
 * Withdraw the permission for a site.
 * @param {string} pattern
 * @returns {Promise<boolean>}
 */
export async function removeSite(pattern) {
  return chrome.permissions.remove({ origins: [pattern] }).catch(() => false);
}

/** A cache of the permission of each origin, until a person allows or removes a site. */
export class SitePermissions {
  /** @type {Map<string, Promise<boolean>>} */
  #granted = new Map();

  /** Empty the cache. */
  clear() {
    this.#granted.clear();
  }

  /**
   * Whether an origin belongs to an allowed site. A frame of an unknown site is allowed: its parent was.
   * @param {string} origin
   * @returns {Promise<boolean>}
   */
  has(origin) {
    if (!origin) return Promise.resolve(true);
    const found =
      this.#granted.get(origin) ??
      chrome.permissions.contains({ origins: [`${origin}/*`] }).catch(() => false);
    this.#granted.set(origin, found);
    return found;
  }
}

/**
 * @param {string[]} matches
 * @returns {Promise<chrome.scripting.RegisteredContentScript[]>}
 */
async function contentScripts(matches) {
  const files = await (await fetch(chrome.runtime.getURL("content/files.json"))).json();
  const common = {
    matches,
    allFrames: true,
    matchOriginAsFallback: true,
    persistAcrossSessions: true,
    runAt: /** @type {const} */ ("document_start"),
  };
  return [
    { ...common, id: PAGE_SCRIPT, js: files.page, world: "MAIN" },
    { ...common, id: RELAY_SCRIPT, js: files.relay.map(secondPath), world: "ISOLATED" },
  ];
}

/**
 * A second path of the same file: Chrome runs a path once in a frame, even if two worlds register it.
 * @param {string} path
 * @returns {string}
 */
function secondPath(path) {
  return path.replace("/", "//");
}

/**
 * @param {chrome.scripting.RegisteredContentScript} script
 * @returns {string}
 */
function scriptFingerprint({ id, js, matches }) {
  return JSON.stringify([id, js, matches]);
}
