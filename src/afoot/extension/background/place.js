// Which room a port stands for: known from the browser's word about its sender, never from a message (B7).

/**
 * @typedef {object} Place
 * @property {string} id the same after a restart of the worker
 * @property {string} tab
 * @property {string} frame
 * @property {string} document
 * @property {string} origin the frame's
 * @property {string} top the tab's
 * @property {string} url
 * @property {string} source
 */

/**
 * The place of a sender; null where no room can be.
 * @param {chrome.runtime.MessageSender | undefined} sender
 * @param {string} source
 * @returns {Place | null}
 */
export function placeOf(sender, source) {
  const tab = sender?.tab?.id;
  if (tab === undefined || tab < 0 || !sender?.documentId || sender.frameId === undefined) return null;
  if (sender.documentLifecycle === "prerender") return null; // nobody has been there yet
  const origin = sender.origin ?? "null";
  const base = `${tab}.${sender.frameId}.${sender.documentId}`;
  return {
    id: source === "page" ? base : `${base}.${source}`,
    tab: String(tab),
    frame: String(sender.frameId),
    document: sender.documentId,
    origin,
    top: sender.frameId === 0 ? origin : originOf(sender.tab?.url),
    url: sender.url ?? "",
    source,
  };
}

/**
 * The site that a sender belongs to: a document without an origin of its own belongs to its address or its tab.
 * @param {chrome.runtime.MessageSender | undefined} sender
 * @returns {string} empty where it cannot be known
 */
export function siteOf(sender) {
  const all = [sender?.origin ?? "", originOf(sender?.url), originOf(sender?.tab?.url)];
  return all.find((one) => one && one !== "null") ?? "";
}

/**
 * A page's word about its address, where it fits its origin.
 * @param {Place} place
 * @param {unknown} said
 * @returns {string}
 */
export function addressOf(place, said) {
  const isOwn = typeof said === "string" && originOf(said) === place.origin;
  return isOwn ? said.slice(0, 4000) : place.url.slice(0, 4000);
}

/**
 * The origin of an address; empty where it has none that can be known.
 * @param {string | undefined} url
 * @returns {string}
 */
export function originOf(url) {
  if (!url || !URL.canParse(url)) return "";
  return new URL(url).origin;
}
