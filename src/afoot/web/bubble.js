// A call that lives, as a bubble: its state, how far it is, for whom; and the calls below it.

import { post } from "./api.js";
import { each, h } from "./dom.js";
import { approved } from "./fold.js";
import { bar, howFar, kindOf, left, mark, pace, span, visible, wordOf } from "./parts.js";
import { callAt, go, having, route } from "./router.js";
import { computed, signal } from "./signal.js";
import { now } from "./time.js";

/** @typedef {import("./store.js").Entry} Entry */
/** @typedef {import("./fold.js").Call} Call */

const SOME = 50; // calls of one list that are shown at first
export const APPROVED = /** @type {Record<string, string>} */ ({
  user: "approved by a person",
  allowlist: "on the allowlist",
  auto: "needs no approval",
});

/** The group that a call belongs to: what it does, or that it has ended. @param {Entry} entry */
export function groupOf(entry) {
  const call = entry.call();
  return call.state === "finished" ? "ended" : kindOf(call);
}

/** @param {string} group */
export const nameOf = (group) =>
  group === "ended" ? group : group === "waiting" ? "waiting for you" : wordOf(group);

/** A call, and those below it. @param {Entry} entry @returns {HTMLElement} */
export function bubble(entry) {
  const { id, call } = entry;
  const { tool, server } = call.peek();
  const isSeen = signal(true); // what is out of sight shows numbers when it comes into sight
  const look = (/** @type {ContentVisibilityAutoStateChangeEvent} */ event) =>
    event.target === event.currentTarget && isSeen.set(!event.skipped);
  const reading = () => (isSeen() ? entry.reading() : call());
  const kind = () => kindOf(reading());
  const name = visible(tool, 200);
  const head = [
    h("a", { class: "name said", href: callAt(id) }, name),
    h("span", { class: "from said" }, visible(server, 100)),
    ...[mark(kind), stop(entry, name)],
  ];
  return h(
    "li",
    {
      class: "bubble",
      "data-kind": kind,
      "data-open": () => isOpen(id),
      oncontentvisibilityautostatechange: look,
    },
    h("div", { class: "head" }, ...head),
    bar(reading, name),
    h("p", { class: "message said" }, () => visible(message(reading()), 300)),
    ...[facts(reading), terms(reading)].map((some) => h("p", { class: "facts" }, ...some)),
    h("p", { class: "hint said", hidden: () => !call().hindered }, () => hindrance(call())),
    tree(entry, name),
  );
}

/** @param {Call} call */
function message(call) {
  const question = call.open.values().next().value;
  if (question) return question.message || "waits for an answer";
  if (call.state === "finished" && call.failure) return call.failure;
  if (call.state === "queued" && call.starting) return call.starting;
  if (call.state === "cancelling") return call.cancel?.reason;
  return call.latest?.message;
}

/** @param {Call} call */
const hindrance = ({ hindered }) => visible([hindered?.by, hindered?.hint].filter(Boolean).join(": "), 300);

/** How long, how far, how fast, how much longer. @param {() => Call} reading */
function facts(reading) {
  const elapsed = () => {
    const { opened, finished } = reading();
    return finished === null ? span(now() - opened) : `took ${span(finished - opened)}`;
  };
  return [
    fact("elapsed", elapsed),
    fact("far", () => howFar(reading())),
    fact("pace", () => pace(reading().rate)),
    fact("left", () => left(reading().eta)),
  ];
}

/** For whom, and by whose leave. @param {() => Call} reading */
const terms = (reading) => [
  fact("caller said", () => `for ${visible(reading().caller, 60)}`),
  fact("approved", () => APPROVED[approved(reading())] ?? ""),
];

/** @param {string} name @param {() => string} text */
const fact = (name, text) => h("span", { class: `fact ${name}`, hidden: () => !text() }, text);

/** The button that ends a call, or why it cannot. @param {Entry} entry @param {string} name */
function stop({ id, call }, name) {
  const problem = signal("");
  const cancel = async () => {
    try {
      await post(`/api/calls/${encodeURIComponent(id)}/cancel`, {});
    } catch (error) {
      problem.set(error instanceof Error ? error.message : String(error));
    }
  };
  const isOver = () => call().state === "finished" || call().state === "cancelling";
  return h(
    "span",
    { class: "stop" },
    h(
      "button",
      { class: "quiet", onclick: cancel, hidden: isOver, "aria-label": `Cancel ${name}` },
      "Cancel",
    ),
    h("span", { class: "problem", hidden: () => !problem() }, () => visible(problem(), 200)),
  );
}

/** What is below a call: a count, and the calls if wanted. @param {Entry} entry @param {string} name */
function tree({ id, call, below }, name) {
  const isThere = computed(() => call().children > 0 || below().length > 0);
  const isShown = computed(() => isThere() && isOpen(id));
  const flip = () => go(having({ open: flipped(id) }), { replace: true });
  const toggle = () =>
    h("button", { class: "quiet fold", "aria-expanded": () => String(isOpen(id)), onclick: flip }, () =>
      summary(Math.max(call().children, below().length), below()),
    );
  return h(
    "div",
    { class: "tree" },
    once(isThere, toggle),
    once(isShown, () => listed(below, name)),
  );
}

/** @param {() => Entry[]} below @param {string} name */
function listed(below, name) {
  const most = signal(SOME);
  const some = computed(() => below().slice(0, most()));
  const more = () => `Show more (${below().length - most()} are left)`;
  const press = () => most.set(most.peek() + SOME);
  return h(
    "div",
    { class: "below" },
    h(
      "ul",
      { "aria-label": `Below ${name}` },
      each(some, (entry) => entry.id, bubble),
    ),
    h("button", { class: "quiet", hidden: () => below().length <= most(), onclick: press }, more),
  );
}

/** What is there while something is true. @param {() => boolean} is @param {() => HTMLElement} make */
const once = (is, make) => each(() => (is() ? ["it"] : []), String, make);

/** @param {number} count @param {Entry[]} entries */
function summary(count, entries) {
  const groups = [...Map.groupBy(entries, groupOf)].map(([group, some]) => `${some.length} ${nameOf(group)}`);
  return [`${count} below`, ...groups].join(" · ");
}

/** @param {string} id */
const isOpen = (id) => (route().query.open ?? "").split(",").includes(id);

/** @param {string} id the call that is opened, or closed */
function flipped(id) {
  const open = (route.peek().query.open ?? "").split(",").filter(Boolean);
  return (open.includes(id) ? open.filter((one) => one !== id) : [...open, id]).join(",");
}
