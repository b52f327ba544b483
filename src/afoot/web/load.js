// What the API says, asked for again whenever it may have changed; and what somebody has done through it.

import { get } from "./api.js";
import { h } from "./dom.js";
import { visible } from "./parts.js";
import { effect, ending, signal } from "./signal.js";
import { store } from "./store.js";
import { now } from "./time.js";

/**
 * The newest answer to a path; the old one stays while another is asked for or cannot be had. That is done when what
 * `path` reads changes, after a snapshot, when somebody wants it `again`, and every so often.
 * @param {() => string} path
 * @param {{everyS?: number}} [how]
 */
export function loaded(path, { everyS = 0 } = {}) {
  const [value, problem] = [signal(/** @type {any} */ (null)), signal("")];
  let [asked, last] = ["", now.peek()];
  const again = inTurn(async (isOver) => {
    const mine = asked;
    const [answer, error] = mine ? await tried(get(mine)) : [null, null];
    if (isOver() || mine !== asked) return;
    if (answer) value.set(answer);
    problem.set(error?.message ?? "");
  });
  effect(() => {
    store.about(); // after a snapshot anything may be otherwise than it was
    asked = path();
    if (asked) void again();
  });
  effect(() => {
    if (!everyS || now() - last < everyS) return;
    last = now.peek();
    void again();
  });
  return { value, problem, again };
}

/** Do it now, or once more after the one that runs; never when what began it has ended. @param {(isOver: () => boolean) => Promise<unknown>} work */
export function inTurn(work) {
  let [isBusy, isDue, isOver] = [false, false, false];
  ending(() => void (isOver = true));
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

/** What was found, or what is wrong. @param {Promise<any>} work @returns {Promise<[any, any]>} */
export const tried = (work) => work.then((found) => [found, null], (error) => [null, error]); // prettier-ignore

/** Something that is done once at a time, whether it is just being done, and what went wrong. @param {() => Promise<any>} work */
export function acting(work) {
  const [problem, isBusy] = [signal(""), signal(false)];
  const act = async () => {
    if (isBusy.peek()) return;
    isBusy.set(true);
    const [, error] = await tried(work());
    isBusy.set(false);
    problem.set(error?.message ?? "");
  };
  return { act, busy: () => String(isBusy()), wrong: trouble(problem) };
}

/** What went wrong with something that somebody did. @param {() => string} problem */
export const trouble = (problem) => () => (problem() ? h("p.problem", { role: "alert" }, visible(problem())) : null);
