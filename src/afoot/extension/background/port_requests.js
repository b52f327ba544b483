// Requests that the worker itself answers over a context's port: a timer, and for plugins a value of the page.

import { readValue } from "./page_value.js";

const MAX_WAKES = 1000; // waiting, of one port
const MAX_WAKE_MS = 60_000;

/**
 * Answer `wake` with `woken` after some time: timers of hidden pages run once a minute.
 * @param {{port: chrome.runtime.Port, wakes: number}} connection
 * @param {Record<string, any>} request
 */
export function scheduleWake(connection, { id, ms }) {
  if (connection.wakes >= MAX_WAKES) return;
  connection.wakes += 1;
  const wait = Math.min(MAX_WAKE_MS, Math.max(0, Number(ms) || 0));
  setTimeout(() => {
    connection.wakes -= 1;
    post(connection.port, "woken", { id });
  }, wait);
}

/**
 * Read a value of the page, and send it to a plugin.
 * @param {chrome.runtime.Port} port
 * @param {Record<string, any>} request
 */
export async function sendPageValue(port, { id, path }) {
  const { tab, documentId } = port.sender ?? {};
  const target = { tabId: tab?.id ?? -1, documentIds: [documentId ?? ""] };
  const args = /** @type {[string]} */ ([String(path)]);
  try {
    const [found] = await chrome.scripting.executeScript({ target, world: "MAIN", func: readValue, args });
    post(port, "valued", { id, .../** @type {object} */ (found?.result ?? { ok: false }) });
  } catch (error) {
    post(port, "valued", { id, ok: false, why: error instanceof Error ? error.message : String(error) });
  }
}

/**
 * Post to a port. One that was closed a moment ago is ignored: its onDisconnect follows.
 * @param {chrome.runtime.Port} port
 * @param {string} method
 * @param {Record<string, any>} params
 */
export function post(port, method, params) {
  try {
    port.postMessage({ method, params });
  } catch (error) {
    console.debug("not posted", method, error);
  }
}
