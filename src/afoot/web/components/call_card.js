// callCard: a live call with its state, progress and caller, and the calls below it.

import { post } from "../lib/api.js";
import { actionButton } from "./controls.js";
import { each, h } from "../lib/dom.js";
import { approvalOf } from "../lib/fold.js";
import { progressBar, statusBadge, statusOf } from "./status.js";
import {
  formatElapsed,
  formatEta,
  formatProgress,
  formatRate,
  joinNonEmpty,
  safeText,
  statusMessage,
} from "../lib/format.js";
import { callPath, navigate, withQuery, route } from "../lib/router.js";
import { computed, effect, signal } from "../lib/signal.js";
import { store } from "../lib/store.js";
import { now } from "../lib/time.js";

const FIRST_CHILDREN = 50; // of one list, shown at first
const APPROVAL_LABELS = /** @type {Record<string, string>} */ ({
  user: "approved by a person",
  caller: "approved by its caller",
  allowlist: "on the allowlist",
  auto: "needs no approval",
});

/** The card of a call, and of the calls below it. @param {Entry} entry @returns {HTMLElement} */
export function callCard(entry) {
  const { id, call } = entry;
  const { tool, server } = call.peek();
  const isOnScreen = signal(true); // a card that is off screen is updated when it comes into view
  const onVisibilityChange = (
    /** @type {ContentVisibilityAutoStateChangeEvent} */ { target, currentTarget, skipped },
  ) => target === currentTarget && isOnScreen.set(!skipped);
  const reading = () => (isOnScreen() ? entry.reading() : call());
  const name = safeText(tool, 200);
  const kind = () => statusOf(reading());
  const from = h("span.from", safeText(server, 100));
  const answerProps = { href: "/inbox", shown: () => call().open.size, "aria-label": `Answer ${name}` };
  const openEntries = computed(() => (isOpen(id) && childCount(entry) ? [entry] : []));
  const props = {
    "data-kind": kind,
    "data-open": () => isOpen(id),
    oncontentvisibilityautostatechange: onVisibilityChange,
  };
  const head = h(
    "div.head",
    h("a.name", { href: callPath(id) }, name),
    from,
    statusBadge(kind),
    cancelButton(entry, name),
  );
  const parts = callDetails(reading, name, h("a.answer", answerProps, "Answer"), childrenToggle(entry));
  return h("li.call-card", props, head, ...parts, each(openEntries, "id", childList));
}

/**
 * The details of a call: bar, message, times, caller.
 * @param {() => Call} call
 * @param {string} name
 * @param {...Child} more
 */
export function callDetails(call, name, ...more) {
  const elapsed = () =>
    `${call().finished == null ? "" : "took "}${formatElapsed((call().finished ?? now()) - call().opened)}`;
  const progress = () => formatProgress(call());
  const speed = () => formatRate(call().rate);
  const remaining = () => formatEta(call().eta);
  const caller = () => `for ${safeText(call().caller, 60)}`;
  const approval = () => APPROVAL_LABELS[approvalOf(call())];
  const attempt = () => call().attempt > 1 && `attempt ${call().attempt}`;
  const detached = () => call().detached && "detached: nobody waits";
  const line = (/** @type {(() => string | false | undefined)[]} */ ...texts) =>
    texts.map((text) => h("span", { shown: text }, text));
  return [
    progressBar(call, name),
    h("p.message", () => safeText(statusMessage(call()), 300)),
    h("p.facts", ...line(elapsed, progress, remaining, speed)),
    h("div.facts", ...line(caller, detached, approval, attempt), ...more),
  ];
}

/** The button that cancels a call. @param {Entry} entry @param {string} name */
function cancelButton({ id, call }, name) {
  const cancel = () => post(`/api${callPath(id)}/cancel`);
  const isLive = () => call().state === "queued" || call().state === "running";
  return actionButton("Cancel", cancel, { class: "quiet", shown: isLive, "aria-label": `Cancel ${name}` });
}

/** The button that shows the calls below a call, and their number. @param {Entry} entry */
function childrenToggle(entry) {
  const text = () => {
    const { live, failed } = entry.call().children;
    return joinNonEmpty(`${childCount(entry)} below`, live && `${live} live`, failed && `${failed} failed`);
  };
  const onclick = () => {
    const others = openIds(route.peek()).filter((one) => one !== entry.id);
    navigate(withQuery({ open: (isOpen(entry.id) ? others : [...others, entry.id]).join() }), { replace: true });
  };
  const props = { shown: () => childCount(entry), "aria-expanded": () => String(isOpen(entry.id)), onclick };
  return h("button.quiet.fold", props, text);
}

/** @param {Entry} entry */
const childCount = ({ call, below }) => Math.max(call().children.total, below().length) + (call().remote?.length ?? 0);

/** @param {Route} route */
const openIds = ({ query }) => (query.open ?? "").split(",").filter(Boolean);

/** @param {string} id */
const isOpen = (id) => openIds(route()).includes(id);

/** The list of calls below a call. @param {Entry} entry */
function childList({ call, below }) {
  const limit = signal(Math.min(FIRST_CHILDREN, below.peek().length));
  // New calls are shown at once, but not while the pointer is over a card that they would move.
  effect(() => {
    if (now() > store.pointerHeldUntil) limit.set(Math.max(limit.peek(), Math.min(FIRST_CHILDREN, below().length)));
  });
  const firstChildren = computed(() => below().slice(0, limit()));
  const moreProps = { shown: () => below().length > limit(), onclick: () => limit.set(limit.peek() + FIRST_CHILDREN) };
  const moreLabel = () => `Show more (${below().length - limit()} are left)`;
  const list = h(
    "ul",
    { "aria-label": `Below ${safeText(call.peek().tool, 200)}` },
    each(firstChildren, "id", callCard),
  );
  return h("div.below", list, h("button.quiet", moreProps, moreLabel), remoteCalls(call));
}

/** The calls below a call at a gateway behind this one. @param {() => Pick<CallView, "remote">} call */
export function remoteCalls(call) {
  const rows = () => call().remote ?? [];
  const row = (/** @type {RemoteCall} */ { tool }, /** @type {() => RemoteCall} */ now) => {
    const progress = () => formatProgress({ latest: { at: 0, ...now() } });
    const text = () =>
      joinNonEmpty((now().outcome ?? now().state).replace("_", " "), progress(), safeText(now().message ?? "", 300));
    return h("li", h("span.name", safeText(tool, 200)), " ", h("span.soft", text));
  };
  const props = { shown: () => rows().length, "aria-label": "Calls at a gateway behind this one" };
  return h("ul.remote", props, each(rows, "id", row));
}
