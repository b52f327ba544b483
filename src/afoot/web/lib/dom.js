// h and each: create elements. Text is always inserted as text; a property or child that is a function is updated when
// the signals it reads change.

import { batch, effect, onCleanup, scope, signal } from "./signal.js";
import { markInvisible } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const FOCUSABLE = "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex]";
const TEXT_ATTRIBUTES = ["alt", "aria-label", "aria-valuetext", "placeholder", "title"]; // attributes that people read

/**
 * Create an element, from `tag` or `tag.class.class`. A property or child that is a function is set again when the
 * signals it reads change.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T | `${T}.${string}`} tag
 * @param {...(Props | Child)} parts properties, if there are any, then children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, ...parts) {
  const [name, ...classes] = tag.split(".");
  const element = /** @type {HTMLElementTagNameMap[T]} */ (document.createElement(name));
  if (classes.length) element.className = classes.join(" ");
  return applyParts(element, parts);
}

/**
 * Create an SVG element.
 * @param {string} tag
 * @param {...(Props | Child)} parts
 * @returns {SVGElement}
 */
export const svg = (tag, ...parts) => applyParts(/** @type {SVGElement} */ (document.createElementNS(SVG, tag)), parts);

/**
 * Keep one node for each item, in the list's order. A node stays while its key does, with focus and half-written text.
 * @template T
 * @param {() => readonly T[]} list
 * @param {(keyof T & string) | ((item: T) => string)} key a property, or a function of the item
 * @param {(item: T, now: () => T) => Element} render called once for each key; `now` is the newest item with it
 * @returns {Mount}
 */
export function each(list, key, render) {
  const keyOf = typeof key === "function" ? key : (/** @type {T} */ item) => String(item[key]);
  const make = (/** @type {T} */ item) => {
    const now = signal(item);
    const [node, end] = scope(() => render(item, now));
    return { node, end, now };
  };
  /** @type {Map<string, ReturnType<typeof make>>} */ const shown = new Map();
  const nodeOf = (/** @type {T} */ item) => {
    const found = shown.get(keyOf(item)) ?? make(item);
    shown.set(keyOf(item), found);
    found.now.set(item);
    return found.node;
  };
  const update = (/** @type {Comment} */ last) => {
    const items = list();
    const keys = new Set(items.map(keyOf));
    for (const [key, { node, end }] of shown) {
      if (keys.has(key)) continue;
      shown.delete(key);
      removeNode(node);
      end();
    }
    batch(() => insertInOrder(/** @type {Node} */ (last.parentNode), last, items, nodeOf));
  };
  return {
    mount(parent) {
      const last = parent.appendChild(document.createComment(""));
      onCleanup(() => shown.forEach(({ end }) => end()));
      effect(() => update(last));
    },
  };
}

/** Replace the content of an element. @param {Element} parent @param {...Child} children */
export function replaceContent(parent, ...children) {
  parent.replaceChildren();
  children.forEach((child) => appendChild(parent, child));
}

/**
 * @template T
 * @param {Node} parent
 * @param {Node} next
 * @param {readonly T[]} items
 * @param {(one: T) => Node} nodeOf
 */
function insertInOrder(parent, next, items, nodeOf) {
  for (const item of items.toReversed()) {
    const node = nodeOf(item);
    // moveBefore keeps focus; insertBefore would lose it.
    if (node.parentNode !== parent) parent.insertBefore(node, next);
    else if (node.nextSibling !== next) /** @type {any} */ (parent).moveBefore(node, next);
    next = node;
  }
}

/**
 * Remove a node; focus inside it moves to its neighbour, or to the heading.
 * @param {Element} node
 */
function removeNode(node) {
  const hadFocus = node.contains(document.activeElement);
  const sibling = node.nextElementSibling ?? node.previousElementSibling;
  node.remove();
  if (!hadFocus) return;
  const candidates = [sibling, ...(sibling?.querySelectorAll(FOCUSABLE) ?? []), document.querySelector("h1")];
  const target = candidates.find((one) => one?.matches(FOCUSABLE) && one.checkVisibility());
  /** @type {HTMLElement | undefined} */ (target)?.focus({ preventScroll: true });
}

/** @template {Element} E @param {E} element @param {(Props | Child)[]} parts */
function applyParts(element, parts) {
  const [first] = parts;
  const hasProps = first && typeof first === "object" && !(first instanceof Node) && !("mount" in first);
  for (const [name, value] of Object.entries(hasProps ? first : {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (typeof value === "function") bindValue(value, (now) => setAttribute(element, name, now));
    else setAttribute(element, name, value);
  }
  parts.slice(hasProps ? 1 : 0).forEach((child) => appendChild(element, /** @type {Child} */ (child)));
  return element;
}

/** @param {Element} parent @param {Child} child */
function appendChild(parent, child) {
  if (typeof child === "function") bindChild(parent, child);
  else if (child && typeof child === "object" && "mount" in child) child.mount(parent);
  else parent.append(child instanceof Node ? child : toText(child));
}

/**
 * Bind a child: text that changes, or another node.
 * @param {Element} parent
 * @param {() => any} make
 */
function bindChild(parent, make) {
  /** @type {ChildNode} */ let now = parent.appendChild(document.createTextNode(""));
  bindValue(make, (next) => {
    if (!(next instanceof Element) && now instanceof Text) now.data = toText(next);
    else now.replaceWith((now = next instanceof Element ? next : document.createTextNode(toText(next))));
  });
}

/** @param {ChildValue} value */
const toText = (value) => (value || value === 0 ? markInvisible(String(value)) : "");

/** @param {() => any} make @param {(now: any) => void} apply */
function bindValue(make, apply) {
  /** @type {any} */ let last = bindValue; // differs from every value
  effect(() => {
    const now = make();
    if (now !== last) apply((last = now));
  });
}

/** @param {Element} element @param {string} name @param {any} value */
function setAttribute(element, name, value) {
  if (name.startsWith(".")) /** @type {any} */ (element)[name.slice(1)] = value;
  else if (name.startsWith("style.")) /** @type {HTMLElement} */ (element).style.setProperty(name.slice(6), value);
  else if (name === "shown") element.toggleAttribute("hidden", !value);
  else if (value == null || value === false || (name === "href" && !isSafeHref(String(value))))
    element.removeAttribute(name);
  else
    element.setAttribute(
      name,
      value === true ? "" : TEXT_ATTRIBUTES.includes(name) ? markInvisible(String(value)) : String(value),
    );
}

/** Whether a link leads to this console, or to http or https. @param {string} href */
const isSafeHref = (href) => /^(https?:\/\/|\/(?![/\\])|#|blob:|\?)/i.test(href);
