// DocumentState: watches the URL, title, visibility and life cycle of the document.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];

  const UPDATE_DELAY_MS = 50;
  const MAX_TITLE = 500;

  /**
   * `onPageHide` is called at the end of the document, or when it enters the back/forward cache; `onPageShow` when it
   * is back.
   * @typedef {{onChange: (state: any) => void, onPageHide: (persisted: boolean) => void, onPageShow: () => void}} DocumentListener
   */

  class DocumentState {
    #listener;
    #isFrozen = false;
    #isHiddenPage = false;
    /** @type {Document | null} */
    #document = null;
    #lastSent = "";
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    #timer;
    /** @type {MutationObserver} */
    #titleObserver = new MutationObserver(() => this.#scheduleUpdate());

    /** @param {DocumentListener} listener */
    constructor(listener) {
      this.#listener = listener;
    }

    /** The state now. It counts as sent: `onChange` is called for the next change alone. */
    read() {
      const visible = document.visibilityState === "visible";
      const title = document.title.slice(0, MAX_TITLE);
      const state = { url: location.href, title, visible, frozen: this.#isFrozen };
      this.#lastSent = JSON.stringify(state);
      return state;
    }

    /** Begins to watch. `document.open()` removes listeners; then they are added again. */
    watch() {
      this.#document = document;
      new MutationObserver(() => this.#listen()).observe(document, { childList: true });
      this.#listen();
    }

    /** Follows the window to its next document: the initial document of a frame passes its window on. */
    checkDocument() {
      if (document === this.#document) return;
      this.watch();
      this.#onReturn();
    }

    #listen() {
      addEventListener("pagehide", this.#onPageHide);
      addEventListener("pageshow", this.#onPageShow);
      for (const type of ["visibilitychange", "freeze", "resume"])
        document.addEventListener(type, this.#onVisibilityChange);
      for (const type of ["DOMContentLoaded", "load", "popstate", "hashchange"])
        addEventListener(type, this.#scheduleUpdate);
      /** @type {any} */ (globalThis).navigation?.addEventListener(
        "currententrychange",
        this.#scheduleUpdate,
      );
      this.#scheduleUpdate();
    }

    // Events that a script of the page dispatches are ignored.
    #onPageHide = (/** @type {PageTransitionEvent} */ event) => {
      if (!event.isTrusted) return;
      this.#isHiddenPage = true;
      this.#listener.onPageHide(event.persisted);
    };

    #onPageShow = () => {
      this.checkDocument();
      if (this.#isHiddenPage) this.#onReturn();
    };

    #onReturn() {
      this.#isHiddenPage = false;
      this.#timer = undefined; // timers of the old document do not run any more
      this.#listener.onPageShow();
    }

    #onVisibilityChange = (/** @type {Event} */ event) => {
      if (!event.isTrusted) return;
      if (event.type !== "visibilitychange") this.#isFrozen = event.type === "freeze";
      this.#sendIfChanged();
    };

    #scheduleUpdate = () => {
      this.checkDocument();
      this.#timer ??= setTimeout(() => this.#sendIfChanged(), UPDATE_DELAY_MS);
    };

    #sendIfChanged() {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      if (this.#isHiddenPage) return;
      const title = document.querySelector("title");
      if (title) this.#titleObserver.observe(title, { childList: true, characterData: true, subtree: true });
      const before = this.#lastSent;
      const state = this.read();
      if (this.#lastSent !== before) this.#listener.onChange(state);
    }
  }

  modules.DocumentState = DocumentState;
})();
