// The sites that a person has allowed: our scripts run there and nowhere else.

import { inTurn } from "./turn.js";

const RELAY = "afoot.relay";
const PAGE = "afoot.page";

/**
 * The patterns of the sites that are allowed now.
 * @returns {Promise<string[]>}
 */
export async function allowed() {
  const { origins = [] } = await chrome.permissions.getAll();
  return origins.filter((one) => /^(https?|\*):\/\//.test(one) || one === "<all_urls>").sort();
}

/**
 * Make the scripts of future documents fit the sites that are allowed. What was registered stays over
 * restarts of the browser, so most of the time there is nothing to do.
 */
export const fitScripts = inTurn(async () => {
  const matches = await allowed();
  const known = await chrome.scripting.getRegisteredContentScripts({ ids: [PAGE, RELAY] });
  const wanted = matches.length ? await scripts(matches) : [];
  if (JSON.stringify(known.map(essence).sort()) === JSON.stringify(wanted.map(essence).sort())) return;
  const ids = known.map((one) => one.id);
  if (ids.length) await chrome.scripting.unregisterContentScripts({ ids });
  if (wanted.length) await chrome.scripting.registerContentScripts(wanted);
});

/**
 * No longer run on a site.
 * @param {string} pattern
 * @returns {Promise<boolean>}
 */
export async function disallow(pattern) {
  return chrome.permissions.remove({ origins: [pattern] }).catch(() => false);
}

/** What was found out about origins, until a person allows or removes a site. */
export class Guestbook {
  /** @type {Map<string, Promise<boolean>>} */
  #known = new Map();

  /** Forget all of it. */
  clear() {
    this.#known.clear();
  }

  /**
   * Whether an origin is of an allowed site. A frame of which nobody knows its site came with its parent.
   * @param {string} origin
   * @returns {Promise<boolean>}
   */
  has(origin) {
    if (!origin) return Promise.resolve(true);
    const found =
      this.#known.get(origin) ?? chrome.permissions.contains({ origins: [`${origin}/*`] }).catch(() => false);
    this.#known.set(origin, found);
    return found;
  }
}

/**
 * @param {string[]} matches
 * @returns {Promise<chrome.scripting.RegisteredContentScript[]>}
 */
async function scripts(matches) {
  const files = await (await fetch(chrome.runtime.getURL("content/files.json"))).json();
  const common = {
    matches,
    allFrames: true,
    matchOriginAsFallback: true,
    persistAcrossSessions: true,
    runAt: /** @type {const} */ ("document_start"),
  };
  return [
    { ...common, id: PAGE, js: files.page, world: "MAIN" },
    { ...common, id: RELAY, js: files.relay.map(twin), world: "ISOLATED" },
  ];
}

/**
 * The same file by another name: Chrome runs a file once a frame, even where two worlds want it.
 * @param {string} path
 * @returns {string}
 */
function twin(path) {
  return path.replace("/", "//");
}

/**
 * @param {chrome.scripting.RegisteredContentScript} script
 * @returns {string}
 */
function essence({ id, js, matches }) {
  return JSON.stringify([id, js, matches]);
}
