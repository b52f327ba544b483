// The built-ins of JavaScript and the DOM as they were at document start. A page may replace its own later; that breaks
// nothing here and shows it nothing. In the page's world every call goes through these, tables are objects without a
// prototype, lists are walked by index, and promises are awaited: anything else looks up names that a page can replace.
"use strict";

/**
 * The object that the content scripts share: each file adds its exports, and the last file removes it from the world.
 * @typedef {Record<string, any>} Modules
 */

(() => {
  const world = /** @type {any} */ (globalThis);
  /** @type {Modules} */
  const modules = (world[Symbol.for("dev.afoot.modules")] = { __proto__: null });
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys, setPrototypeOf } =
    Reflect;

  /** A method as a function of its object. @param {any} prototype @param {string} name */
  const method = (prototype, name) => {
    const own = prototype[name];
    return (/** @type {any} */ self, /** @type {any[]} */ ...args) => apply(own, self, args);
  };

  /** An attribute as a function of its object. @param {any} prototype @param {string} name */
  const attribute = (prototype, name) => {
    const own = /** @type {any} */ (getOwnPropertyDescriptor(prototype, name)).get;
    return (/** @type {any} */ self) => apply(own, self, []);
  };

  const { hasOwn, prototype: objects } = Object;

  /** A member of an object; one that the page gave to all objects does not count. @param {any} object @param {string} name */
  const member = (object, name) => {
    for (let from = object; from !== null && from !== objects; from = getPrototypeOf(from)) {
      if (hasOwn(from, name)) return object[name];
    }
    return undefined;
  };

  const { crypto, performance: clock, Uint8Array: Bytes } = world;
  const { setTimeout: start, clearTimeout: stop } = world;
  const fillRandom = method(crypto, "getRandomValues");
  const numberToString = method(Number.prototype, "toString");
  const readClock = method(clock, "now");

  /** 128 random bits as hex digits. Pages over http have no `randomUUID`. */
  const makeId = () => {
    const bytes = fillRandom(crypto, new Bytes(16));
    let text = "";
    for (let i = 0; i < 16; i += 1) text += (bytes[i] < 16 ? "0" : "") + numberToString(bytes[i], 16);
    return text;
  };

  modules.builtins = {
    __proto__: null,
    ...{ apply, attribute, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, method, ownKeys },
    ...{ setPrototypeOf, makeId, create: Object.create, hasOwn, isArray: Array.isArray, member },
    ...{ AbortController, CustomEvent, DOMException, Event, EventTarget, String, TypeError },
    ...{ isFinite: Number.isFinite, parse: JSON.parse, stringify: JSON.stringify },
    abort: method(AbortController.prototype, "abort"),
    charCode: method(String.prototype, "charCodeAt"),
    clearTimeout: (/** @type {any} */ timer) => apply(stop, world, [timer]),
    detail: attribute(CustomEvent.prototype, "detail"),
    dispatch: method(EventTarget.prototype, "dispatchEvent"),
    isAborted: attribute(AbortSignal.prototype, "aborted"),
    listen: method(EventTarget.prototype, "addEventListener"),
    now: () => readClock(clock),
    reason: attribute(AbortSignal.prototype, "reason"),
    setTimeout: (/** @type {() => void} */ then, /** @type {number} */ ms) => apply(start, world, [then, ms]),
    signal: attribute(AbortController.prototype, "signal"),
    slice: method(String.prototype, "slice"),
    source: method(Function.prototype, "toString"),
    objects,
    arrays: Array.prototype,
    streams: Symbol.asyncIterator,
  };
})();
