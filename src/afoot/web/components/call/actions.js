// callActions: the button that cancels a live call after five seconds, and the one that takes it back meanwhile.

import { each, h } from "../../lib/dom.js";
import { keyHint } from "../../lib/keys.js";
import { canCancel, cancelSoon, undoCancel } from "../cancel.js";
import { actionButton } from "../controls.js";

/** @typedef {import("./call_model.js").CallModel} CallModel */

/** @param {CallModel} model @param {string} [look] class names of the button */
export function callActions({ entry }, look = "") {
  const live = () => [entry()].filter((one) => one !== undefined);
  return each(live, "id", (target) => {
    const about = { class: look, "aria-keyshortcuts": "x", "data-act": "cancel" };
    const cancel = actionButton(h("span.action", "Cancel", keyHint("x")), () => cancelSoon(target), about);
    return h("span.action", undoCancel(target), h("span", { shown: () => canCancel(target.call()) }, cancel));
  });
}
