// Buttons and forms: actions, submits, disclosures, copy buttons, and buttons that work only while they stand still.

import { each, h } from "../lib/dom.js";
import { busyAction } from "../lib/resource.js";
import { onCleanup, signal } from "../lib/signal.js";
import { setTimer } from "../lib/time.js";

const STILL_MS = 500;
const CHECK_INTERVAL_MS = 100;

/**
 * A button for an action, which runs once at a time; an error is shown beside it.
 * @param {Child} label
 * @param {() => Promise<any>} work
 * @param {Props} [props]
 */
export function actionButton(label, work, props) {
  const { act, busy, wrong } = busyAction(work);
  return h("span.action", h("button", { type: "button", "aria-busy": busy, ...props, onclick: act }, label), wrong);
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
    return act();
  };
  return h(tag, { onsubmit, novalidate: true, "aria-busy": busy }, ...children, wrong);
}

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

/** A button that copies a text. @param {string} text */
export function copyButton(text) {
  const label = signal("Copy");
  const copy = () => navigator.clipboard.writeText(text).then(() => label.set("Copied"));
  return actionButton(label, copy, { class: "quiet" });
}

/**
 * A button that works only after it has stood still for half a second, so that none is pressed that moved under the pointer.
 * @param {string} text
 * @param {() => void} act
 */
export function guardedButton(text, act) {
  let position = "";
  let stillSince = performance.now();
  let cancelTimer = () => {};
  const hasMoved = signal(true); // within the last half second
  const node = h("button.main", { type: "button", "aria-disabled": () => (hasMoved() ? "true" : null) }, text);
  const checkPosition = () => {
    const { x, y, width, height } = node.getBoundingClientRect();
    const here = [x, y, width, height].join();
    if (here !== position) {
      position = here;
      stillSince = performance.now();
    }
    hasMoved.set(performance.now() - stillSince < STILL_MS);
  };
  const watch = () => {
    checkPosition();
    cancelTimer = setTimer(CHECK_INTERVAL_MS, watch);
  };
  node.addEventListener("click", () => {
    checkPosition();
    if (!hasMoved.peek()) act();
  });
  onCleanup(() => cancelTimer());
  watch();
  return node;
}
