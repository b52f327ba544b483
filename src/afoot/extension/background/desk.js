// Where a person sees and decides: the side panel's ports, the badge, and notifications when no panel is open.

import { readable } from "../panel/words.js";
import { post } from "./service.js";
import { gathered, inTurn } from "./turn.js";

/** @typedef {import("../messages.js").PanelState} PanelState */
/** @typedef {import("../messages.js").QuestionView} Question */
/**
 * @typedef {object} Scene what the panel shows besides calls and questions
 * @property {{state: string, why: string, url: string}} link
 * @property {boolean} userScripts
 * @property {number} plugins how many want to run
 * @property {string} id the extension's
 * @property {string[]} sites
 * @property {import("../messages.js").Tab[]} tabs
 */
/**
 * @typedef {object} Outside
 * @property {(method: string, params: Record<string, any>) => void} say
 * @property {() => Promise<Scene>} scene
 * @property {Record<string, (params: Record<string, any>) => unknown>} commands
 */

export const PANEL = "afoot.panel";
const PREFIX = "afoot.question.";
const SEEN = "seen"; // in the session's storage: questions that a person was told of
const GATHER_MS = 30;

/** The panel's side of the worker. */
export class Desk {
  /** @type {Set<chrome.runtime.Port>} */
  #ports = new Set();
  /** @type {Required<PanelState>} */
  #told = { calls: [], questions: [], tabs: [] };
  #at = 0; // when that was told
  #outside;

  /** @param {Outside} outside */
  constructor(outside) {
    this.#outside = outside;
  }

  get isOpen() {
    return this.#ports.size > 0;
  }

  /**
   * A panel was opened. Only pages of this extension have its origin (B7).
   * @param {chrome.runtime.Port} port
   */
  join(port) {
    if (port.sender?.origin !== new URL(chrome.runtime.getURL("")).origin) return port.disconnect();
    this.#ports.add(port);
    port.onMessage.addListener((message) => {
      const command = this.#outside.commands[message?.method];
      if (command) void command(message.params ?? {});
    });
    port.onDisconnect.addListener(() => {
      this.#ports.delete(port);
      if (!this.isOpen) this.watch();
    });
    this.watch();
    this.show();
    void this.#notify();
  }

  /** Tell the gateway whether somebody looks. */
  watch() {
    this.#outside.say("panel.watch", { on: this.isOpen });
  }

  /**
   * What the gateway says of calls and questions.
   * @param {PanelState} state
   */
  tell(state) {
    this.#told = { calls: state.calls ?? [], questions: state.questions ?? [], tabs: state.tabs ?? [] };
    this.#at = Date.now();
    const count = this.#told.questions.length;
    void chrome.action.setBadgeText({ text: count ? String(count) : "" });
    void this.#notify();
    this.show();
  }

  /**
   * What came of an answer or a stop.
   * @param {Record<string, any>} said
   */
  said(said) {
    for (const port of this.#ports) post(port, "said", said);
  }

  /** Show every panel how things are. */
  show = gathered(() => void this.#show(), GATHER_MS);

  /**
   * A notification was clicked: whoever did that wants to see the question. A side panel opens only at once.
   * @param {string} id
   * @param {number} windowId
   */
  open(id, windowId) {
    if (!id.startsWith(PREFIX)) return;
    const url = chrome.runtime.getURL("panel.html");
    chrome.sidePanel.open({ windowId }).catch(() => chrome.tabs.create({ url }));
  }

  async #show() {
    if (!this.isOpen) return;
    const scene = await this.#outside.scene();
    const { calls, questions, tabs: keys } = this.#told;
    for (const port of this.#ports) post(port, "state", { ...scene, calls, questions, keys, at: this.#at });
  }

  /** One notification a question, while no panel is open; taken back when it is answered. */
  #notify = inTurn(async () => {
    const open = new Map(this.#told.questions.map((one) => [one.id, one]));
    const { [SEEN]: stored = [] } = await chrome.storage.session.get(SEEN);
    const seen = /** @type {string[]} */ (stored).filter((id) => open.has(id));
    for (const id of Object.keys(await notifications())) {
      const isOver = id.startsWith(PREFIX) && (this.isOpen || !open.has(id.slice(PREFIX.length)));
      if (isOver) await chrome.notifications.clear(id);
    }
    const fresh = [...open.values()].filter((one) => !seen.includes(one.id));
    if (!this.isOpen) for (const one of fresh) await announce(one);
    await chrome.storage.session.set({ [SEEN]: [...seen, ...fresh.map((one) => one.id)] });
  });
}

/** @returns {Promise<Record<string, unknown>>} */
async function notifications() {
  return /** @type {Promise<any>} */ (chrome.notifications.getAll());
}

/** @param {Question} question */
async function announce(question) {
  const isApproval = question.kind === "approval";
  await chrome.notifications.create(PREFIX + question.id, {
    type: "basic",
    iconUrl: chrome.runtime.getURL("icons/128.png"),
    title: readable(isApproval ? `May ${question.tool} run?` : `${question.tool} asks`),
    message: readable(question.message.slice(0, 300)),
    contextMessage: question.caller ? `called by ${readable(question.caller)}` : "afoot",
    requireInteraction: true,
  });
}
