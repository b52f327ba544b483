// panelState: what the worker told last, as signals; and which decisions of the person are on their way.

import { callFromView } from "../shared/lib/fold.js";
import { inTreeOrder } from "../shared/lib/call/call_tree.js";
import { formatTime } from "../shared/lib/format.js";
import { batch, computed, signal } from "../shared/lib/signal.js";
import { preciseNow, startClock, syncClock } from "../shared/lib/time.js";

/** @typedef {import("../background/side_panel.js").PanelScene} Scene */
/** @typedef {import("../background/messages.js").PanelTab} PanelTab */
/** @typedef {import("../shared/lib/call/call_tree.js").TreeRow} TreeRow */
/** @typedef {Scene & {calls: CallView[], questions: QuestionView[], keys: PanelTab[], now: number}} PanelState */
/** @typedef {(method: string, params?: Record<string, any>) => void} SendToWorker */

/** @type {PanelState} */
const NOTHING = {
  link: { state: "connecting", why: "", url: "" },
  userScripts: true,
  plugins: 0,
  id: "",
  sites: [],
  tabs: [],
  calls: [],
  questions: [],
  keys: [],
  now: 0,
};

/** The state of the panel; its clock stands still while the gateway cannot be reached. */
export function panelState() {
  const state = signal(NOTHING);
  const lostAt = signal(0);
  const decisions = openDecisions();
  const isOnline = () => state().link.state === "on";
  startClock(() => state.peek().link.state === "on");
  return {
    state,
    decisions,
    isOnline,
    /** Since when the gateway is not reached; empty while it is. */
    offline: () =>
      isOnline() || !lostAt() ? "" : `Not connected since ${formatTime(lostAt())}, trying again.`,
    live: computed(() => rowsOf(state().calls.filter((one) => one.finished === null))),
    ended: computed(() =>
      state()
        .calls.filter((one) => one.finished !== null)
        .toSorted((one, other) => Number(other.finished) - Number(one.finished))
        .map((view) => ({ call: callFromView(view), depth: 0, questions: [] })),
    ),
    /** Take what the worker told. @param {PanelState} told */
    take(told) {
      const wasOnline = state.peek().link.state === "on";
      const isBack = told.link.state === "on";
      batch(() => {
        if (told.now) syncClock(told.now);
        if (wasOnline && !isBack) lostAt.set(preciseNow());
        if (!wasOnline && isBack) decisions.clear(); // one may have been lost with the old link
        state.set(told);
      });
      document.body.dataset.state = told.link.state;
      document.documentElement.toggleAttribute("data-offline", !isBack);
    },
  };
}

/** Calls as rows; a call that waits is told of by its question. @param {CallView[]} views @returns {TreeRow[]} */
const rowsOf = (views) => inTreeOrder(views).filter(({ questions }) => questions.length === 0);

/** Decisions that were sent, and why the last one of each did not count. */
function openDecisions() {
  /** @type {Signal<Map<string, string | null>>} */ const all = signal(new Map());
  const set = (/** @type {string} */ id, /** @type {string | null} */ error) =>
    all.set(new Map([...all.peek(), [id, error]]));
  return {
    begin: (/** @type {string} */ id) => set(id, null),
    /** Take the outcome of a decision. @param {{about: string, error?: string}} outcome */
    take: ({ about, error = "" }) => error && set(about, error),
    clear: () => all.set(new Map([...all.peek()].filter(([, error]) => error !== null))),
    isSending: (/** @type {string} */ id) => all().get(id) === null,
    error: (/** @type {string} */ id) => all().get(id) ?? "",
  };
}
