// Values that tell who depends on them: signal, computed, effect, batch; and scopes that end what they began.

/** @typedef {() => void} End */
/** @typedef {{mark: End, sources: Set<Set<Watch>>}} Watch */

/** @type {Watch | null} */ let reader = null;
/** @type {End[] | null} */ let owner = null;
/** @type {Set<End>} */ const due = new Set();
let depth = 0;

/** A value; `touch` tells of a change inside it. @template T @param {T} value @returns {Signal<T>} */
export function signal(value) {
  /** @type {Set<Watch>} */ const watching = new Set();
  const read = () => (track(watching), value);
  const set = (/** @type {T} */ next) => void (Object.is(next, value) || ((value = next), wake(watching)));
  return Object.assign(read, { set, touch: () => wake(watching), peek: () => value });
}

/** A value made of others, anew if they have changed. @template T @param {() => T} make @returns {() => T} */
export function computed(make) {
  /** @type {Set<Watch>} */ const watching = new Set();
  /** @type {{of: T} | null} */ let made = null;
  const forget = () => (leave(own), (made = null));
  /** @type {Watch} */ const own = { sources: new Set(), mark: () => (forget(), wake(watching)) };
  owner?.push(forget);
  return () => (track(watching), (made ??= { of: within(own, null, make) }).of);
}

/** Run now and when what it read has changed; what it began ends first. @param {End} run @returns {End} */
export function effect(run) {
  /** @type {End[]} */ const begun = [];
  const clear = () => (leave(own), finish(begun));
  const again = () => (clear(), within(own, begun, run));
  /** @type {Watch} */ const own = { sources: new Set(), mark: () => void due.add(again) };
  const end = () => (clear(), void due.delete(again));
  owner?.push(end);
  again();
  return end;
}

/** What is made, and the end of all it began. @template T @param {() => T} make @returns {[T, End]} */
export function scope(make) {
  /** @type {End[]} */ const begun = [];
  return [within(null, begun, make), () => finish(begun)];
}

/** Have this done when the effect or scope that runs now ends. @param {End} end */
export const ending = (end) => void owner?.push(end);

/** Change many values; effects run once, after. @param {End} change */
export function batch(change) {
  depth++;
  try {
    change();
  } finally {
    if (--depth === 0) for (const run of due) if (due.delete(run)) run();
  }
}

/** @template T @param {Watch | null} watch @param {End[] | null} list @param {() => T} make @returns {T} */
function within(watch, list, make) {
  const [before, above] = [reader, owner];
  [reader, owner] = [watch, list];
  try {
    return make();
  } finally {
    [reader, owner] = [before, above];
  }
}

/** @param {Set<Watch>} watching */
const track = (watching) => void (reader && (watching.add(reader), reader.sources.add(watching)));
/** @param {Set<Watch>} watching */
const wake = (watching) => batch(() => watching.forEach((one) => one.mark()));
/** @param {Watch} own */
const leave = (own) => (own.sources.forEach((one) => one.delete(own)), own.sources.clear());
/** @param {End[]} begun */
const finish = (begun) => begun.length && begun.splice(0).forEach((end) => end());
