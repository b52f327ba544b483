// Elements made of data: text is only ever text, and whatever is given as a function is kept up to date.

import { batch, effect, ending, scope, signal } from "./signal.js";
import { marked } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const FOCUSABLE = "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex]";
const READ = ["alt", "aria-label", "aria-valuetext", "placeholder", "title"]; // attributes that are read by people

/**
 * An element, `tag` or `tag.class.class`. A property or child that is a function is bound: it is set again when what
 * it reads changes.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T | `${T}.${string}`} tag
 * @param {...(Props | Child)} parts properties, if there are any, then children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, ...parts) {
  const [name, ...classes] = tag.split(".");
  const element = /** @type {HTMLElementTagNameMap[T]} */ (document.createElement(name));
  if (classes.length) element.className = classes.join(" ");
  return fill(element, parts);
}

/** An element of a drawing. @param {string} tag @param {...(Props | Child)} parts @returns {SVGElement} */
export const svg = (tag, ...parts) => fill(/** @type {SVGElement} */ (document.createElementNS(SVG, tag)), parts);

/**
 * One node an item, in the list's order. A node stays while its key does: with focus and half-written text.
 * @template T
 * @param {() => readonly T[]} list
 * @param {(keyof T & string) | ((item: T) => string)} key a property, or what is made of the item
 * @param {(item: T, now: () => T) => Element} render called once a key; `now` is the newest item that has it
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
    for (const [key, { node, end }] of shown) if (!keys.has(key)) (shown.delete(key), takeAway(node), end());
    batch(() => place(/** @type {Node} */ (last.parentNode), last, items, nodeOf));
  };
  return {
    mount(parent) {
      const last = parent.appendChild(document.createComment(""));
      ending(() => shown.forEach(({ end }) => end()));
      effect(() => update(last));
    },
  };
}

/** Put something into an element instead of what it holds. @param {Element} parent @param {...Child} children */
export function put(parent, ...children) {
  parent.replaceChildren();
  children.forEach((child) => add(parent, child));
}

/** @template T @param {Node} parent @param {Node} next @param {readonly T[]} items @param {(one: T) => Node} nodeOf */
function place(parent, next, items, nodeOf) {
  for (const item of items.toReversed()) {
    const node = nodeOf(item);
    // Moved, a node keeps focus; inserted again, it would lose it.
    if (node.parentNode !== parent) parent.insertBefore(node, next);
    else if (node.nextSibling !== next) /** @type {any} */ (parent).moveBefore(node, next);
    next = node;
  }
}

/** Remove a node; focus inside it goes to its neighbour, or else to the heading. @param {Element} node */
function takeAway(node) {
  const hadFocus = node.contains(document.activeElement);
  const near = node.nextElementSibling ?? node.previousElementSibling;
  node.remove();
  if (!hadFocus) return;
  const heirs = [near, ...(near?.querySelectorAll(FOCUSABLE) ?? []), document.querySelector("h1")];
  const heir = heirs.find((one) => one?.matches(FOCUSABLE) && one.checkVisibility());
  /** @type {HTMLElement | undefined} */ (heir)?.focus({ preventScroll: true });
}

/** @template {Element} E @param {E} element @param {(Props | Child)[]} parts */
function fill(element, parts) {
  const [first] = parts;
  const hasProps = first && typeof first === "object" && !(first instanceof Node) && !("mount" in first);
  for (const [name, value] of Object.entries(hasProps ? first : {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (typeof value === "function") bind(value, (now) => set(element, name, now));
    else set(element, name, value);
  }
  parts.slice(hasProps ? 1 : 0).forEach((child) => add(element, /** @type {Child} */ (child)));
  return element;
}

/** @param {Element} parent @param {Child} child */
function add(parent, child) {
  if (typeof child === "function") grow(parent, child);
  else if (child && typeof child === "object" && "mount" in child) child.mount(parent);
  else parent.append(child instanceof Node ? child : worded(child));
}

/** A bound child: text that changes, or another node. @param {Element} parent @param {() => any} make */
function grow(parent, make) {
  /** @type {ChildNode} */ let now = parent.appendChild(document.createTextNode(""));
  bind(make, (next) => {
    if (!(next instanceof Element) && now instanceof Text) now.data = worded(next);
    else now.replaceWith((now = next instanceof Element ? next : document.createTextNode(worded(next))));
  });
}

/** @param {Grown} value */
const worded = (value) => (value || value === 0 ? marked(String(value)) : "");

/** @param {() => any} make @param {(now: any) => void} apply */
function bind(make, apply) {
  /** @type {any} */ let last = bind; // no value is this function
  effect(() => {
    const now = make();
    if (now !== last) apply((last = now));
  });
}

/** @param {Element} element @param {string} name @param {any} value */
function set(element, name, value) {
  if (name.startsWith(".")) /** @type {any} */ (element)[name.slice(1)] = value;
  else if (name.startsWith("style.")) /** @type {HTMLElement} */ (element).style.setProperty(name.slice(6), value);
  else if (name === "shown") element.toggleAttribute("hidden", !value);
  else if (value == null || value === false || (name === "href" && !isSafe(String(value))))
    element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : READ.includes(name) ? marked(String(value)) : String(value));
}

/** Links lead to this console or to http and https, nowhere else. @param {string} href */
const isSafe = (href) => /^(https?:\/\/|\/(?![/\\])|#|blob:|\?)/i.test(href);
