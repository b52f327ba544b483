// Channel: carries text between the page's world and the relay's, over one EventTarget that is handed over once, at
// document start (B7). The script that runs second offers it; an offer in a document that may have run script is
// refused. It is no element, because elements go silent with their document, and the first document of a frame passes
// its window on to the next.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { attribute, CustomEvent, detail, dispatch, EventTarget, listen, method, setTimeout } =
    modules.builtins;
  const world = /** @type {any} */ (globalThis);
  const { MouseEvent } = world;
  const relatedTarget = attribute(MouseEvent.prototype, "relatedTarget");
  const acceptOffer = method(Event.prototype, "preventDefault");
  const isAccepted = attribute(Event.prototype, "defaultPrevented");

  const OTHER_SIDE = /** @type {const} */ ({ page: "relay", relay: "page" });

  /** Whether no script of the page can have run yet: no content has been parsed. */
  const isFreshDocument = () => {
    const { documentElement: root, readyState } = document;
    if (root === null) return true;
    if (readyState === "loading" && root.childNodes.length === 0) return true;
    // The initial document of a frame has three elements from the start.
    return (
      location.href === "about:blank" && root.querySelectorAll("*").length <= 2 && root.textContent === ""
    );
  };

  class Channel {
    /** @type {EventTarget | null} */
    #target = null;
    #side;
    #onMessage;
    #onJoined;

    /**
     * @param {"page" | "relay"} side @param {(text: string) => void} onMessage
     * @param {() => void} onJoined called when the other side has joined; messages sent before are lost
     */
    constructor(side, onMessage, onJoined = () => {}) {
      this.#side = side;
      this.#onMessage = onMessage;
      this.#onJoined = onJoined;
    }

    /** Joins the other side, which runs already or will run later. */
    join() {
      listen(world, `afoot-${OTHER_SIDE[this.#side]}`, (/** @type {Event} */ event) => {
        if (this.#target !== null || !isFreshDocument()) return;
        acceptOffer(event);
        this.#setTarget(relatedTarget(event));
      });
      this.#offer();
      // A window that a debugger has paused gets no event until it goes on.
      setTimeout(() => this.#offer(), 0);
    }

    #offer() {
      if (this.#target !== null || !isFreshDocument()) return;
      const target = new EventTarget();
      const offer = new MouseEvent(`afoot-${this.#side}`, {
        __proto__: null,
        relatedTarget: target,
        cancelable: true,
      });
      dispatch(world, offer);
      if (isAccepted(offer)) this.#setTarget(target);
    }

    /** Whether the other side has joined. */
    get isJoined() {
      return this.#target !== null;
    }

    /** Sends the JSON text of a frame. @param {string} text */
    send(text) {
      if (this.#target === null) return;
      dispatch(this.#target, new CustomEvent(this.#side, { __proto__: null, detail: text }));
    }

    /** @param {any} target */
    #setTarget(target) {
      listen(target, OTHER_SIDE[this.#side], (/** @type {Event} */ event) => this.#onMessage(detail(event)));
      this.#target = target;
      this.#onJoined();
    }
  }

  modules.Channel = Channel;
})();
