// The view of live calls: a card for each call, with the calls below it.

import { callCard } from "../components/call_card.js";
import { each, h } from "../lib/dom.js";
import { emptyMessage, statusLabel, statusOf } from "../components/status.js";
import { withQuery, route } from "../lib/router.js";
import { computed, onCleanup } from "../lib/signal.js";
import { store } from "../lib/store.js";
import { preciseNow } from "../lib/time.js";

export const title = "Live";

const POINTER_IDLE_S = 10; // a pointer that does not move for so long is ignored
const NO_CALLS = "Nothing runs now. A call shows up here as soon as an agent makes one.";
const NO_MATCH = "No call is in this state now.";
const GROUPS = ["", "waiting", "running", "stalled", "hindered", "queued", "cancelling", "ended"];

/** @returns {HTMLElement} */
export function view() {
  const groups = computed(() => Map.groupBy(store.roots(), groupOf));
  const wanted = () => route().query.state ?? "";
  const list = (/** @type {string} */ group) => (group ? (groups().get(group) ?? []) : store.roots());
  const isReady = () => store.about().ready;
  const shown = computed(() => list(wanted()));
  // Ended calls are removed only while the pointer is elsewhere. New calls come last, and so move nothing.
  const hold = (/** @type {number} */ until) => () => void (store.pointerHeldUntil = until && preciseNow() + until);
  onCleanup(hold(0));
  const chip = (/** @type {string} */ group) => {
    const isHere = () => wanted() === group;
    const count = () => list(group).length;
    const about = { href: () => withQuery({ state: group }), "aria-current": () => isHere() && "true" };
    const shown = () => !group || isHere() || count();
    return h("a.chip", { "data-kind": group || "all", shown, ...about }, h("b", count), ` ${groupLabel(group)}`);
  };
  const chips = h("nav.chips", { "aria-label": "Which calls" }, ...GROUPS.map(chip));
  const holding = { onpointermove: hold(POINTER_IDLE_S), onpointerleave: hold(0) };
  const none = emptyMessage(isReady, shown, () => [wanted() ? NO_MATCH : NO_CALLS]);
  return h("section", chips, none, h("ul.call-cards", holding, each(shown, "id", callCard)));
}

/** The group of a call: its status, or "ended". @param {Entry} entry */
const groupOf = ({ call }) => (call().state === "finished" ? "ended" : statusOf(call()));

/** @param {string} group */
const groupLabel = (group) => ({ "": "all", waiting: "waiting for you" })[group] ?? statusLabel(group);
