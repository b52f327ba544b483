// SidePanel: the worker's end of the side panel. It holds the panel's ports, the badge of the toolbar button, and the
// notifications that are shown while no panel is open.

import { safeText } from "../shared/lib/format.js";
import { post } from "./port_requests.js";
import { coalesced, serialized } from "./concurrency.js";

/** @typedef {import("./messages.js").PanelState} PanelState */
/** @typedef {import("./messages.js").QuestionView} Question */
/**
 * @typedef {object} PanelScene everything that the panel shows besides calls and questions
 * @property {{state: string, why: string, url: string}} link
 * @property {boolean} userScripts
 * @property {number} plugins how many want to run
 * @property {string} id the extension's
 * @property {string[]} sites
 * @property {import("./messages.js").Tab[]} tabs
 */
/**
 * @typedef {object} SidePanelOptions
 * @property {(method: string, params: Record<string, any>) => void} send
 * @property {() => Promise<PanelScene>} scene
 * @property {Record<string, (params: Record<string, any>) => unknown>} commands
 */

export const PANEL_PORT = "afoot.panel";
const NOTIFICATION_PREFIX = "afoot.question.";
const NOTIFIED_KEY = "seen"; // in session storage: the questions that a person was notified of
const REFRESH_MS = 30;

export class SidePanel {
  /** @type {Set<chrome.runtime.Port>} */
  #ports = new Set();
  /** @type {Required<PanelState>} */
  #state = { now: 0, calls: [], questions: [], tabs: [] };
  #isAway = false;
  #options;

  /** @param {SidePanelOptions} options */
  constructor(options) {
    this.#options = options;
  }

  get isOpen() {
    return this.#ports.size > 0;
  }

  /**
   * Accept the port of a panel. Only pages of this extension have its origin (B7).
   * @param {chrome.runtime.Port} port
   */
  connect(port) {
    if (port.sender?.origin !== new URL(chrome.runtime.getURL("")).origin) return port.disconnect();
    this.#ports.add(port);
    port.onMessage.addListener((message) => {
      const command = this.#options.commands[message?.method];
      if (command) void command(message.params ?? {});
    });
    port.onDisconnect.addListener(() => {
      this.#ports.delete(port);
      if (!this.isOpen) this.reportOpen();
    });
    this.reportOpen();
    this.refresh();
    void this.#syncNotifications();
  }

  /** Tell the gateway whether a panel is open. */
  reportOpen() {
    this.#options.send("panel.watch", { on: this.isOpen });
  }

  /**
   * Take the calls and open questions that the gateway sent.
   * @param {PanelState} state
   */
  setState(state) {
    const { now = 0, calls = [], questions = [], tabs = [] } = state;
    this.#state = { now, calls, questions, tabs };
    this.#isAway = false;
    const count = this.#state.questions.length;
    void chrome.action.setBadgeText({ text: count ? String(count) : "" });
    void this.#syncNotifications();
    this.refresh();
  }

  /** The gateway is gone: an open panel shows what it showed, but nothing calls a person to it. */
  setAway() {
    this.#isAway = true;
    void chrome.action.setBadgeText({ text: "" });
    void this.#syncNotifications();
  }

  /**
   * Show the result of an answer or of a stop.
   * @param {Record<string, any>} result
   */
  showResult(result) {
    for (const port of this.#ports) post(port, "said", result);
  }

  /** Send the current state to every panel, soon. */
  refresh = coalesced(() => void this.#postState(), REFRESH_MS);

  /**
   * Open the panel for a notification that was clicked. Chrome allows that only in the click's own event.
   * @param {string} id
   * @param {number} windowId
   */
  openForQuestion(id, windowId) {
    if (!id.startsWith(NOTIFICATION_PREFIX)) return;
    const url = chrome.runtime.getURL("panel/panel.html");
    chrome.sidePanel.open({ windowId }).catch(() => chrome.tabs.create({ url }));
  }

  async #postState() {
    if (!this.isOpen) return;
    const scene = await this.#options.scene();
    const { tabs: keys, ...state } = this.#state;
    for (const port of this.#ports) post(port, "state", { ...scene, ...state, keys });
  }

  /** Show one notification for each question while no panel is open, and remove it when the question is answered. */
  #syncNotifications = serialized(async () => {
    const open = new Map(this.#isAway ? [] : this.#state.questions.map((one) => [one.id, one]));
    const { [NOTIFIED_KEY]: stored = [] } = await chrome.storage.session.get(NOTIFIED_KEY);
    const seen = /** @type {string[]} */ (stored).filter((id) => open.has(id));
    for (const id of Object.keys(await currentNotifications())) {
      const isOver =
        id.startsWith(NOTIFICATION_PREFIX) &&
        (this.isOpen || !open.has(id.slice(NOTIFICATION_PREFIX.length)));
      if (isOver) await chrome.notifications.clear(id);
    }
    const fresh = [...open.values()].filter((one) => !seen.includes(one.id));
    if (!this.isOpen) for (const one of fresh) await createNotification(one);
    await chrome.storage.session.set({ [NOTIFIED_KEY]: [...seen, ...fresh.map((one) => one.id)] });
  });
}

/** @returns {Promise<Record<string, unknown>>} */
async function currentNotifications() {
  return /** @type {Promise<any>} */ (chrome.notifications.getAll());
}

/** @param {Question} question */
async function createNotification(question) {
  const isApproval = question.kind === "approval";
  await chrome.notifications.create(NOTIFICATION_PREFIX + question.id, {
    type: "basic",
    iconUrl: chrome.runtime.getURL("icons/128.png"),
    title: safeText(isApproval ? `May ${question.tool} run?` : `${question.tool} asks`),
    message: safeText(question.message.slice(0, 300)),
    contextMessage: question.caller ? `called by ${safeText(question.caller)}` : "afoot",
    requireInteraction: true,
  });
}
