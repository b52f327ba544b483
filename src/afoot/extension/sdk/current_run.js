// The connection of the SDK to the plugin context that runs it. A unit test has none, and everything works without.

/**
 * The second argument of a tool's `handle`. In a unit test it may be missing.
 * @typedef {object} ToolContext
 * @property {AbortSignal} signal aborted when the call is cancelled or has timed out; `reason` says why
 * @property {(report?: string | ProgressReport) => void} reportProgress says how far the work is; never throws
 * @property {() => void} alive says that the work goes on, without progress
 * @property {string} toolExecutionId names this run
 * @property {(ms: number) => Promise<void>} sleep waits, also in a hidden tab, until the signal is aborted
 * @property {Log} log writes into the history of this call
 */

/** @typedef {{progress?: number, total?: number, message?: string, data?: unknown}} ProgressReport */
/** @typedef {Partial<ToolContext>} PartialContext */
/** @typedef {{context?: PartialContext, signal?: AbortSignal, timeoutMs?: number}} WaitOptions */
/** @typedef {Record<"debug" | "info" | "warn" | "error", (...values: unknown[]) => void>} Log */

const runtime = {
  /** The contexts of the open runs. @type {Set<PartialContext>} */
  runs: new Set(),
  /** Sends a local frame to the carrier; false if it cannot be reached now. */
  send: /** @type {((method: string, params: object) => boolean) | undefined} */ (undefined),
};

/**
 * The run of a wait that names none: the only open one, if there is exactly one.
 * @returns {PartialContext | undefined}
 */
function currentRun() {
  return runtime.runs.size === 1 ? [...runtime.runs][0] : undefined;
}
