// closeReason: why a document is gone, from what the browser says when its port closes (B6).

/** @typedef {{status?: string, url?: string, pendingUrl?: string, discarded: boolean}} Tab */
/**
 * @typedef {object} CloseEvidence
 * @property {boolean} isTop whether it was the top document of its tab
 * @property {string} url its URL
 * @property {boolean} saidGoodbye whether it sent `bye`
 * @property {boolean} isTopOpen whether the top document is still open
 * @property {boolean} hasSuccessor whether another document took its place
 * @property {boolean} wasReplaced whether its tab has another id now
 * @property {number} attempts how many times the tab was looked at before
 * @property {Tab | null} tab
 */

const CACHE_ERROR = "back/forward cache";
export const RETRY_MS = 25;
const MAX_ATTEMPTS = 20;

/**
 * Whether the page is in the back/forward cache, by the error of its closed port or by its `bye`.
 * @param {string | undefined} error
 * @param {{persisted?: unknown} | null} bye
 * @returns {boolean}
 */
export function isCached(error, bye) {
  return bye?.persisted === true || Boolean(error?.includes(CACHE_ERROR));
}

/**
 * The reason, in the words of the link. A port may close a moment before its tab does, or before the tab begins to
 * load.
 * @param {CloseEvidence} evidence
 * @returns {string | null} null: not known yet, look again
 */
export function closeReason(evidence) {
  const { tab } = evidence;
  if (!tab) return evidence.wasReplaced ? "discarded" : "closed";
  if (tab.discarded) return "discarded";
  if (tab.status === "unloaded") return "crashed";
  return evidence.isTop ? topCloseReason(evidence, tab) : subframeCloseReason(evidence, tab);
}

/**
 * @param {CloseEvidence} evidence
 * @param {Tab} tab
 * @returns {string | null}
 */
function topCloseReason(evidence, tab) {
  const next = tab.pendingUrl ?? tab.url;
  if (next === undefined || withoutFragment(next) !== withoutFragment(evidence.url)) return "navigated";
  if (tab.status === "loading" || evidence.hasSuccessor) return "reloaded";
  if (evidence.attempts < MAX_ATTEMPTS) return null;
  return evidence.saidGoodbye ? "reloaded" : "lost";
}

/**
 * @param {CloseEvidence} evidence
 * @param {Tab} tab
 * @returns {string | null}
 */
function subframeCloseReason(evidence, tab) {
  if (tab.pendingUrl) return tab.pendingUrl === tab.url ? "reloaded" : "navigated";
  if (!evidence.isTopOpen) return "navigated";
  if (tab.status === "loading") return "navigated";
  if (evidence.attempts === 0) return null; // the whole tab may be about to close
  return evidence.saidGoodbye ? "removed" : "crashed"; // a frame of another site has its own process
}

/**
 * @param {string} url
 * @returns {string} the part before the fragment
 */
function withoutFragment(url) {
  return url.split("#", 1)[0] ?? "";
}
