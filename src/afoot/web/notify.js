// Notices of the system about open questions: asked for by a button, only while nobody looks, and withdrawn.

import { h } from "./dom.js";
import { leads } from "./feed.js";
import { visible } from "./parts.js";
import { go } from "./router.js";
import { effect, signal } from "./signal.js";
import { store } from "./store.js";

const may = signal(typeof Notification === "undefined" ? "denied" : Notification.permission);

/** The button that asks for leave; it goes when it was answered. */
export function bell() {
  const ask = async () => may.set(await Notification.requestPermission());
  return h("button", { class: "quiet", hidden: () => may() !== "default", onclick: ask }, "Notify me");
}

/** Tell of each question once, in one tab, while the page is hidden; an answer takes the notice back. */
export function notify() {
  /** @type {Map<string, Notification | null>} */ const told = new Map();
  effect(() => {
    const open = new Map(store.questions().map((one) => [one.id, one]));
    for (const [id, notice] of told) if (!open.has(id)) (notice?.close(), told.delete(id));
    for (const [id, question] of open) {
      if (told.has(id)) continue;
      const isWanted = may() === "granted" && leads() && document.hidden;
      told.set(id, isWanted ? tell(id, question.tool, question.message) : null);
    }
  });
}

/** @param {string} id @param {string} tool @param {string} message */
function tell(id, tool, message) {
  const notice = new Notification(`${visible(tool, 80)} waits for you`, {
    body: visible(message, 200),
    tag: id,
  });
  notice.onclick = () => (focus(), go("/inbox"), notice.close());
  return notice;
}
