// resource: the newest response of an API path, fetched again whenever it may have changed. busyAction: a request that
// a person makes.

import { get } from "./api.js";
import { h } from "./dom.js";
import { online } from "./event_feed.js";
import { safeText } from "./format.js";
import { effect, onCleanup, signal } from "./signal.js";
import { store } from "./store.js";
import { now } from "./time.js";

/**
 * The newest response of a path. It stays while the next one is being fetched or cannot be had. It is fetched again when
 * a signal that `path` reads changes, after a snapshot, on `refetch`, and every `everyS` seconds.
 * @param {() => string} path
 * @param {{everyS?: number, first?: any}} [how] `first`: the value until the first response
 */
export function resource(path, { everyS = 0, first = null } = {}) {
  const value = signal(/** @type {any} */ (first));
  const problem = signal("");
  let currentPath = "";
  let fetchedAt = now.peek();
  const refetch = serialized(async (isOver) => {
    const requestedPath = currentPath;
    const [answer, error] = requestedPath ? await attempt(get(requestedPath)) : [null, null];
    if (isOver() || requestedPath !== currentPath) return;
    if (answer) value.set(answer);
    problem.set(error?.message ?? "");
  });
  effect(() => {
    store.about(); // after a snapshot anything may have changed
    currentPath = path();
    if (currentPath) void refetch();
  });
  effect(() => {
    if (!everyS || now() - fetchedAt < everyS) return;
    fetchedAt = now.peek();
    void refetch();
  });
  // While the gateway cannot be reached, one line under the top bar says so, and what is shown stays.
  return { value, problem: () => (online() ? problem() : ""), refetch };
}

/**
 * Run the work now, or once more after the current run; never after the owning scope has ended.
 * @param {(isOver: () => boolean) => Promise<unknown>} work
 */
export function serialized(work) {
  let isBusy = false;
  let isDue = false;
  let isOver = false;
  onCleanup(() => void (isOver = true));
  return async () => {
    isDue = true;
    if (isBusy) return;
    for (isBusy = true; isDue && !isOver;) {
      isDue = false;
      await work(() => isOver);
    }
    isBusy = false;
  };
}

/**
 * The result and null, or null and the error.
 * @param {Promise<any>} work
 * @returns {Promise<[any, any]>}
 */
export const attempt = (work) => work.then((found) => [found, null], (error) => [null, error]); // prettier-ignore

/**
 * Work that runs once at a time, with signals for whether it runs and for its error.
 * @param {() => Promise<any>} work
 */
export function busyAction(work) {
  const problem = signal("");
  const isBusy = signal(false);
  const act = async () => {
    if (isBusy.peek()) return;
    isBusy.set(true);
    const [, error] = await attempt(work());
    isBusy.set(false);
    problem.set(error?.message ?? "");
  };
  return { act, busy: () => String(isBusy()), wrong: errorMessage(problem) };
}

/** The message of an error, as an alert. @param {() => string} problem */
export const errorMessage = (problem) => () =>
  problem() ? h("p.problem", { role: "alert" }, safeText(problem())) : null;
