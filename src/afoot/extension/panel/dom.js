// Elements made and kept up to date without markup in strings: text is only ever text.

/**
 * An element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [properties] `on…` are listeners, `data-…` and `aria-…` attributes
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, properties = {}, ...children) {
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
 * A name that may be broken behind its _, / and . rather than anywhere.
 * @param {string} name
 * @returns {(Node | string)[]}
 */
export function breakable(name) {
  const parts = name.split(/(?<=[_/.])/);
  return parts.flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part]));
}

/**
 * The one element that fits.
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
 * Set a property where it differs, so that nothing is read out, drawn or unselected for nothing.
 * @template {object} T
 * @param {T} element
 * @param {Partial<T>} properties
 */
export function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (/** @type {any} */ (element)[name] !== value) /** @type {any} */ (element)[name] = value;
  }
}

/**
 * One element an item, in order. Elements stay while their item does: focus and half-written text, too.
 * @template T
 * @param {Element} parent
 * @param {T[]} items
 * @param {{key: (item: T) => string, create: (item: T) => HTMLElement, update: (element: HTMLElement, item: T) => void}} how
 */
export function keep(parent, items, how) {
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
