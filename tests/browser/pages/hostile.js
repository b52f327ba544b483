// A page that replaces what everybody uses, and notes whatever comes by.
"use strict";
window.caught = [];
{
  const note = window.caught.push.bind(window.caught);
  const write = JSON.stringify;
  const told = (value) => {
    try {
      note(typeof value === "string" ? value : write(value));
    } catch {
      note(String(value));
    }
  };
  /** Replaces a method by one that notes its arguments and then does nothing of use. */
  const spoil = (object, name, result) => {
    object[name] = function (...given) {
      given.forEach(told);
      told(this?.detail);
      return result;
    };
  };
  spoil(EventTarget.prototype, "dispatchEvent", true);
  spoil(EventTarget.prototype, "addEventListener");
  spoil(EventTarget.prototype, "removeEventListener");
  spoil(Promise.prototype, "then", new Promise(() => {}));
  spoil(Promise.prototype, "catch", new Promise(() => {}));
  spoil(Promise.prototype, "finally", new Promise(() => {}));
  spoil(JSON, "stringify", '{"method":"tool.result","params":{"value":"forged"}}');
  spoil(JSON, "parse", { method: "tool.cancel", params: {} });
  spoil(window, "fetch", new Promise(() => {}));
  spoil(window, "postMessage");
  spoil(window, "queueMicrotask");
  spoil(crypto, "getRandomValues", new Uint8Array(16));
  spoil(Array.prototype, "push", 0);
  spoil(Array.prototype, "map", []);
  spoil(Array.prototype, "forEach");
  spoil(Map.prototype, "get");
  spoil(Map.prototype, "set");
  spoil(Object, "create", {});
  spoil(Object, "keys", []);
  spoil(Function.prototype, "call");
  spoil(Function.prototype, "apply");
  spoil(Reflect, "apply");
  spoil(AbortController.prototype, "abort");
  window.CustomEvent = class Forged extends CustomEvent {
    constructor(...given) {
      super(...given);
      told(given[1]?.detail);
    }
  };
  window.MouseEvent = window.Event = window.CustomEvent;
  const detail = Object.getOwnPropertyDescriptor(CustomEvent.prototype, "detail") ?? {};
  Object.defineProperty(CustomEvent.prototype, "detail", { ...detail, get: () => told("detail") });
}
