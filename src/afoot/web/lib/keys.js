// registerKeys: the one registry of keys. A view or component registers its keys while it is shown. A press goes to the
// newest registration that can act now; the same test decides whether a hint is shown.

import { h } from "./dom.js";
import { onCleanup, signal } from "./signal.js";
import { setTimer } from "./time.js";

/**
 * A key ("j", "Enter", "?"), a key with Ctrl or Command ("Ctrl K"), or two keys one after the other ("g l").
 * `when`: whether it would act now; `repeats`: whether it also acts again and again while it is held down.
 * @typedef {{keys: string, words: string, act: () => void, when?: () => unknown, repeats?: boolean}} KeyAction
 */

const SECOND_KEY_MS = 1_000; // a second key that comes later is a first key
const FIELDS = "input, textarea, select, [contenteditable]";
const OWN_KEYS = `${FIELDS}, dialog, [popover]`; // they keep their keys, except Ctrl K
const PRESSABLE = "a[href], button, summary"; // Enter is theirs

const registered = signal(/** @type {KeyAction[]} */ ([]));

/** Register keys until the current scope ends. @param {...KeyAction} actions */
export function registerKeys(...actions) {
  registered.set([...registered.peek(), ...actions]);
  onCleanup(() => registered.set(registered.peek().filter((one) => !actions.includes(one))));
}

/** The action that a key has now, if it would act. @param {string} keys */
export const actionOf = (keys) => registered().findLast((one) => one.keys === keys && (one.when?.() ?? true));

/** All keys that are registered, each once, with whether it would act now. */
export function knownKeys() {
  const newest = new Map(registered().map((one) => [one.keys, one]));
  return [...newest.values()].map(({ keys, words }) => ({ keys, words, acts: actionOf(keys) !== undefined }));
}

/**
 * The hint of a key on its button, shown only where the key would act on it.
 * @param {string} keys
 * @param {() => unknown} [isHere] whether it would act on this very button
 */
export const keyHint = (keys, isHere = () => true) =>
  h("kbd", { "aria-hidden": "true", shown: () => isHere() && actionOf(keys) !== undefined }, keys);

/** Act on the keys of the page. */
export function startKeys() {
  let first = "";
  let forget = () => {};
  const onPress = (/** @type {KeyboardEvent} */ event) => {
    const pressed = nameOf(event);
    const sequence = first ? `${first} ${pressed}` : pressed;
    forget();
    first = "";
    if (!pressed || event.defaultPrevented) return;
    if (belongsToTarget(event, pressed)) return;
    const action = actionOf(sequence) ?? actionOf(pressed);
    if (action && (!event.repeat || action.repeats)) {
      event.preventDefault();
      action.act();
    } else if (!action && registered.peek().some(({ keys }) => keys.startsWith(`${pressed} `))) {
      first = pressed;
      forget = setTimer(SECOND_KEY_MS, () => void (first = ""));
    }
  };
  addEventListener("keydown", onPress);
}

/** The name of a press; empty for a modifier, and for keys of the browser. @param {KeyboardEvent} event */
function nameOf({ key, ctrlKey, metaKey, altKey }) {
  if (["Control", "Shift", "Alt", "Meta"].includes(key) || altKey) return "";
  return ctrlKey || metaKey ? `Ctrl ${key.toUpperCase()}` : key;
}

/** Whether the element under the focus keeps this key. @param {KeyboardEvent} event @param {string} pressed */
function belongsToTarget({ target, isComposing }, pressed) {
  if (!(target instanceof Element) || pressed.startsWith("Ctrl ")) return false;
  if (isComposing) return true;
  if (pressed === "Escape" && document.querySelector(":popover-open, dialog[open]")) return true; // the browser closes it
  if (pressed === "Escape" && target.matches(FIELDS)) {
    /** @type {HTMLElement} */ (target).blur(); // the first Escape leaves the field
    return true;
  }
  return target.closest(OWN_KEYS) !== null || (pressed === "Enter" && target.closest(PRESSABLE) !== null);
}
