// liveModel: the rows of the live list, made again when calls change, but not while the pointer would see them move.

import { route } from "../../lib/router.js";
import { effect, onCleanup, signal } from "../../lib/signal.js";
import { store } from "../../lib/store.js";
import { now, preciseNow, setTimer } from "../../lib/time.js";
import { groupsOf, liveRows } from "./rows.js";

/** @typedef {import("./rows.js").LiveFilter} LiveFilter */
/** @typedef {import("./rows.js").HeldGroups} HeldGroups */

const POINTER_IDLE_S = 10; // a pointer that does not move for so long is ignored
/** The time between two times that the rows are made, by the number of calls: of a few at once. @type {[calls: number, ms: number][]} */
const PAUSES_MS = [
  [500, 250],
  [50, 100], // calls that come and go by dozens would make every frame a late one
];

/** @typedef {ReturnType<typeof liveModel>} Model */

export function liveModel() {
  const filter = signal(filterOf(route.peek()));
  const held = signal(/** @type {HeldGroups | null} */ (null));
  const make = () => liveRows(store.roots.peek(), filter(), preciseNow(), held());
  const model = signal(make());
  effect(() => {
    const next = filterOf(route());
    const before = filter.peek();
    if (keyOf(next) === keyOf(before)) return;
    if (listKeyOf(next) !== listKeyOf(before)) held.set(null); // all rows are others now
    filter.set(next);
  });
  effect(() => model.set(make()));
  watchChanges(() => model.set(make()), () => model.peek().counts.all); // prettier-ignore
  effect(() => {
    if (held() && now() > store.pointerHeldUntil) held.set(null);
  });
  onCleanup(() => void (store.pointerHeldUntil = 0));

  /** @param {PointerEvent} event */
  const onpointermove = ({ pointerType }) => {
    if (pointerType === "touch") return;
    store.pointerHeldUntil = preciseNow() + POINTER_IDLE_S;
    if (!held.peek()) held.set(groupsOf(store.roots.peek(), filter.peek(), preciseNow()));
  };
  const onpointerleave = () => {
    store.pointerHeldUntil = 0;
    held.set(null);
  };
  return { model, filter, holding: { onpointermove, onpointerleave } };
}

/**
 * Make the rows again when calls have changed, and once a second, as silence makes a call stalled.
 * @param {() => void} update
 * @param {() => number} size
 */
function watchChanges(update, size) {
  let stop = /** @type {(() => void) | null} */ (null);
  effect(() => {
    store.changed();
    now();
    const pause = PAUSES_MS.find(([calls]) => size() >= calls)?.[1];
    if (!pause) return update();
    stop ??= setTimer(pause, () => {
      stop = null;
      update();
    });
  });
  onCleanup(() => stop?.());
}

/** The filter in the address. @param {Route} route @returns {LiveFilter} */
function filterOf({ query }) {
  const { state = "", q = "", server = "", group = "state", toggled = "" } = query;
  return { state, q, server, group, toggled: new Set(toggled.split(",").filter(Boolean).map(decodeURIComponent)) };
}

/** @param {LiveFilter} filter */
const keyOf = (filter) => [listKeyOf(filter), ...filter.toggled].join("\n");

/** @param {LiveFilter} filter */
const listKeyOf = ({ state, q, server, group }) => [state, q, server, group].join("\n");
