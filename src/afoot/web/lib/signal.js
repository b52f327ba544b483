// Reactive values: signal, computed, effect and batch; and scopes, which clean up what was created in them.

/** @typedef {() => void} Cleanup */
/** @typedef {{mark: Cleanup, sources: Set<Set<Subscriber>>}} Subscriber `sources` are the sets that it is in */

/** @type {Subscriber | null} */
let activeReader = null;
/** @type {Cleanup[] | null} */
let activeOwner = null;
/** @type {Set<Cleanup>} */
const pendingEffects = new Set();
let batchDepth = 0;

/**
 * A value; `touch` notifies of a change inside it, `peek` reads it without a subscription, `isRead` says whether anything
 * has one.
 * @template T
 * @param {T} value
 * @returns {Signal<T>}
 */
export function signal(value) {
  /** @type {Set<Subscriber>} */
  const subscribers = new Set();
  const read = () => {
    subscribe(subscribers);
    return value;
  };
  const set = (/** @type {T} */ next) => {
    if (Object.is(next, value)) return;
    value = next;
    notify(subscribers);
  };
  const isRead = () => subscribers.size > 0;
  return Object.assign(read, { set, touch: () => notify(subscribers), peek: () => value, isRead });
}

/**
 * A value computed from others, again after they have changed.
 * @template T
 * @param {() => T} compute
 * @returns {() => T}
 */
export function computed(compute) {
  /** @type {Set<Subscriber>} */
  const subscribers = new Set();
  /** @type {{value: T} | null} */
  let cached = null;
  const invalidate = () => {
    unsubscribe(own);
    cached = null;
  };
  /** @type {Subscriber} */
  const own = {
    sources: new Set(),
    mark() {
      invalidate();
      notify(subscribers);
    },
  };
  activeOwner?.push(invalidate);
  return () => {
    subscribe(subscribers);
    cached ??= { value: runWith(own, null, compute) };
    return cached.value;
  };
}

/**
 * Run now, and again when a value it read has changed; the cleanups of the last run come first.
 * @param {() => void} run
 * @returns {Cleanup}
 */
export function effect(run) {
  /** @type {Cleanup[]} */
  const cleanups = [];
  const clear = () => {
    unsubscribe(own);
    runAll(cleanups);
  };
  const rerun = () => {
    clear();
    runWith(own, cleanups, run);
  };
  /** @type {Subscriber} */
  const own = { sources: new Set(), mark: () => void pendingEffects.add(rerun) };
  const end = () => {
    clear();
    pendingEffects.delete(rerun);
  };
  activeOwner?.push(end);
  rerun();
  return end;
}

/**
 * A value computed from others at once. Unlike `computed`, it tells its readers only when it is another one.
 * @template T
 * @param {() => T} compute
 * @returns {() => T}
 */
export function distinct(compute) {
  /** @type {Signal<T> | undefined} */ let value;
  effect(() => {
    const next = compute();
    if (value) value.set(next);
    else value = signal(next);
  });
  return /** @type {Signal<T>} */ (/** @type {unknown} */ (value));
}

/**
 * The result of a function, and a cleanup of everything that it created.
 * @template T
 * @param {() => T} create
 * @returns {[T, Cleanup]}
 */
export function scope(create) {
  /** @type {Cleanup[]} */
  const cleanups = [];
  return [runWith(null, cleanups, create), () => runAll(cleanups)];
}

/** Run this when the current effect or scope ends. @param {Cleanup} cleanup */
export function onCleanup(cleanup) {
  activeOwner?.push(cleanup);
}

/** Change many values; effects run once, afterwards. @param {() => void} change */
export function batch(change) {
  batchDepth += 1;
  try {
    change();
  } finally {
    batchDepth -= 1;
    if (batchDepth === 0) runPendingEffects();
  }
}

function runPendingEffects() {
  // An effect may add others while it runs; a Set's iterator visits those, too.
  for (const run of pendingEffects) if (pendingEffects.delete(run)) run();
}

/**
 * Call a function with another reader and owner.
 * @template T
 * @param {Subscriber | null} reader
 * @param {Cleanup[] | null} owner
 * @param {() => T} call
 * @returns {T}
 */
function runWith(reader, owner, call) {
  const readerBefore = activeReader;
  const ownerBefore = activeOwner;
  activeReader = reader;
  activeOwner = owner;
  try {
    return call();
  } finally {
    activeReader = readerBefore;
    activeOwner = ownerBefore;
  }
}

/** @param {Set<Subscriber>} subscribers */
function subscribe(subscribers) {
  if (!activeReader) return;
  subscribers.add(activeReader);
  activeReader.sources.add(subscribers);
}

/** @param {Subscriber} subscriber */
function unsubscribe(subscriber) {
  for (const source of subscriber.sources) source.delete(subscriber);
  subscriber.sources.clear();
}

/** @param {Set<Subscriber>} subscribers */
function notify(subscribers) {
  batch(() => subscribers.forEach((one) => one.mark()));
}

/** @param {Cleanup[]} cleanups */
function runAll(cleanups) {
  for (const cleanup of cleanups.splice(0)) cleanup();
}
