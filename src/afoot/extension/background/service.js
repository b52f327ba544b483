// What rooms ask of the worker itself: to be woken in time, and for plugins a value of the page.

import { readValue } from "../value.js";

const MOST = 1000; // wakes of one port that wait
const LONGEST_MS = 60_000;

/**
 * Wake a room in time: timers of hidden pages run once a minute.
 * @param {{port: chrome.runtime.Port, wakes: number}} seat
 * @param {Record<string, any>} said
 */
export function wake(seat, { id, ms }) {
  if (seat.wakes >= MOST) return;
  seat.wakes += 1;
  const wait = Math.min(LONGEST_MS, Math.max(0, Number(ms) || 0));
  setTimeout(() => {
    seat.wakes -= 1;
    post(seat.port, "woken", { id });
  }, wait);
}

/**
 * Read a value of the page for a plugin.
 * @param {chrome.runtime.Port} port
 * @param {Record<string, any>} said
 */
export async function tellValue(port, { id, path }) {
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
 * Post to a port, which may have been closed a moment ago; then its room's end is told anyway.
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
