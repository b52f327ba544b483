// Buttons and forms: actions, submits, disclosures, copy buttons, and buttons that work only while they stand still.
// None of them acts while the gateway cannot be reached.

import { each, h } from "../lib/dom.js";
import { online } from "../lib/event_feed.js";
import { busyAction } from "../lib/resource.js";
import { effect, signal } from "../lib/signal.js";
import { setTimer } from "../lib/time.js";
import { icon } from "./marks/icon.js";
import { isStillNow, watchStillness } from "./stillness.js";

const COPIED_MS = 2_000;

/** The attribute of a button that asks the gateway for something: off while it cannot be reached. */
const isOffline = () => (online() ? null : "true");

/**
 * A button for an action, which runs once at a time; an error is shown beside it.
 * @param {Child} label
 * @param {() => Promise<any>} work
 * @param {Props} [props]
 */
export function actionButton(label, work, props) {
  const { act, busy, wrong } = busyAction(work);
  const onclick = () => void (online.peek() && act());
  const about = { type: "button", "aria-busy": busy, "aria-disabled": isOffline, ...props, onclick };
  return h("span.action", h("button", about, label), wrong);
}

/**
 * An action button that works only after it has stood still for half a second.
 * @param {Child} label
 * @param {() => Promise<any>} work
 * @param {Props} [props]
 * @param {...Child} more beside the label
 */
export function guardedButton(label, work, props, ...more) {
  const { act, busy, wrong } = busyAction(work);
  const onclick = () => void (online.peek() && isStillNow(button) && act());
  const button = h("button", { type: "button", "aria-busy": busy, ...props, onclick }, label, ...more);
  const isStill = watchStillness(button);
  effect(() => {
    if (online() && isStill()) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
  });
  return h("span.action", button, wrong);
}

/**
 * A form for an action, which runs once at a time; an error is shown in it.
 * @param {"form" | `form.${string}`} tag
 * @param {() => Promise<any>} work
 * @param {...Child} children
 */
export function submitForm(tag, work, ...children) {
  const { act, busy, wrong } = busyAction(work);
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (online.peek()) void act();
  };
  return h(tag, { onsubmit, novalidate: true, "aria-busy": busy }, ...children, wrong);
}

/**
 * A button that opens something to ask the gateway for.
 * @param {Child} label
 * @param {(anchor: HTMLElement) => void} open
 * @param {Props} [props]
 * @param {...Child} more beside the label
 */
export function openButton(label, open, props, ...more) {
  const onclick = (/** @type {MouseEvent} */ { currentTarget }) =>
    online.peek() && open(/** @type {HTMLElement} */ (currentTarget));
  return h("button", { type: "button", "aria-disabled": isOffline, ...props, onclick }, label, ...more);
}

/** The button that sends a form. @param {Child} label */
export const submitButton = (label) => h("button.main", { "aria-disabled": isOffline }, label);

/**
 * A row of buttons; some open a panel below, one at a time.
 * @param {...(HTMLElement | [title: string, panel: (close: () => void) => Element, isShown?: () => unknown])} buttons
 */
export function disclosureButtons(...buttons) {
  const open = signal("");
  const close = () => open.set("");
  const toggleButton = (/** @type {string} */ title, /** @type {(() => unknown) | undefined} */ shown = () => true) => {
    const onclick = () => open.set(open.peek() === title ? "" : title);
    return h("button", { type: "button", shown, onclick, "aria-expanded": () => String(open() === title) }, title);
  };
  const row = buttons.map((one) => (Array.isArray(one) ? toggleButton(one[0], one[2]) : one));
  const opened = () => buttons.filter((one) => Array.isArray(one)).filter((one) => one[0] === open());
  const panel = each(opened, "0", ([, make]) => make(close));
  return h("div.actions", h("div.row", ...row), panel);
}

/**
 * A button that copies a text, and says so for a moment.
 * @param {string | (() => string)} text
 * @param {{label?: string, class?: string}} [how]
 */
export function copyButton(text, { label = "Copy", class: look = "quiet" } = {}) {
  const shown = signal(label);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
    shown.set("Copied");
    setTimer(COPIED_MS, () => shown.set(label));
  };
  const { act, wrong } = busyAction(copy);
  const button = h("button", { type: "button", class: look, onclick: () => void act() }, icon("copy", "s"), shown);
  return h("span.action", button, wrong);
}
