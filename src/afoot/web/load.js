// What the API says, asked for again whenever it may have changed.

import { get } from "./api.js";
import { h } from "./dom.js";
import { visible } from "./parts.js";
import { effect, ending, signal } from "./signal.js";
import { store } from "./store.js";
import { now } from "./time.js";

/**
 * The newest answer to a path; the old one stays while another is asked for or cannot be had. That is done
 * when what `path` reads changes, after a snapshot, when somebody wants it `again`, and every so often.
 * @param {() => string} path
 * @param {{everyS?: number}} [how]
 */
export function loaded(path, { everyS = 0 } = {}) {
  const [value, problem] = [signal(/** @type {any} */ (null)), signal("")];
  let [asked, isOver, isBusy, isDue, last] = ["", false, false, false, now.peek()];
  const again = async () => {
    isDue = asked !== "";
    if (isBusy) return;
    for (isBusy = true; isDue && !isOver;) {
      isDue = false;
      const mine = asked;
      const answer = await attempt(problem, () => get(mine), () => !isOver && mine === asked); // prettier-ignore
      if (answer && !isOver && mine === asked) value.set(answer);
    }
    isBusy = false;
  };
  effect(() => {
    store.about(); // after a snapshot anything may be otherwise than it was
    asked = path();
    void again();
  });
  effect(() => {
    if (!everyS || now() - last < everyS) return;
    last = now.peek();
    void again();
  });
  ending(() => void (isOver = true));
  return { value, problem, again };
}

/**
 * Have something done, and tell what is wrong, if anybody still wants to know; null then.
 * @param {import("./signal.js").Signal<string>} problem
 * @param {() => Promise<any>} work
 * @param {() => boolean} [isWanted]
 */
export async function attempt(problem, work, isWanted = () => true) {
  let [found, wrong] = [/** @type {any} */ (null), ""];
  try {
    found = await work();
  } catch (error) {
    wrong = error instanceof Error ? error.message : String(error);
  }
  if (isWanted()) problem.set(wrong);
  return found;
}

/** What went wrong with something that somebody did. @param {() => string} problem */
export const trouble = (problem) => () =>
  problem() ? h("p", { class: "problem said", role: "alert" }, visible(problem())) : null;
