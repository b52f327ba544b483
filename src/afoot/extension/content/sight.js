// What can be seen of a document from outside: its address and title, whether it is visible, frozen, put away.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];

  const GATHER_MS = 50;
  const TITLE_LIMIT = 500;

  /**
   * Who wants to know: `changed` with what there is to see, `left` at the end of the document or when it is put
   * away, `came` when it is there again.
   * @typedef {{changed: (sight: any) => void, left: (persisted: boolean) => void, came: () => void}} Watcher
   */

  class Sight {
    #watcher;
    #isFrozen = false;
    #isAway = false;
    /** @type {Document | null} */
    #document = null;
    #told = "";
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    #timer;
    /** @type {MutationObserver} */
    #titles = new MutationObserver(() => this.#soon());

    /** @param {Watcher} watcher */
    constructor(watcher) {
      this.#watcher = watcher;
    }

    /** What there is to see now; who reads it has been told. */
    look() {
      const visible = document.visibilityState === "visible";
      const title = document.title.slice(0, TITLE_LIMIT);
      const sight = { url: location.href, title, visible, frozen: this.#isFrozen };
      this.#told = JSON.stringify(sight);
      return sight;
    }

    /** Begins to watch. `document.open()` takes listeners away, so it does so again after that. */
    watch() {
      this.#document = document;
      new MutationObserver(() => this.#listen()).observe(document, { childList: true });
      this.#listen();
    }

    /** A frame's first document gives its window to the next: then this world goes on beside another document. */
    check() {
      if (document === this.#document) return;
      this.watch();
      this.#return();
    }

    #listen() {
      addEventListener("pagehide", this.#hide);
      addEventListener("pageshow", this.#show);
      for (const type of ["visibilitychange", "freeze", "resume"])
        document.addEventListener(type, this.#turn);
      for (const type of ["DOMContentLoaded", "load", "popstate", "hashchange"])
        addEventListener(type, this.#soon);
      /** @type {any} */ (globalThis).navigation?.addEventListener("currententrychange", this.#soon);
      this.#soon();
    }

    // What a page's script dispatches is none of the browser's word, and ends nothing.
    #hide = (/** @type {PageTransitionEvent} */ event) => {
      if (!event.isTrusted) return;
      this.#isAway = true;
      this.#watcher.left(event.persisted);
    };

    #show = () => {
      this.check();
      if (this.#isAway) this.#return();
    };

    #return() {
      this.#isAway = false;
      this.#timer = undefined; // another document does not go on with timers
      this.#watcher.came();
    }

    #turn = (/** @type {Event} */ event) => {
      if (!event.isTrusted) return;
      if (event.type !== "visibilitychange") this.#isFrozen = event.type === "freeze";
      this.#tell();
    };

    #soon = () => {
      this.check();
      this.#timer ??= setTimeout(() => this.#tell(), GATHER_MS);
    };

    #tell() {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      if (this.#isAway) return;
      const title = document.querySelector("title");
      if (title) this.#titles.observe(title, { childList: true, characterData: true, subtree: true });
      const before = this.#told;
      const sight = this.look();
      if (this.#told !== before) this.#watcher.changed(sight);
    }
  }

  parts.Sight = Sight;
})();
