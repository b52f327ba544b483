// Built-ins as they were at document start: a page may replace its own later, and sees and breaks nothing here.
// In the page's world every call goes through these; tables are objects without a prototype, lists are walked by
// index, and promises are awaited, as everything else looks up something that a page can replace.
"use strict";

/**
 * What the content scripts share: each file puts its things here, the last one takes the object away again.
 * @typedef {Record<string, any>} Parts
 */

(() => {
  const world = /** @type {any} */ (globalThis);
  /** @type {Parts} */
  const parts = (world[Symbol.for("dev.afoot.parts")] = { __proto__: null });
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

  const { crypto: dice, performance: watch, Uint8Array: Bytes } = world;
  const { setTimeout: start, clearTimeout: stop } = world;
  const fill = method(dice, "getRandomValues");
  const write = method(Number.prototype, "toString");
  const look = method(watch, "now");

  /** 128 random bits; `randomUUID` is not there on http pages. */
  const makeId = () => {
    const bytes = fill(dice, new Bytes(16));
    let text = "";
    for (let i = 0; i < 16; i += 1) text += (bytes[i] < 16 ? "0" : "") + write(bytes[i], 16);
    return text;
  };

  parts.builtins = {
    __proto__: null,
    ...{ apply, attribute, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, method, ownKeys },
    ...{ setPrototypeOf, makeId, create: Object.create, hasOwn: Object.hasOwn, isArray: Array.isArray },
    ...{ AbortController, CustomEvent, DOMException, Event, EventTarget, String, TypeError },
    ...{ isFinite: Number.isFinite, parse: JSON.parse, stringify: JSON.stringify },
    abort: method(AbortController.prototype, "abort"),
    charCode: method(String.prototype, "charCodeAt"),
    clearTimeout: (/** @type {any} */ timer) => apply(stop, world, [timer]),
    detail: attribute(CustomEvent.prototype, "detail"),
    dispatch: method(EventTarget.prototype, "dispatchEvent"),
    isAborted: attribute(AbortSignal.prototype, "aborted"),
    listen: method(EventTarget.prototype, "addEventListener"),
    now: () => look(watch),
    reason: attribute(AbortSignal.prototype, "reason"),
    setTimeout: (/** @type {() => void} */ then, /** @type {number} */ ms) => apply(start, world, [then, ms]),
    signal: attribute(AbortController.prototype, "signal"),
    slice: method(String.prototype, "slice"),
    source: method(Function.prototype, "toString"),
    objects: Object.prototype,
    arrays: Array.prototype,
    streams: Symbol.asyncIterator,
  };
})();
