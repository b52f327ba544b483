// What people press: forms that send, buttons that open panels, that copy, and that count only where they stand still.

import { each, h } from "./dom.js";
import { acting } from "./load.js";
import { ending, signal } from "./signal.js";
import { after } from "./time.js";

const STEADY_MS = 500;
const LOOK_MS = 100;

/** A button that has something done, once at a time; what went wrong stands beside it. @param {Child} label @param {() => Promise<any>} work @param {Props} [props] */
export function action(label, work, props) {
  const { act, busy, wrong } = acting(work);
  return h("span.action", h("button", { type: "button", "aria-busy": busy, ...props, onclick: act }, label), wrong);
}

/** A form that has something done, once at a time; what went wrong stands in it. @param {"form" | `form.${string}`} tag @param {() => Promise<any>} work @param {...Child} children */
export function sending(tag, work, ...children) {
  const { act, busy, wrong } = acting(work);
  const onsubmit = (/** @type {Event} */ event) => (event.preventDefault(), act());
  return h(tag, { onsubmit, novalidate: true, "aria-busy": busy }, ...children, wrong);
}

/** Buttons, of which some open a panel below, one at a time. @param {...(HTMLElement | [title: string, panel: (close: () => void) => Element, isShown?: () => unknown])} buttons */
export function panels(...buttons) {
  const open = signal("");
  const close = () => open.set("");
  const opener = (/** @type {string} */ title, /** @type {(() => unknown) | undefined} */ shown = () => true) => {
    const onclick = () => open.set(open.peek() === title ? "" : title);
    return h("button", { type: "button", shown, onclick, "aria-expanded": () => String(open() === title) }, title);
  };
  const row = buttons.map((one) => (Array.isArray(one) ? opener(one[0], one[2]) : one));
  const opened = () => buttons.filter((one) => Array.isArray(one)).filter((one) => one[0] === open());
  const panel = each(opened, "0", ([, make]) => make(close));
  return h("div.actions", h("div.row", ...row), panel);
}

/** A button that copies a text. @param {string} text */
export function copier(text) {
  const label = signal("Copy");
  const copy = () => navigator.clipboard.writeText(text).then(() => label.set("Copied"));
  return action(label, copy, { class: "quiet" });
}

/** A button that counts only where it has stood for half a second: what moves under a hand is not pressed. @param {string} text @param {() => void} act */
export function steady(text, act) {
  let [where, since, stop] = ["", performance.now(), () => {}];
  const fresh = signal(true);
  const node = h("button.main", { type: "button", "aria-disabled": () => (fresh() ? "true" : null) }, text);
  const look = () => {
    const { x, y, width, height } = node.getBoundingClientRect();
    const here = [x, y, width, height].join();
    if (here !== where) [where, since] = [here, performance.now()];
    fresh.set(performance.now() - since < STEADY_MS);
  };
  const watch = () => (look(), (stop = after(LOOK_MS, watch)));
  node.addEventListener("click", () => (look(), fresh.peek() || act()));
  ending(() => stop());
  watch();
  return node;
}
