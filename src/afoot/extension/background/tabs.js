// listTabs: the tabs of this browser, and why no tool can run in some of them.

/** @typedef {import("./messages.js").Tab} Tab */

/**
 * List every tab.
 * @param {Set<string>} withContext ids of the tabs that have a context
 * @returns {Promise<Tab[]>}
 */
export async function listTabs(withContext) {
  const [tabs, front] = await Promise.all([
    chrome.tabs.query({}),
    chrome.windows.getLastFocused().catch(() => null),
  ]);
  const window = front?.focused ? front.id : undefined;
  return tabs.filter((tab) => tab.id !== undefined).map((tab) => tabView(tab, window, withContext));
}

/**
 * A tab as the link describes it.
 * @param {chrome.tabs.Tab} tab
 * @param {number | undefined} front the window that has the focus
 * @param {Set<string>} withContext
 * @returns {Tab}
 */
export function tabView(tab, front, withContext) {
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
    why: withContext.has(id) ? "" : unavailableReason(tab),
  };
}

/**
 * Why no tool can run in a tab that has no context. The URL of a site that is not allowed is hidden from extensions.
 * @param {Pick<chrome.tabs.Tab, "url" | "status" | "discarded">} tab
 * @returns {string}
 */
export function unavailableReason(tab) {
  if (!tab.url) return "ungranted";
  if (!/^https?:/.test(tab.url)) return "closed to extensions";
  if (tab.discarded) return "reload";
  return tab.status === "loading" ? "" : "reload";
}
