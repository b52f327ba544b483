// What runs now: every call as a bubble, with the calls below it.

import { bubble } from "../bubble.js";
import { each, h } from "../dom.js";
import { empty, kindOf, wordOf } from "../parts.js";
import { having, route } from "../router.js";
import { computed, ending } from "../signal.js";
import { store } from "../store.js";
import { exactly } from "../time.js";

export const title = "Live";

const STILL_S = 10; // a pointer that has not moved for so long points at nothing
const QUIET = "Nothing runs now. A call shows up here as soon as an agent makes one.";
const UNUSED = "No call is in this state now.";
const GROUPS = ["", "waiting", "running", "stalled", "hindered", "queued", "cancelling", "ended"];

/** @returns {HTMLElement} */
export function view() {
  const groups = computed(() => Map.groupBy(store.roots(), groupOf));
  const wanted = () => route().query.state ?? "";
  const list = (/** @type {string} */ group) => (group ? (groups().get(group) ?? []) : store.roots());
  const isReady = () => store.about().ready;
  const shown = computed(() => list(wanted()));
  // What has ended goes only when nobody points here; what arrives comes last, and so moves nothing.
  const hold = (/** @type {number} */ until) => () => void (store.heldUntil = until && exactly() + until);
  ending(hold(0));
  const chip = (/** @type {string} */ group) => {
    const [isHere, count] = [() => wanted() === group, () => list(group).length];
    const about = { href: () => having({ state: group }), "aria-current": () => isHere() && "true" };
    const shown = () => !group || isHere() || count();
    return h("a.chip", { "data-kind": group || "all", shown, ...about }, h("b", count), ` ${nameOf(group)}`);
  };
  const chips = h("nav.chips", { "aria-label": "Which calls" }, ...GROUPS.map(chip));
  const holding = { onpointermove: hold(STILL_S), onpointerleave: hold(0) };
  const none = empty(isReady, shown, () => [wanted() ? UNUSED : QUIET]);
  return h("section", chips, none, h("ul.bubbles", holding, each(shown, "id", bubble)));
}

/** What a call does, or that it has ended. @param {Entry} entry */
const groupOf = ({ call }) => (call().state === "finished" ? "ended" : kindOf(call()));

/** @param {string} group */
const nameOf = (group) => ({ "": "all", waiting: "waiting for you" })[group] ?? wordOf(group);
