// Creates and updates elements without markup in strings: text is always inserted as text.

/**
 * Create an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [properties] `on…` are listeners, `data-…` and `aria-…` attributes
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function createElement(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-")) element.setAttribute(name, value);
    else /** @type {any} */ (element)[name] = value;
  }
  element.append(...children);
  return element;
}

/**
 * A name with line-break opportunities after _, / and .
 * @param {string} name
 * @returns {(Node | string)[]}
 */
export function breakable(name) {
  const parts = name.split(/(?<=[_/.])/);
  return parts.flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part]));
}

/**
 * The first element that matches; throws if there is none.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {T}
 */
export function find(selector, within = document) {
  const found = within.querySelector(selector);
  if (!found) throw new Error(`no ${selector}`);
  return /** @type {T} */ (found);
}

/**
 * Set properties that differ. Others stay untouched, so that nothing is announced, drawn or unselected in vain.
 * @template {object} T
 * @param {T} element
 * @param {Partial<T>} properties
 */
export function setProperties(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (/** @type {any} */ (element)[name] !== value) /** @type {any} */ (element)[name] = value;
  }
}

/**
 * Keep one element for each item, in order. An element stays while its item does, with focus and half-written text.
 * @template T
 * @param {Element} parent
 * @param {T[]} items
 * @param {{key: (item: T) => string, create: (item: T) => HTMLElement, update: (element: HTMLElement, item: T) => void}} how
 */
export function reconcile(parent, items, how) {
  const old = new Map([...parent.children].map((one) => [/** @type {HTMLElement} */ (one).dataset.key, one]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = how.key(item);
    const known = /** @type {HTMLElement | undefined} */ (old.get(key));
    const element = known ?? how.create(item);
    element.dataset.key = key;
    old.delete(key);
    how.update(element, item);
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  for (const one of old.values()) one.remove();
}
