// Elements made of data: text is only ever text, and whatever is given as a function is kept up to date.

import { effect, ending, scope } from "./signal.js";

/** @typedef {{mount: (parent: Node) => void}} Mount */
/** @typedef {Node | string | number | null | undefined | false} Grown */
/** @typedef {Grown | Mount | (() => Grown)} Child */
/** @typedef {Record<string, any>} Props `onclick` listens, `.value`: property, `style.width`: style, or attribute */

const SVG = "http://www.w3.org/2000/svg";
const FOCUSABLE = "a[href], button:not(:disabled), input, select, textarea, summary, [tabindex]";

/**
 * An element. A property or child that is a function is bound: it is set again when what it reads changes.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/**
 * An element of a drawing.
 * @param {string} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, props, ...children) {
  return fill(/** @type {SVGElement} */ (document.createElementNS(SVG, tag)), props, children);
}

/**
 * One node an item, in the list's order. A node stays while its key does: with focus and half-written text.
 * @template T
 * @param {() => readonly T[]} list
 * @param {(item: T) => string} keyOf
 * @param {(item: T) => Element} render called once a key; what changes inside an item is a signal's business
 * @returns {Mount}
 */
export function each(list, keyOf, render) {
  return {
    mount(parent) {
      /** @type {Map<string, [Element, () => void]>} */ const shown = new Map();
      const end = parent.appendChild(document.createComment(""));
      ending(() => shown.forEach(([, dispose]) => dispose()));
      effect(() => {
        const items = list();
        const keys = new Set(items.map(keyOf));
        for (const [key, [node, dispose]] of shown) {
          if (keys.has(key)) continue;
          shown.delete(key);
          takeAway(node);
          dispose();
        }
        place(/** @type {Node} */ (end.parentNode), end, items, (item) => {
          const key = keyOf(item);
          const found = shown.get(key) ?? scope(() => render(item));
          shown.set(key, found);
          return found[0];
        });
      });
    },
  };
}

/**
 * Put something into an element instead of what it holds.
 * @param {Element} parent
 * @param {...Child} children
 */
export function put(parent, ...children) {
  parent.replaceChildren();
  children.forEach((child) => add(parent, child));
}

/** @template T @param {Node} parent @param {Node} next @param {readonly T[]} items @param {(one: T) => Node} nodeOf */
function place(parent, next, items, nodeOf) {
  for (let at = items.length - 1; at >= 0; at--) {
    const node = nodeOf(items[at]);
    // Moved, a node keeps focus; inserted again, it would lose it.
    if (node.parentNode !== parent) parent.insertBefore(node, next);
    else if (node.nextSibling !== next) /** @type {any} */ (parent).moveBefore(node, next);
    next = node;
  }
}

/** Remove a node; focus inside it goes to its neighbour. @param {Element} node */
function takeAway(node) {
  const near = node.nextElementSibling ?? node.previousElementSibling;
  const heir =
    node.contains(document.activeElement) &&
    (near?.matches(FOCUSABLE) ? near : near?.querySelector(FOCUSABLE));
  node.remove();
  if (heir) /** @type {HTMLElement} */ (heir).focus({ preventScroll: true });
}

/** @template {Element} E @param {E} element @param {Props | null | undefined} props @param {Child[]} children */
function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (typeof value === "function") bind(value, (now) => set(element, name, now));
    else set(element, name, value);
  }
  children.forEach((child) => add(element, child));
  return element;
}

/** @param {Element} parent @param {Child} child */
function add(parent, child) {
  if (typeof child === "function") grow(parent, child);
  else if (child instanceof Node) parent.append(child);
  else if (child && typeof child === "object") child.mount(parent);
  else if (child || child === 0) parent.append(String(child));
}

/** A bound child: text that changes, or another node. @param {Element} parent @param {() => any} make */
function grow(parent, make) {
  /** @type {ChildNode} */ let now = parent.appendChild(document.createTextNode(""));
  bind(make, (next) => {
    const text = next instanceof Node ? null : next || next === 0 ? String(next) : "";
    if (text !== null && now instanceof Text) now.data = text;
    else now.replaceWith((now = text === null ? next : document.createTextNode(text)));
  });
}

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
  else if (name.startsWith("style."))
    /** @type {HTMLElement} */ (element).style.setProperty(name.slice(6), value);
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (name === "href" && !isSafe(String(value))) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Links lead to this console or to http and https, nowhere else. @param {string} href */
const isSafe = (href) => /^(https?:\/\/|\/(?![/\\])|#|blob:|\?)/i.test(href);
