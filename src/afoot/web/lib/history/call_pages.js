// callPages: a list of calls that is fetched page by page, with the calls below those that are unfolded. The calls of a
// filtered list stand in their trees; calls above them that do not match are there for context.

import { get } from "../api.js";
import { attempt } from "../resource.js";
import { batch, computed, effect, onCleanup, signal } from "../signal.js";
import { childrenPath } from "./range.js";

/** @typedef {CallView & {below?: Counts}} ListedCall */
/**
 * `guides`: whether a line goes on at each depth above; `hasBelow`: it can be unfolded; `isContext`: it does not match the
 * filters, but a call in its tree does.
 * @typedef {{call: ListedCall, depth: number, isLast: boolean, guides: boolean[], hasBelow: boolean, isOpen: boolean, isContext: boolean}} TreeRow
 */
/** Calls in their trees: those without a known call above them, and by call those below it. @typedef {{roots: ListedCall[], below: Map<string, ListedCall[]>}} Trees */
/** What a list keeps while it is not shown. @typedef {{path: string, calls: ListedCall[], above: ListedCall[] | null, counts: CallCounts | null, toggled: string[], children: [string, ListedCall[]][]}} KeptList */

/** How many calls match, if the first page was asked for that. @typedef {{total: number, roots: number}} CallCounts */

const PAGE = 100;

/**
 * @param {(skip: number, limit: number) => string} path of a page, or empty; the list begins anew when a signal that it
 *   reads changes
 * @param {KeptList | null} [kept] the list as it was when it was left
 */
export function callPages(path, kept = null) {
  const calls = signal(/** @type {ListedCall[]} */ ([]));
  const above = signal(/** @type {ListedCall[] | null} */ (null)); // calls above these; null: the list has none to nest
  const children = signal(/** @type {Map<string, ListedCall[]>} */ (new Map()));
  const toggled = signal(/** @type {Set<string>} */ (new Set())); // calls that are not as they are by themselves
  const counts = signal(/** @type {CallCounts | null} */ (null));
  const isLoaded = signal(false);
  const problem = signal("");
  const isWhole = signal(false);
  let first = "";
  let version = 0; // of the list: an answer for an older one is dropped
  let isBusy = false;
  let isStale = true; // the calls are of another path, or older
  let isOver = false;
  onCleanup(() => void (isOver = true));

  const loadMore = async () => {
    if (isBusy || isWhole.peek() || !first) return;
    isBusy = true;
    const begun = version;
    const skip = isStale ? 0 : calls.peek().length;
    const [page, error] = await attempt(get(skip ? path(skip, PAGE) : first));
    isBusy = false;
    if (isOver) return;
    if (begun !== version) return void loadMore();
    batch(() => {
      problem.set(error?.message ?? "");
      if (!page) return;
      isStale = false;
      isLoaded.set(true);
      if (!skip) counts.set("total" in page ? { total: page.total, roots: page.roots } : null);
      calls.set(skip ? [...calls.peek(), ...page.calls] : page.calls);
      above.set("above" in page ? [...((skip && above.peek()) || []), ...page.above] : null);
      isWhole.set(page.calls.length < PAGE);
    });
  };
  effect(() => {
    const wanted = path(0, PAGE);
    const isOther = wanted !== first;
    first = wanted;
    version += 1;
    if (version === 1 && kept?.path === wanted) return restore(kept);
    isStale = true;
    batch(() => {
      isWhole.set(false);
      if (!isOther) return; // what is shown stays until the answer comes
      calls.set([]);
      above.set(null);
      counts.set(null);
      isLoaded.set(false);
      toggled.set(new Set());
    });
    void loadMore();
  });

  /** @param {KeptList} before */
  function restore(before) {
    isStale = false;
    batch(() => {
      calls.set(before.calls);
      above.set(before.above);
      counts.set(before.counts);
      isLoaded.set(true);
      toggled.set(new Set(before.toggled));
      children.set(new Map(before.children));
      isWhole.set(before.calls.length % PAGE > 0 || !before.calls.length);
    });
  }

  const trees = computed(() => nestCalls(calls(), above() ?? []));
  const isUnfolded = (/** @type {string} */ id) => trees().below.has(id) !== toggled().has(id);

  /** Fold or unfold the calls below one. @param {string} id @param {boolean} [isOpen] */
  async function fold(id, isOpen = isUnfolded(id)) {
    const ids = new Set(toggled.peek());
    if (isOpen === trees().below.has(id)) ids.add(id);
    else ids.delete(id);
    toggled.set(ids);
    if (isOpen || trees().below.has(id) || children.peek().has(id)) return;
    const [page, error] = await attempt(get(childrenPath(id)));
    if (isOver) return;
    problem.set(error?.message ?? "");
    if (page) children.set(new Map(children.peek()).set(id, page.calls));
  }

  /** @returns {KeptList | null} */
  const keep = () => {
    if (!isLoaded.peek()) return null;
    return {
      path: first,
      calls: calls.peek(),
      above: above.peek(),
      counts: counts.peek(),
      toggled: [...toggled.peek()],
      children: [...children.peek()],
    };
  };
  const rows = computed(() => {
    const matching = above() && new Set(calls().map(({ id }) => id));
    return treeRows(trees(), children(), toggled(), matching);
  });
  return { calls, rows, counts, isLoaded, problem, isWhole, isUnfolded, loadMore, fold, keep };
}

/**
 * Listed calls in their trees. A tree stands where its first listed call stood; calls below a call are in the order of
 * their start.
 * @param {readonly ListedCall[]} calls
 * @param {readonly ListedCall[]} above the calls above them
 * @returns {Trees}
 */
export function nestCalls(calls, above) {
  const known = new Map([...above, ...calls].map((one) => [one.id, one]));
  const placed = new Set();
  /** @type {ListedCall[]} */ const roots = [];
  /** @type {Map<string, ListedCall[]>} */ const below = new Map();
  for (const listed of calls) {
    for (let call = listed; !placed.has(call.id);) {
      placed.add(call.id);
      const parent = known.get(call.parent ?? "");
      if (!parent) {
        roots.push(call);
        break;
      }
      below.set(parent.id, [...(below.get(parent.id) ?? []), call]);
      call = parent;
    }
  }
  for (const found of below.values()) found.sort((a, b) => a.opened - b.opened);
  return { roots, below };
}

/**
 * The rows of trees. A call with listed calls below it is open by itself; another one shows the calls below it, which are
 * fetched, when it is unfolded.
 * @param {Trees} trees
 * @param {Map<string, ListedCall[]>} fetched by call
 * @param {Set<string>} toggled
 * @param {Set<string> | null} [matching] the calls that the filters let through; null: there are no filters
 * @returns {TreeRow[]}
 */
export function treeRows({ roots, below }, fetched, toggled, matching = null) {
  /** @type {TreeRow[]} */ const found = [];
  /** @param {readonly ListedCall[]} calls @param {number} depth @param {boolean[]} guides */
  const add = (calls, depth, guides) => {
    for (const [at, call] of calls.entries()) {
      const { id } = call;
      const isLast = at === calls.length - 1;
      const listed = below.get(id);
      const isOpen = (listed !== undefined) !== toggled.has(id);
      const hasBelow = listed !== undefined || (call.below?.total ?? 0) > 0;
      const isContext = matching !== null && !matching.has(id);
      found.push({ call, depth, isLast, guides, hasBelow, isOpen, isContext });
      if (isOpen) add(listed ?? fetched.get(id) ?? [], depth + 1, depth ? [...guides, !isLast] : guides);
    }
  };
  add(roots, 0, []);
  return found;
}
