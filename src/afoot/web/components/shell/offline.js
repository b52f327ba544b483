// offlineLine: says since when the gateway cannot be reached. Meanwhile <html data-offline> freezes what moves, and
// buttons that would ask the gateway do nothing (controls.js).

import { session } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { online } from "../../lib/event_feed.js";
import { formatClock, safeText } from "../../lib/format.js";
import { effect, signal } from "../../lib/signal.js";
import { store } from "../../lib/store.js";
import { preciseNow } from "../../lib/time.js";

/** @param {HTMLElement} root */
export function offlineLine(root) {
  const since = signal(/** @type {number | null} */ (null));
  effect(() => {
    const isOffline = !online() && session() !== null;
    since.set(isOffline ? (since.peek() ?? preciseNow()) : null);
    root.toggleAttribute("data-offline", isOffline);
  });
  const words = () => {
    const at = since();
    if (at !== null) return `Not connected since ${formatClock(at)}, trying again`;
    const { degraded } = store.about();
    return degraded && `The history cannot be written: ${safeText(degraded)}`;
  };
  return h("p.status-line", { role: "status", shown: words, "data-offline": () => since() !== null }, words);
}
