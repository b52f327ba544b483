// The view of live calls: an overview, filters, the list with its clocks, and the chosen call beside it on a wide window.

import { registerCallKeys } from "../components/call/call_keys.js";
import { callPane } from "../components/call/call_pane.js";
import { emptyState, loadingRows, noMatch } from "../components/empty.js";
import { liveList } from "../components/live/live_list.js";
import { liveModel } from "../components/live/model.js";
import { overview } from "../components/live/overview.js";
import { FILTERS } from "../components/live/rows.js";
import { liveToolbar } from "../components/live/toolbar.js";
import { each, h } from "../lib/dom.js";
import { joinNonEmpty } from "../lib/format.js";
import { mediaMatches } from "../lib/media.js";
import { resource } from "../lib/resource.js";
import { navigate, route, withQuery } from "../lib/router.js";
import { computed, effect, signal } from "../lib/signal.js";
import { store } from "../lib/store.js";

/** @typedef {import("../components/live/rows.js").LiveModel} LiveModel */
/** @typedef {import("../components/live/rows.js").LiveFilter} LiveFilter */

export const title = "Live";
export const isWide = true;

const REFRESH_S = 5;
const HAS_PANE = "(min-width: 1440px)";
const ENDED_PATH = "/api/calls?state=finished&limit=200"; // also those that ended before this page was opened
const IDLE = "Nothing runs now. A call appears here the moment an agent makes one.";

/** @returns {HTMLElement} */
export function view() {
  const found = liveModel();
  const { model, filter } = found;
  const { value: activity } = resource(() => "/api/activity", { everyS: REFRESH_S });
  const { value: ended } = resource(() => ENDED_PATH);
  effect(() => ended() && store.addEnded(ended().calls));
  const hasEntries = signal(false); // once there was a call, the first view does not come back
  effect(() => {
    if (model().counts.all) hasEntries.set(true);
  });
  const hasRun = () => hasEntries() || ended()?.calls.length !== 0;
  const { node, chosen, hasPane } = chooser(found);
  const pane = () => (hasPane() && model().counts.all ? ["pane"] : []);
  const isKnown = () => store.about().ready;
  const isEmpty = () => isKnown() && ended() && !model().rows.length;
  const words = h("p.empty", { shown: isEmpty }, () => h("span", ...noRows(filter())));
  const list = h("div.live-main", node, loadingRows(isKnown, 12), words);
  const counts = () => model().counts;
  const whole = () =>
    h(
      "div.live",
      h("div.live-top", overview(counts, activity), liveToolbar(model)),
      h(
        "div.live-split",
        list,
        each(pane, String, () => callPane(chosen)),
      ),
    );
  const kind = () => (isKnown() && !hasRun() ? ["first"] : ["calls"]);
  return h(
    "div.live-view",
    each(kind, String, (one) => (one === "first" ? emptyState() : whole())),
  );
}

/**
 * The list, and the call that a person chose in it: with a pane, one is always chosen.
 * @param {ReturnType<typeof liveModel>} found
 */
function chooser(found) {
  const { model } = found;
  const hasPane = mediaMatches(HAS_PANE);
  const first = firstCall(model);
  const chosen = computed(() => route().query.call || first());
  const active = signal(""); // the call that the keys came to
  const selected = computed(() => (hasPane() ? chosen() : active()));
  const isSelected = (/** @type {string} */ id) => id === selected();
  const select = (/** @type {MouseEvent} */ event, /** @type {string} */ id) => {
    if (!hasPane() || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault(); // the call opens beside the list, not as a page
    navigate(withQuery({ call: id }), { replace: true });
  };
  const { node, list, activeRow } = liveList(found, { isSelected, select });
  effect(() => {
    const row = list.active() ? activeRow() : undefined;
    active.set(row?.kind === "call" && !row.isRemote ? row.entry.id : "");
  });
  effect(() => {
    const id = active(); // the pane follows the keys
    if (id && hasPane() && id !== route.peek().query.call) navigate(withQuery({ call: id }), { replace: true });
  });
  registerCallKeys(() => store.get(selected()));
  return { node, chosen, hasPane };
}

/** The first call of the list, which stays the same until it is forgotten. @param {() => LiveModel} model */
function firstCall(model) {
  const first = signal("");
  effect(() => {
    if (store.get(first.peek())) return void model();
    const row = model().rows.find(({ kind }) => kind === "call");
    first.set(row?.kind === "call" ? row.entry.id : "");
  });
  return first;
}

/** Why there are no rows. @param {LiveFilter} filter */
function noRows({ state, q, server }) {
  const words = joinNonEmpty(q && `“${q}”`, state && `the state ${FILTERS[state]?.toLowerCase() ?? state}`, server && `the server ${server}`); // prettier-ignore
  const clear = withQuery({ state: null, q: null, server: null });
  return words ? noMatch(words, clear) : [IDLE];
}
