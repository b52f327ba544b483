// What runs now: every call as a bubble, with the calls below it.

import { bubble, groupOf, nameOf } from "../bubble.js";
import { each, h } from "../dom.js";
import { having, route } from "../router.js";
import { computed, ending } from "../signal.js";
import { store } from "../store.js";
import { exactly } from "../time.js";

export const title = "Live";

const STILL_S = 10; // a pointer that has not moved for so long points at nothing
const GROUPS = ["", "waiting", "running", "stalled", "queued", "cancelling", "ended"];

/** @typedef {import("../store.js").Entry} Entry */

/** @returns {HTMLElement} */
export function view() {
  const groups = computed(() => Map.groupBy(store.roots(), groupOf));
  const wanted = () => route().query.state ?? "";
  const list = (/** @type {string} */ group) => (group ? (groups().get(group) ?? []) : store.roots());
  const shown = computed(() => list(wanted()));
  // What has ended goes only when nobody points here; what arrives comes last, and so moves nothing.
  const hold = (/** @type {number} */ until) => () => void (store.heldUntil = until && exactly() + until);
  const hands = { onpointermove: hold(STILL_S), onpointerleave: hold(0) };
  ending(hold(0));
  return h(
    "section",
    null,
    h(
      "nav",
      { class: "chips", "aria-label": "Which calls" },
      ...GROUPS.map((group) => chip(group, wanted, list)),
    ),
    h("p", { class: "empty", hidden: () => shown().length > 0 }, () => nothing(wanted())),
    h(
      "ul",
      { class: "bubbles", ...hands },
      each(shown, (entry) => entry.id, bubble),
    ),
  );
}

/** @param {string} group @param {() => string} wanted @param {(group: string) => Entry[]} list */
function chip(group, wanted, list) {
  const count = () => list(group).length;
  return h(
    "a",
    {
      class: "chip",
      "data-kind": group || "all",
      href: () => having({ state: group }),
      hidden: () => group !== "" && wanted() !== group && !count(),
      "aria-current": () => (wanted() === group ? "true" : null),
    },
    h("b", null, () => String(count())),
    ` ${group ? nameOf(group) : "all"}`,
  );
}

/** @param {string} group */
function nothing(group) {
  if (!store.about().ready) return "Looking …";
  if (group) return "No call is in this state now.";
  return "Nothing runs now. A call shows up here as soon as an agent makes one.";
}
