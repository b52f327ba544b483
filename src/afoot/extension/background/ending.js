// Why a document is there no more, from what the browser says the moment its port is closed (B6).

/** @typedef {{status?: string, url?: string, pendingUrl?: string, discarded: boolean}} Tab */
/**
 * @typedef {object} Signs
 * @property {boolean} isTop whether it was the tab's own document
 * @property {string} url its address
 * @property {boolean} saidBye whether it left in order
 * @property {boolean} isTopThere whether the document above is still there
 * @property {boolean} hasNext whether another document has come in its place
 * @property {boolean} wasReplaced whether its tab has another id now
 * @property {number} looks how often that was looked at before
 * @property {Tab | null} tab
 */

const CACHE = "back/forward cache";
export const LOOK_MS = 25;
const MOST_LOOKS = 20;

/**
 * Whether a closed port's error, or the page's last word, says that the page may come back.
 * @param {string | undefined} error
 * @param {{persisted?: unknown} | null} bye
 * @returns {boolean}
 */
export function isCached(error, bye) {
  return bye?.persisted === true || Boolean(error?.includes(CACHE));
}

/**
 * The reason, one of those that the link knows. A port may close a moment before its tab does, or before the
 * tab begins to load.
 * @param {Signs} signs
 * @returns {string | null} null: it cannot be told yet, look again
 */
export function reasonOf(signs) {
  const { tab } = signs;
  if (!tab) return signs.wasReplaced ? "discarded" : "closed";
  if (tab.discarded) return "discarded";
  if (tab.status === "unloaded") return "crashed";
  return signs.isTop ? reasonOfTop(signs, tab) : reasonOfFrame(signs, tab);
}

/**
 * @param {Signs} signs
 * @param {Tab} tab
 * @returns {string | null}
 */
function reasonOfTop(signs, tab) {
  const next = tab.pendingUrl ?? tab.url;
  if (next === undefined || bare(next) !== bare(signs.url)) return "navigated";
  if (tab.status === "loading" || signs.hasNext) return "reloaded";
  if (signs.looks < MOST_LOOKS) return null;
  return signs.saidBye ? "reloaded" : "lost";
}

/**
 * @param {Signs} signs
 * @param {Tab} tab
 * @returns {string | null}
 */
function reasonOfFrame(signs, tab) {
  if (tab.pendingUrl) return tab.pendingUrl === tab.url ? "reloaded" : "navigated";
  if (!signs.isTopThere) return "navigated";
  if (tab.status === "loading") return "navigated";
  if (signs.looks === 0) return null; // all of the tab may be about to close
  return signs.saidBye ? "removed" : "crashed"; // a frame of another site has a process of its own
}

/**
 * @param {string} url
 * @returns {string} the part before the fragment
 */
function bare(url) {
  return url.split("#", 1)[0] ?? "";
}
