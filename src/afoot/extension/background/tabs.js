// The tabs of this browser, as far as it lets us see them, and why nothing can run in one.

/** @typedef {import("../messages.js").Tab} Tab */

/**
 * Every tab.
 * @param {Set<string>} inhabited tabs with a room
 * @returns {Promise<Tab[]>}
 */
export async function listTabs(inhabited) {
  const [tabs, front] = await Promise.all([
    chrome.tabs.query({}),
    chrome.windows.getLastFocused().catch(() => null),
  ]);
  const window = front?.focused ? front.id : undefined;
  return tabs.filter((tab) => tab.id !== undefined).map((tab) => viewOf(tab, window, inhabited));
}

/**
 * A tab as the link tells of it.
 * @param {chrome.tabs.Tab} tab
 * @param {number | undefined} front the window that has the focus
 * @param {Set<string>} inhabited
 * @returns {Tab}
 */
export function viewOf(tab, front, inhabited) {
  const id = String(tab.id);
  return {
    id,
    window: String(tab.windowId),
    title: (tab.url ? (tab.title ?? "") : "").slice(0, 500),
    url: (tab.url ?? "").slice(0, 4000),
    active: tab.active,
    focused: tab.windowId === front,
    frozen: tab.frozen,
    discarded: tab.discarded,
    why: inhabited.has(id) ? "" : whyNot(tab),
  };
}

/**
 * Why nothing can run in a tab without a room. The address of a site that is not allowed stays unseen.
 * @param {Pick<chrome.tabs.Tab, "url" | "status" | "discarded">} tab
 * @returns {string}
 */
export function whyNot(tab) {
  if (!tab.url) return "ungranted";
  if (!/^https?:/.test(tab.url)) return "closed to extensions";
  if (tab.discarded) return "reload";
  return tab.status === "loading" ? "" : "reload";
}
