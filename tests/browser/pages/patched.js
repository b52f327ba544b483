// A page that replaces every built-in it can reach, and notes whatever passes its hands.
"use strict";
window.caught = [];
{
  const note = window.caught.push.bind(window.caught);
  const write = JSON.stringify;
  const spoil = (object, name) => {
    object[name] = function (...given) {
      for (const one of given)
        note(typeof one === "string" ? one : String(one?.detail ?? one?.type ?? typeof one));
      return new Date();
    };
  };
  for (const [object, ...names] of [
    [EventTarget.prototype, "dispatchEvent", "addEventListener"],
    [JSON, "parse", "stringify"],
    [Promise.prototype, "then", "catch", "finally"],
    [Promise, "resolve", "all"],
    [window, "setTimeout", "clearTimeout"],
    [Object, "create", "keys", "assign", "hasOwn", "defineProperty", "getPrototypeOf"],
    [Reflect, "apply", "ownKeys"],
    [Function.prototype, "call", "bind", "toString"],
    [String.prototype, "slice", "charCodeAt"],
    [Array, "isArray"],
    [Array.prototype, "push", "map", "join", "forEach"],
    [Map.prototype, "get", "set"],
    [performance, "now"],
    [AbortController.prototype, "abort"],
    [crypto, "getRandomValues"],
    [WeakMap.prototype, "get", "set"],
    [RegExp.prototype, "test", "exec"],
    [Number, "isFinite"],
    [Document.prototype, "createElement"],
  ])
    for (const name of names) spoil(object, name);
  for (const name of [
    "CustomEvent",
    "MouseEvent",
    "Event",
    "EventTarget",
    "AbortController",
    "DOMException",
    "Promise",
  ])
    window[name] = function () {
      note(name);
    };
  Object.prototype.toJSON = function () {
    note("toJSON " + write(Reflect.ownKeys?.(this) ?? ""));
    return "forged";
  };
  Array.prototype[Symbol.iterator] = function () {
    note("iterator");
    return { next: () => ({ done: true }) };
  };
  for (const name of ["detail", "bubbles", "reason", "dropped", "once", "message"])
    Object.prototype.__defineGetter__(name, function () {
      note("getter " + name);
      return undefined;
    });
}
