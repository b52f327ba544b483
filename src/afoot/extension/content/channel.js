// The way between the page's world and the relay's: one event target, handed over once at document start (B7). Whoever
// runs second offers one of its own; an offer in a document that may have run script is not taken. It is no element, as
// elements go silent with their document, and a frame's first document gives its window to the next.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { attribute, CustomEvent, detail, dispatch, EventTarget, listen, method, setTimeout } =
    parts.builtins;
  const world = /** @type {any} */ (globalThis);
  const { MouseEvent } = world;
  const related = attribute(MouseEvent.prototype, "relatedTarget");
  const accept = method(Event.prototype, "preventDefault");
  const isAccepted = attribute(Event.prototype, "defaultPrevented");

  const SIDES = /** @type {const} */ ({ page: "relay", relay: "page" });

  /** Whether nothing can have run here yet: no content has been parsed. */
  const isFresh = () => {
    const { documentElement: root, readyState } = document;
    if (root === null) return true;
    if (readyState === "loading" && root.childNodes.length === 0) return true;
    // The document that a frame begins with; its three elements come with it.
    return (
      location.href === "about:blank" && root.querySelectorAll("*").length <= 2 && root.textContent === ""
    );
  };

  class Channel {
    /** @type {EventTarget | null} */
    #target = null;
    #side;
    #hear;
    #joined;

    /**
     * @param {"page" | "relay"} side @param {(text: string) => void} hear
     * @param {() => void} joined the other side is there; what was sent before went nowhere
     */
    constructor(side, hear, joined = () => {}) {
      this.#side = side;
      this.#hear = hear;
      this.#joined = joined;
    }

    /** Meets the other side, which is there already or comes later. */
    join() {
      listen(world, `afoot-${SIDES[this.#side]}`, (/** @type {Event} */ event) => {
        if (this.#target !== null || !isFresh()) return;
        accept(event);
        this.#take(related(event));
      });
      this.#offer();
      // A window that a debugger holds back hears nothing until it is let go.
      setTimeout(() => this.#offer(), 0);
    }

    #offer() {
      if (this.#target !== null || !isFresh()) return;
      const target = new EventTarget();
      const offer = new MouseEvent(`afoot-${this.#side}`, {
        __proto__: null,
        relatedTarget: target,
        cancelable: true,
      });
      dispatch(world, offer);
      if (isAccepted(offer)) this.#take(target);
    }

    /** Whether the other side is there. */
    get isJoined() {
      return this.#target !== null;
    }

    /** Sends the JSON text of a frame. @param {string} text */
    send(text) {
      if (this.#target === null) return;
      dispatch(this.#target, new CustomEvent(this.#side, { __proto__: null, detail: text }));
    }

    /** @param {any} target */
    #take(target) {
      listen(target, SIDES[this.#side], (/** @type {Event} */ event) => this.#hear(detail(event)));
      this.#target = target;
      this.#joined();
    }
  }

  parts.Channel = Channel;
})();
