// Notifications of the system while no tab is visible, and announcements for screen readers.

import { h } from "../../lib/dom.js";
import { isLeading } from "../../lib/event_feed.js";
import { safeText } from "../../lib/format.js";
import { navigate, route } from "../../lib/router.js";
import { effect, signal } from "../../lib/signal.js";
import { store } from "../../lib/store.js";
import { setTimer, preciseNow } from "../../lib/time.js";
import { icon } from "../marks/icon.js";

const ANNOUNCE_PAUSE_S = 5; // between two announcements
const VISIBLE_LOCK = "afoot.seen"; // a shared lock of all visible tabs
const permission = signal(typeof Notification === "undefined" ? "denied" : Notification.permission);

/** The button that asks for the permission to notify; it is hidden once the person has decided. */
export function permissionButton() {
  const onclick = async () => permission.set(await Notification.requestPermission());
  const about = { type: "button", shown: () => permission() === "default", onclick };
  return h("button.quiet", about, icon("bell", "s"), "Notify me");
}

/** Show one notification for each question, from one tab, while all are hidden; an answer removes it. */
export function notifyQuestions() {
  /** @type {Map<string, Notification | null>} */ const shown = new Map();
  holdVisibleLock();
  effect(() => {
    const open = new Map(store.questions().map((one) => [one.id, one]));
    for (const [id, notification] of shown) {
      if (open.has(id)) continue;
      notification?.close();
      shown.delete(id);
    }
    for (const question of open.values()) {
      if (shown.has(question.id)) continue;
      shown.set(question.id, null);
      if (permission() === "granted" && isLeading()) void showNotification(question, shown);
    }
  });
}

/** @param {OpenQuestion} question @param {Map<string, Notification | null>} shown */
async function showNotification({ id, tool, message }, shown) {
  const { held = [] } = await navigator.locks.query();
  if (!shown.has(id) || held.some(({ name }) => name === VISIBLE_LOCK)) return;
  const notification = new Notification(`${safeText(tool, 80)} waits for you`, {
    body: safeText(message, 200),
    tag: id,
  });
  notification.onclick = () => {
    focus();
    navigate(`/inbox?question=${encodeURIComponent(id)}`);
    notification.close();
  };
  shown.set(id, notification);
}

/** Hold the lock while this tab is visible. */
function holdVisibleLock() {
  let release = () => {};
  const update = () => {
    release();
    const until = new Promise((resolve) => (release = () => resolve(null)));
    if (!document.hidden) void navigator.locks.request(VISIBLE_LOCK, { mode: "shared" }, () => until);
  };
  addEventListener("visibilitychange", update);
  update();
}

/**
 * Announce questions and ends in a live region, politely and not too often.
 * @param {HTMLElement} region
 */
export function announceEvents(region) {
  /** @type {Set<string>} */ const opened = new Set();
  /** @type {string[]} */ let texts = [];
  let lastAt = 0;
  effect(() => void (route().view === "call" && opened.add(route().params.id ?? "")));
  const next = () => {
    region.textContent = texts.length > 1 ? `${texts.at(-1)}, and ${texts.length - 1} more` : texts[0];
    texts = [];
    lastAt = preciseNow();
  };
  store.listen((kind, { call }) => {
    const { id, tool, outcome } = call.peek();
    if (kind === "finished" && !opened.has(id)) return;
    texts.push(
      `${safeText(tool, 80)} ${kind === "asked" ? "waits for you" : outcome === "ok" ? "finished" : "failed"}`,
    );
    if (texts.length === 1) setTimer(Math.max(0, lastAt + ANNOUNCE_PAUSE_S - preciseNow()) * 1000, next);
  });
}
