// What is told to somebody who does not look: aloud, and by the system.

import { h } from "./dom.js";
import { leads } from "./feed.js";
import { visible } from "./parts.js";
import { go, route } from "./router.js";
import { effect, signal } from "./signal.js";
import { store } from "./store.js";
import { after, exactly } from "./time.js";

const PAUSE_S = 5; // between two things that are said aloud
const SEEN = "afoot.seen"; // a lock that every tab shares which somebody can see
const may = signal(typeof Notification === "undefined" ? "denied" : Notification.permission);

/** The button that asks whether the system may tell; it goes when it was answered. */
export function bell() {
  const onclick = async () => may.set(await Notification.requestPermission());
  return h("button.quiet", { shown: () => may() === "default", onclick }, "Notify me");
}

/** Tell of each question once, by one tab, while all are hidden; an answer takes the notice back. */
export function notify() {
  /** @type {Map<string, Notification | null>} */ const told = new Map();
  hold();
  effect(() => {
    const open = new Map(store.questions().map((one) => [one.id, one]));
    for (const [id, notice] of told) if (!open.has(id)) (notice?.close(), told.delete(id));
    for (const question of open.values()) {
      if (told.has(question.id)) continue;
      told.set(question.id, null);
      if (may() === "granted" && leads()) void tell(question, told);
    }
  });
}

/** @param {OpenQuestion} question @param {Map<string, Notification | null>} told */
async function tell({ id, tool, message }, told) {
  const { held = [] } = await navigator.locks.query();
  if (!told.has(id) || held.some(({ name }) => name === SEEN)) return;
  const notice = new Notification(`${visible(tool, 80)} waits for you`, { body: visible(message, 200), tag: id });
  notice.onclick = () => (focus(), go("/inbox"), notice.close());
  told.set(id, notice);
}

/** Let all tabs know that somebody sees this one. */
function hold() {
  let leave = () => {};
  const look = () => {
    leave();
    const until = new Promise((resolve) => (leave = () => resolve(null)));
    if (!document.hidden) void navigator.locks.request(SEEN, { mode: "shared" }, () => until);
  };
  addEventListener("visibilitychange", look);
  look();
}

/** Say what matters, politely and not too often: who listens is at work on something else. @param {HTMLElement} region */
export function speak(region) {
  /** @type {Set<string>} */ const opened = new Set();
  /** @type {string[]} */ let said = [];
  let last = 0;
  effect(() => void (route().view === "call" && opened.add(route().params.id ?? "")));
  const next = () => {
    region.textContent = said.length > 1 ? `${said.at(-1)}, and ${said.length - 1} more` : said[0];
    [said, last] = [[], exactly()];
  };
  store.listen((kind, { call }) => {
    const { id, tool, outcome } = call.peek();
    if (kind === "finished" && !opened.has(id)) return;
    said.push(`${visible(tool, 80)} ${kind === "asked" ? "waits for you" : outcome === "ok" ? "finished" : "failed"}`);
    if (said.length === 1) after(Math.max(0, last + PAUSE_S - exactly()) * 1000, next);
  });
}
