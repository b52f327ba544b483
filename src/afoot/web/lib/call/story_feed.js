// storyFeed: the story of a call, fetched again while the call or a call below it lives and changes.

import { get } from "../api.js";
import { attempt, serialized } from "../resource.js";
import { callPath } from "../router.js";
import { effect, onCleanup, signal } from "../signal.js";
import { store } from "../store.js";
import { setTimer } from "../time.js";

const MIN_PAUSE_MS = 500;
const PAUSE_FACTOR = 8; // a story that takes long to read is read more rarely: an eighth of the time at most

/**
 * The newest story of a call, or null, and the error of the last request.
 * @param {string} id
 */
export function storyFeed(id) {
  const story = signal(/** @type {Story | null} */ (null));
  const problem = signal("");
  let earliest = 0;
  let cancelTimer = () => {};
  let isWaiting = false;
  const fetchStory = serialized(async (isOver) => {
    const began = performance.now();
    const [answer, error] = await attempt(get(`/api${callPath(id)}/story`));
    if (isOver()) return;
    if (answer) story.set(answer);
    problem.set(error?.message ?? "");
    const now = performance.now();
    earliest = now + Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (now - began));
  });
  const fetchSoon = () => {
    if (isWaiting) return;
    isWaiting = true;
    cancelTimer = setTimer(Math.max(0, earliest - performance.now()), () => {
      isWaiting = false;
      void fetchStory();
    });
  };
  effect(() => {
    store.about(); // after a snapshot anything may have changed
    if (!store.get(id)) store.roots(); // the call may be added later
    readTree(store.get(id));
    fetchSoon();
  });
  onCleanup(() => cancelTimer());
  return { story, problem };
}

/** Subscribe to every change of a call and of those below it. @param {Entry | undefined} entry */
function readTree(entry) {
  if (!entry) return;
  entry.reading();
  entry.call();
  entry.below().forEach(readTree);
}
