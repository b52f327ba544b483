// Rooms of the extension before it was loaded anew: their relays may reach the new worker, and fall silent then.

/** @typedef {import("./room.js").Room} Room */

/**
 * Whether a page's relay is of this load of the extension: an old one is in a world that nobody enters again.
 * @param {Room} room
 * @returns {Promise<boolean>}
 */
export async function isCurrent(room) {
  const target = { tabId: Number(room.place.tab), documentIds: [room.place.document] };
  const func = () => "afootRelay" in globalThis;
  try {
    const [found] = await chrome.scripting.executeScript({ target, func });
    return found?.result !== false;
  } catch {
    return true; // the document is gone already, and its port says so
  }
}
