// A call that lives, as a bubble: its state, how far it is, for whom; and the calls below it.

import { post } from "./api.js";
import { action } from "./control.js";
import { each, h } from "./dom.js";
import { approved } from "./fold.js";
import { bar, howFar, kindOf, left, listed, mark, pace, saying, span, visible } from "./parts.js";
import { callAt, go, having, route } from "./router.js";
import { computed, effect, signal } from "./signal.js";
import { store } from "./store.js";
import { now } from "./time.js";

const SOME = 50; // calls of one list that are shown at first
const APPROVED = /** @type {Record<string, string>} */ ({
  user: "approved by a person",
  allowlist: "on the allowlist",
  auto: "needs no approval",
});

/** A call, and those below it. @param {Entry} entry @returns {HTMLElement} */
export function bubble(entry) {
  const { id, call } = entry;
  const { tool, server } = call.peek();
  const isSeen = signal(true); // what is out of sight shows numbers when it comes into sight
  const look = (/** @type {ContentVisibilityAutoStateChangeEvent} */ { target, currentTarget, skipped }) =>
    target === currentTarget && isSeen.set(!skipped);
  const reading = () => (isSeen() ? entry.reading() : call());
  const [name, kind] = [visible(tool, 200), () => kindOf(reading())];
  const from = h("span.from", visible(server, 100));
  const asks = { href: "/inbox", shown: () => call().open.size, "aria-label": `Answer ${name}` };
  const wanted = computed(() => (isOpen(id) && count(entry) ? [entry] : []));
  const props = { "data-kind": kind, "data-open": () => isOpen(id), oncontentvisibilityautostatechange: look };
  const head = h("div.head", h("a.name", { href: callAt(id) }, name), from, mark(kind), stop(entry, name));
  const parts = body(reading, name, h("a.answer", asks, "Answer"), toggle(entry));
  return h("li.bubble", props, head, ...parts, each(wanted, "id", below));
}

/** What is known of a call now. @param {() => Call} call @param {string} name @param {...Child} more */
export function body(call, name, ...more) {
  const elapsed = () => `${call().finished == null ? "" : "took "}${span((call().finished ?? now()) - call().opened)}`;
  const far = () => howFar(call());
  const speed = () => pace(call().rate);
  const rest = () => left(call().eta);
  const whose = () => `for ${visible(call().caller, 60)}`;
  const leave = () => APPROVED[approved(call())];
  const tries = () => call().attempt > 1 && `attempt ${call().attempt}`;
  const alone = () => call().detached && "detached: nobody waits";
  const line = (/** @type {(() => string | false | undefined)[]} */ ...texts) =>
    texts.map((text) => h("span", { shown: text }, text));
  return [
    bar(call, name),
    h("p.message", () => visible(saying(call()), 300)),
    h("p.facts", ...line(elapsed, far, rest, speed)),
    h("div.facts", ...line(whose, alone, leave, tries), ...more),
  ];
}

/** The button that ends a call. @param {Entry} entry @param {string} name */
function stop({ id, call }, name) {
  const cancel = () => post(`/api${callAt(id)}/cancel`);
  const isLive = () => call().state === "queued" || call().state === "running";
  return action("Cancel", cancel, { class: "quiet", shown: isLive, "aria-label": `Cancel ${name}` });
}

/** The button that shows what is below a call, and says how much that is. @param {Entry} entry */
function toggle(entry) {
  const text = () => {
    const { live, failed } = entry.call().children;
    return listed(`${count(entry)} below`, live && `${live} live`, failed && `${failed} failed`);
  };
  const onclick = () => {
    const others = opened(route.peek()).filter((one) => one !== entry.id);
    go(having({ open: (isOpen(entry.id) ? others : [...others, entry.id]).join() }), { replace: true });
  };
  const props = { shown: () => count(entry), "aria-expanded": () => String(isOpen(entry.id)), onclick };
  return h("button.quiet.fold", props, text);
}

/** @param {Entry} entry */
const count = ({ call, below }) => Math.max(call().children.total, below().length);

/** @param {Route} route */
const opened = ({ query }) => (query.open ?? "").split(",").filter(Boolean);

/** @param {string} id */
const isOpen = (id) => opened(route()).includes(id);

/** The calls below one. @param {Entry} entry */
function below({ call, below }) {
  const most = signal(Math.min(SOME, below.peek().length));
  // What arrives is shown at once, but not while somebody points at what it would move.
  effect(() => {
    if (now() > store.heldUntil) most.set(Math.max(most.peek(), Math.min(SOME, below().length)));
  });
  const some = computed(() => below().slice(0, most()));
  const more = { shown: () => below().length > most(), onclick: () => most.set(most.peek() + SOME) };
  const words = () => `Show more (${below().length - most()} are left)`;
  const list = h("ul", { "aria-label": `Below ${visible(call.peek().tool, 200)}` }, each(some, "id", bubble));
  return h("div.below", list, h("button.quiet", more, words));
}
