// callModel: all that the pane and the page of a call show: its full view, its story as rows, its clocks.

import { storyFeed } from "../../lib/call/story_feed.js";
import { readClocks } from "../../lib/call/clock_reading.js";
import { callFromView } from "../../lib/fold.js";
import { resource } from "../../lib/resource.js";
import { callPath } from "../../lib/router.js";
import { computed, effect, signal } from "../../lib/signal.js";
import { silenceOver } from "../../lib/call/silence.js";
import { treeRows } from "../../lib/call/spans.js";
import { isLive, stateOf } from "../../lib/state.js";
import { store } from "../../lib/store.js";
import { tick } from "../../lib/time.js";

/** @typedef {import("../../lib/call/spans.js").Row} Row */
/** @typedef {import("../../lib/call/silence.js").Silence} Silence */
/** @typedef {ReturnType<typeof callModel>} CallModel */

const HEARD_GAP_S = 0.5; // signs of life that are closer to each other are one in the drawing of the silence
const MAX_HEARD = 20_000;
const FEW_CALLS = 50; // of a tree that is drawn ten times a second

/** @param {string} id */
export function callModel(id) {
  const entry = () => {
    store.about(); // after a snapshot it may have gone
    if (!store.get(id)) store.roots(); // it may be added later
    return store.get(id);
  };
  const { value, problem } = resource(() => {
    entry()?.call();
    return `/api${callPath(id)}`;
  });
  const { story, problem: storyProblem } = storyFeed(id);
  const view = () => /** @type {CallView | null} */ (value());
  const first = computed(() => (view() ? callFromView(/** @type {CallView} */ (view())) : null));
  /** The newest state of the call. The object is the same while it lives, so this is no computed value. */
  const call = () => entry()?.reading() ?? first();
  const isRunning = computed(() => call()?.state !== undefined && call()?.state !== "finished");
  const reading = () => {
    const known = call();
    return known && isRunning() ? readClocks(known, tick()) : null;
  };
  // The drawings move on when a figure of the clocks does: ten times a second at first, then with each whole second.
  const second = signal(0);
  effect(() => {
    const age = tick() - (store.get(id)?.call.peek().opened ?? 0);
    const isYoung = age < 10 && (story()?.calls.length ?? 0) <= FEW_CALLS;
    second.set(isYoung ? age : Math.floor(age));
  });
  const rows = computed(() => {
    const told = story();
    if (!told) return /** @type {Row[]} */ ([]);
    const lives = told.calls.some(({ finished }) => finished === null);
    if (lives) second();
    return treeRows(told, tick.peek());
  });
  const heard = heardSigns(call);
  const silence = computed(() => {
    const [top] = rows();
    return top ? silenceOver(top, heard) : null;
  });
  const state = () => {
    const known = call();
    return known ? stateOf(known, reading()) : null;
  };
  return {
    ...{ id, entry, view, problem, story, storyProblem, call, reading, rows, silence, state },
    isLive: () => isLive(state() ?? "queued"),
  };
}

/** The signs of life that this page has seen: the history has no heartbeats. @param {() => Call | null} call */
function heardSigns(call) {
  /** @type {number[]} */ const heard = [];
  const newest = signal(0);
  effect(() => newest.set(call()?.clocks.heard ?? 0));
  effect(() => {
    const at = newest();
    if (at && at - (heard.at(-1) ?? 0) >= HEARD_GAP_S && heard.length < MAX_HEARD) heard.push(at);
  });
  return heard;
}
