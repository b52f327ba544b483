// callPages: a list of calls that is fetched page by page, with the calls below those that are unfolded.

import { get } from "../api.js";
import { attempt } from "../resource.js";
import { batch, computed, effect, onCleanup, signal } from "../signal.js";
import { childrenPath } from "./range.js";

/** @typedef {CallView & {below?: Counts}} ListedCall */
/** @typedef {{call: ListedCall, depth: number, isLast: boolean, guides: boolean[]}} TreeRow `guides`: whether a line goes on at each depth above */
/** What a list keeps while it is not shown. @typedef {{path: string, calls: ListedCall[], counts: CallCounts | null, unfolded: string[], children: [string, ListedCall[]][]}} KeptList */

/** How many calls match, if the first page was asked for that. @typedef {{total: number, roots: number}} CallCounts */

const PAGE = 100;

/**
 * @param {(skip: number, limit: number) => string} path of a page, or empty; the list begins anew when a signal that it
 *   reads changes
 * @param {KeptList | null} [kept] the list as it was when it was left
 */
export function callPages(path, kept = null) {
  const calls = signal(/** @type {ListedCall[]} */ ([]));
  const children = signal(/** @type {Map<string, ListedCall[]>} */ (new Map()));
  const unfolded = signal(/** @type {Set<string>} */ (new Set()));
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
      counts.set(null);
      isLoaded.set(false);
      unfolded.set(new Set());
    });
    void loadMore();
  });

  /** @param {KeptList} before */
  function restore(before) {
    isStale = false;
    batch(() => {
      calls.set(before.calls);
      counts.set(before.counts);
      isLoaded.set(true);
      unfolded.set(new Set(before.unfolded));
      children.set(new Map(before.children));
      isWhole.set(before.calls.length % PAGE > 0 || !before.calls.length);
    });
  }

  /** Fold or unfold the calls below one. @param {string} id @param {boolean} [isOpen] */
  async function fold(id, isOpen = unfolded.peek().has(id)) {
    const ids = new Set(unfolded.peek());
    if (isOpen) ids.delete(id);
    else ids.add(id);
    unfolded.set(ids);
    if (isOpen || children.peek().has(id)) return;
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
      counts: counts.peek(),
      unfolded: [...unfolded.peek()],
      children: [...children.peek()],
    };
  };
  const rows = computed(() => treeRows(calls(), children(), unfolded()));
  return { calls, rows, counts, isLoaded, problem, isWhole, unfolded, loadMore, fold, keep };
}

/**
 * The rows of trees whose unfolded calls show the calls below them.
 * @param {readonly ListedCall[]} roots
 * @param {Map<string, ListedCall[]>} children
 * @param {Set<string>} unfolded
 * @returns {TreeRow[]}
 */
export function treeRows(roots, children, unfolded) {
  /** @type {TreeRow[]} */ const found = [];
  /** @param {readonly ListedCall[]} calls @param {number} depth @param {boolean[]} guides */
  const add = (calls, depth, guides) => {
    for (const [at, call] of calls.entries()) {
      const isLast = at === calls.length - 1;
      found.push({ call, depth, isLast, guides });
      const below = unfolded.has(call.id) ? (children.get(call.id) ?? []) : [];
      add(below, depth + 1, depth ? [...guides, !isLast] : guides);
    }
  };
  add(roots, 0, []);
  return found;
}
