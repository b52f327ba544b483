// How a run keeps its name on its way through a browser's own `executeTool`: in the input, under `_meta`.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { getPrototypeOf, hasOwn, objects } = parts.builtins;

  const KEY = "dev.afoot/run";

  /**
   * What waits for its tool to be called: the run, who else hears of it, and the signal of who called.
   * `before` is what stood in the place of the ticket, `aside` what no ticket fits into, if anything did.
   * @typedef {{run: any, monitor: EventTarget | null, caller?: AbortSignal, hadMeta?: boolean, before?: any,
   *   aside?: any}} Ticket
   */

  class Tickets {
    /** @type {Record<string, Ticket>} */
    #waiting = /** @type {any} */ ({ __proto__: null });

    /** Whether a ticket can be put into an input: a plain object, which JSON copies member by member. @param {any} input */
    fits(input) {
      if (typeof input !== "object" || input === null || typeof input.toJSON === "function") return false;
      const kind = getPrototypeOf(input);
      return kind === objects || kind === null;
    }

    /** A copy of an input with a ticket in it. @param {any} input @param {Ticket} ticket */
    issue(input, ticket) {
      ticket.hadMeta = hasOwn(input, "_meta");
      this.#waiting[ticket.run.id] = ticket;
      let meta = ticket.hadMeta ? input._meta : undefined;
      if (typeof meta !== "object" || meta === null || isList(meta)) {
        ticket.aside = meta;
        meta = {};
      }
      ticket.before = hasOwn(meta, KEY) ? meta[KEY] : undefined;
      return { ...input, _meta: { ...meta, [KEY]: ticket.run.id } };
    }

    /** The ticket in an input, which is taken out of it; undefined if there is none of ours. @param {any} input */
    take(input) {
      if (typeof input !== "object" || input === null || !hasOwn(input, "_meta")) return undefined;
      const meta = input._meta;
      if (typeof meta !== "object" || meta === null || !hasOwn(meta, KEY)) return undefined;
      const ticket = typeof meta[KEY] === "string" ? this.#waiting[meta[KEY]] : undefined;
      if (ticket === undefined) return undefined;
      delete this.#waiting[ticket.run.id];
      if (ticket.before === undefined) delete meta[KEY];
      else meta[KEY] = ticket.before;
      if (!ticket.hadMeta) delete input._meta;
      else if (ticket.aside !== undefined) input._meta = ticket.aside;
      return ticket;
    }

    /** Forgets a ticket that nobody took. @param {Ticket} ticket */
    drop(ticket) {
      delete this.#waiting[ticket.run.id];
    }
  }

  const isList = parts.builtins.isArray;

  parts.Tickets = Tickets;
})();
