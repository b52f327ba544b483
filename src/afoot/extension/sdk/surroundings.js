// What the SDK knows of the room it runs in; a unit test has none, and everything works without.

/**
 * What a tool's `handle` is given beside its input. In a unit test there may be none.
 * @typedef {object} ToolContext
 * @property {AbortSignal} signal aborted when the call is cancelled or has timed out; `reason` says why
 * @property {(report?: string | ProgressReport) => void} reportProgress says how far the work is; never throws
 * @property {() => void} alive says that the work goes on, though it is no further
 * @property {string} toolExecutionId names this run
 * @property {(ms: number) => Promise<void>} sleep waits, also in a hidden tab, until the signal is aborted
 * @property {Log} log writes into the history of this call
 */

/** @typedef {{progress?: number, total?: number, message?: string, data?: unknown}} ProgressReport */
/** @typedef {Partial<ToolContext>} SomeContext */
/** @typedef {{context?: SomeContext, signal?: AbortSignal, timeoutMs?: number}} Waiting */
/** @typedef {Record<"debug" | "info" | "warn" | "error", (...words: unknown[]) => void>} Log */

const surroundings = {
  /** The runs that are open in this room. @type {Set<SomeContext>} */
  runs: new Set(),
  /** Sends a local frame to the carrier; false if it cannot be reached now. */
  send: /** @type {((method: string, params: object) => boolean) | undefined} */ (undefined),
};

/** The run that a wait belongs to if it names none: the only one there is. @returns {SomeContext | undefined} */
function onlyRun() {
  return surroundings.runs.size === 1 ? [...surroundings.runs][0] : undefined;
}
