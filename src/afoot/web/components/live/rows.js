// liveRows: the rows of the live list, from the calls of the store: groups, trees, and long runs of one tool in a line.
// Pure, and called for thousands of calls several times a second.

import { readClocks } from "../../lib/call/clock_reading.js";
import { callFromView } from "../../lib/fold.js";
import { formatCount, joinNonEmpty } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";
import { isLive, stateOf } from "../../lib/state.js";

/** @typedef {import("../../lib/state.js").CallState} CallState */
/** @typedef {"state" | "server" | "caller" | "none"} Grouping */
/** `toggled` are the keys of groups, tools and trees that are not as they are by themselves. */
/** @typedef {{state: string, q: string, server: string, group: string, toggled: ReadonlySet<string>}} LiveFilter */
/** A group's title, and how many calls it has. */
/** @typedef {{kind: "group", key: string, title: string, count: string, note: string, isOpen: boolean}} GroupRow */
/** Many calls of one tool in one line. */
/** @typedef {{kind: "tool", key: string, tool: string, entries: Entry[], isOpen: boolean}} ToolRow */
/**
 * `guides`: for each level above, whether the line of that level goes on below; `within`: the tool of the call above,
 * where that call is not the row above; `isPlace`: it holds the place of a call that waits, which has its own row above.
 * @typedef {{kind: "call", key: string, entry: Entry, guides: boolean[], hasChildren: boolean, isOpen: boolean,
 *   isFirst: boolean, isRemote: boolean, within: string, isPlace: boolean}} CallRow
 */
/** `isFirst`: it is the first of those that wait for a person, and on a phone it has room for its buttons. */
/** @typedef {GroupRow | ToolRow | CallRow} LiveRow */
/** `pinned`: how many of the first rows stay in view; `counts`: of all calls, by what a filter can choose. */
/** @typedef {{rows: LiveRow[], pinned: number, counts: Record<string, number>, servers: string[]}} LiveModel */
/** The group of each call that was listed when a person began to point at the list: nothing else is listed meanwhile. */
/** @typedef {ReadonlyMap<string, string>} HeldGroups */

/** States that a filter can choose, in their order, with their words. @type {Record<string, string>} */
export const FILTERS = {
  waiting: "Waiting",
  running: "Running",
  stalled: "Stalled",
  held_up: "Held up",
  queued: "Queued",
  ended: "Ended",
};
export const WAITING = "waiting";
export const ENDED = "ended";
export const FOLD_ABOVE = 50; // calls of one tool in a group, or below a call, that are one line by themselves
const FLAGS = /** @type {const} */ (["key", "hasChildren", "isOpen", "isFirst", "isRemote", "within", "isPlace"]);
const MAX_PINNED = 6; // waiting calls that stay in view while the list scrolls
const TITLES = { waiting: "Waiting for you", running: "Running", ended: "Just ended" };
const NOTES = { waiting: "clocks stand still; time left to answer", ended: "kept here for 5:00" };

/**
 * @param {readonly Entry[]} roots
 * @param {LiveFilter} filter
 * @param {number} at
 * @param {HeldGroups | null} [held]
 * @returns {LiveModel}
 */
export function liveRows(roots, filter, at, held = null) {
  const walk = new Walk(filter, at, held);
  roots.forEach((entry) => walk.visit(entry, null, ""));
  const { counts, servers } = walk;
  /** @type {LiveRow[]} */ const rows = [];
  let pinned = 0;
  for (const [key, group] of walk.groupsInOrder()) {
    const hasHead = filter.group !== "none" || key === WAITING;
    const isOpen = !hasHead || !filter.toggled.has(groupKey(key));
    if (hasHead) rows.push(groupRow(key, group, isOpen));
    if (isOpen) addGroup(rows, key, group, walk);
    if (key === WAITING && group.tops.length <= MAX_PINNED) pinned = rows.length;
  }
  return { rows, pinned, counts, servers: [...servers].sort() };
}

/**
 * The group of each call that is listed now.
 * @param {readonly Entry[]} roots
 * @param {LiveFilter} filter
 * @param {number} at
 * @returns {HeldGroups}
 */
export function groupsOf(roots, filter, at) {
  const walk = new Walk(filter, at, null);
  roots.forEach((entry) => walk.visit(entry, null, ""));
  return walk.groupOf;
}

/**
 * Whether a row of a call that was made again is drawn as before; whatever changes in its call tells so by itself.
 * @param {LiveRow} before
 * @param {LiveRow} now
 */
export const isSameRow = (before, now) =>
  before.kind === "call" &&
  now.kind === "call" &&
  before.entry === now.entry &&
  before.guides.join() === now.guides.join() &&
  FLAGS.every((name) => before[name] === now[name]);

/** @param {string} key */
export const groupKey = (key) => `group ${key}`;

/** What a filter calls the state of a call. @param {CallState} state */
export function filterOf(state) {
  if (!isLive(state)) return ENDED;
  return state === "retrying" || state === "cancelling" ? "running" : state;
}

/** @typedef {{tops: Entry[], live: number, queued: number, total: number}} Group `tops`: calls with nothing above them here */
/** The nearest call above that is listed, and the group in which its tree stands. @typedef {{entry: Entry, group: string}} Above */

/** One look at all calls: counts, servers, and the groups with the calls that begin a row or a tree there. */
class Walk {
  counts = Object.fromEntries(["all", ...Object.keys(FILTERS)].map((key) => [key, 0]));
  servers = new Set(/** @type {string[]} */ ([]));
  groups = new Map(/** @type {[string, Group][]} */ ([]));
  groupOf = new Map(/** @type {[string, string][]} */ ([]));
  below = new Map(/** @type {[Entry, Entry[]][]} */ ([])); // the calls in the tree of each, of those that are listed
  within = new Map(/** @type {[Entry, string][]} */ ([])); // the tool of the call above one that stands outside its tree
  places = new Set(/** @type {Entry[]} */ ([])); // calls that wait, and keep their place in the tree
  isFiltered;

  /** @param {LiveFilter} filter @param {number} at @param {HeldGroups | null} held */
  constructor(filter, at, held) {
    this.filter = filter;
    this.at = at;
    this.held = held;
    this.isFiltered = Boolean(filter.state || filter.q || filter.server);
    this.wanted = filter.q.toLowerCase();
  }

  /** @param {Entry} entry @param {Above | null} above @param {string} parent the tool of the call that made it */
  visit(entry, above, parent) {
    const call = entry.call.peek();
    const state = stateAt(call, this.at);
    const kind = filterOf(state);
    this.counts.all += 1;
    this.counts[kind] += 1;
    this.servers.add(call.server);
    const group = this.held?.get(entry.id) ?? this.#groupFor(entry, state, above?.group ?? null);
    const isListed = this.held ? this.held.has(entry.id) : !this.isFiltered || this.#fits(call, kind);
    if (isListed) this.#add(entry, state, group, above, parent);
    const next = isListed ? { entry, group: this.places.has(entry) && above ? above.group : group } : above;
    for (const child of entry.below.peek()) this.visit(child, next, call.tool);
  }

  /** The groups with calls, waiting first and ended last, the others in the order in which their first call came. */
  groupsInOrder() {
    const rank = (/** @type {string} */ key) => (key === WAITING ? 0 : key === ENDED ? 2 : 1);
    const found = [...this.groups].sort(([a], [b]) => rank(a) - rank(b));
    for (const [key, group] of found) {
      if (key === WAITING) group.tops.sort((a, b) => askedAt(a) - askedAt(b));
      if (key === ENDED && !this.held) group.tops.sort((a, b) => endedAt(b) - endedAt(a));
    }
    return found;
  }

  /** @param {Entry} entry @param {CallState} state @param {string} group @param {Above | null} above @param {string} parent */
  #add(entry, state, group, above, parent) {
    this.groupOf.set(entry.id, group);
    let found = this.groups.get(group);
    if (!found) this.groups.set(group, (found = { tops: [], live: 0, queued: 0, total: 0 }));
    found.total += 1;
    if (state === "queued") found.queued += 1;
    else if (isLive(state)) found.live += 1;
    const isPlace = group === WAITING && above !== null && above.group !== WAITING;
    if (above && (group === above.group || isPlace)) {
      const beside = this.below.get(above.entry);
      if (beside) beside.push(entry);
      else this.below.set(above.entry, [entry]);
      if (!isPlace) return;
      this.places.add(entry);
    }
    found.tops.push(entry);
    if (parent) this.within.set(entry, parent);
  }

  /** @param {Entry} entry @param {CallState} state @param {string | null} above */
  #groupFor(entry, state, above) {
    if (state === WAITING) return WAITING;
    const isOut = above === WAITING || (above === ENDED && this.isFiltered && isLive(state));
    if (above !== null && !isOut) return above;
    if (this.isFiltered ? !isLive(state) : isOver(entry)) return ENDED;
    const { server, caller } = entry.call.peek();
    const { group } = this.filter;
    return group === "server" ? `server ${server}` : group === "caller" ? `caller ${caller}` : "running";
  }

  /** @param {Call} call @param {string} kind */
  #fits({ id, tool, server, caller, latest, result_line }, kind) {
    const { state, server: wantedServer } = this.filter;
    if ((state && state !== kind) || (wantedServer && wantedServer !== server)) return false;
    return [tool, server, caller, result_line ?? latest?.message, id].some((text) =>
      text?.toLowerCase().includes(this.wanted),
    );
  }
}

/**
 * The state of a call at an instant. A call that is silent for too long is stalled, too.
 * @param {Call} call
 * @param {number} at
 */
function stateAt(call, at) {
  const mayBeSilent = call.state === "running" && call.clocks.idle_s !== null && !call.open.size;
  return stateOf(call, mayBeSilent ? readClocks(call, at) : null);
}

/** @param {string} key @param {Group} group @param {boolean} isOpen @returns {GroupRow} */
function groupRow(key, { live, queued, total }, isOpen) {
  const isCounted = key !== WAITING && key !== ENDED;
  const count = isCounted
    ? joinNonEmpty(formatCount(live), queued && `and ${formatCount(queued)} queued`)
    : formatCount(total);
  const known = /** @type {keyof typeof TITLES} */ (key);
  const title = TITLES[known] ?? key.replace(/^\w+ /, "");
  return { kind: "group", key: groupKey(key), title, count, note: NOTES[/** @type {"ended"} */ (key)] ?? "", isOpen };
}

/**
 * The rows of a group. Many calls of one tool are one row, at the place of the first.
 * @param {LiveRow[]} rows
 * @param {string} key
 * @param {Group} group
 * @param {Walk} walk
 */
function addGroup(rows, key, { tops }, walk) {
  const long = key === WAITING ? new Map() : longRuns(tops);
  tops.forEach((entry, at) => {
    const { tool } = entry.call.peek();
    const entries = long.get(tool);
    if (!entries) return addTree(rows, entry, [], walk, { isFirst: key === WAITING && at === 0 });
    if (entries[0] !== entry) return; // it is in the row of the first
    const toolKey = `tool ${key} ${tool}`;
    const isOpen = walk.filter.toggled.has(toolKey);
    rows.push({ kind: "tool", key: toolKey, tool, entries, isOpen });
    if (isOpen) for (const one of entries) addTree(rows, one, [], walk);
  });
}

/** The calls of each tool that has too many for a row each. @param {Entry[]} entries */
function longRuns(entries) {
  if (entries.length <= FOLD_ABOVE) return new Map();
  const byTool = Map.groupBy(entries, ({ call }) => call.peek().tool);
  return new Map([...byTool].filter(([, run]) => run.length > FOLD_ABOVE));
}

/**
 * A call, and below it its tree where that is open.
 * @param {LiveRow[]} rows
 * @param {Entry} entry
 * @param {boolean[]} guides
 * @param {Walk} walk
 * @param {{isFirst?: boolean, isPlace?: boolean}} [how]
 */
function addTree(rows, entry, guides, walk, { isFirst = false, isPlace = false } = {}) {
  const hasPlace = !isPlace && walk.places.has(entry); // its tree stands there
  const children = hasPlace ? [] : childrenOf(entry, walk);
  const hasChildren = children.length > 0;
  // What was searched for is not hidden in a tree.
  const isOpenByItself = children.length <= FOLD_ABOVE && (walk.isFiltered || entry.call.peek().state !== "finished");
  const key = isPlace ? `place of ${entry.id}` : entry.id;
  const isOpen = hasChildren && isOpenByItself !== walk.filter.toggled.has(key);
  const isRemote = entry.isRemote === true;
  const within = isPlace ? "" : (walk.within.get(entry) ?? "");
  rows.push({ kind: "call", key, entry, guides, hasChildren, isOpen, isFirst, isRemote, within, isPlace });
  if (!isOpen) return;
  children.forEach((child, at) =>
    addTree(rows, child, [...guides, at < children.length - 1], walk, { isPlace: walk.places.has(child) }),
  );
}

/** The calls to show below a call. @param {Entry} entry @param {Walk} walk */
function childrenOf(entry, walk) {
  const here = walk.below.get(entry) ?? [];
  const { remote } = entry.call.peek();
  if (!remote?.length || walk.isFiltered) return here;
  const above = entry.isRemote ? entry.remoteId : null;
  const own = remote.filter((one) => (one.parent ?? null) === above).map((one) => remoteEntry(one, remote));
  return [...here, ...own];
}

/** @type {WeakMap<RemoteCall, Entry>} */
const remoteEntries = new WeakMap();

/**
 * A call at a gateway behind this one, as an entry. Each change of it is another object, and makes another entry.
 * @param {RemoteCall} known
 * @param {RemoteCall[]} all the calls there, for those below it
 * @returns {Entry}
 */
function remoteEntry(known, all) {
  const entry = remoteEntries.get(known) ?? newRemoteEntry(known);
  remoteEntries.set(known, entry);
  entry.call.peek().remote = all;
  return entry;
}

/** @param {RemoteCall} known @returns {Entry} */
function newRemoteEntry({ id, tool, state, outcome = null, progress = null, total = null, message = null }) {
  const numbers = { outcome, progress, total, message, opened: 0, finished: null };
  const lifecycle = /** @type {CallView["state"]} */ (state);
  const call = signal(callFromView({ id, tool, server: "", caller: "", state: lifecycle, ...numbers }));
  const below = signal(/** @type {Entry[]} */ ([]));
  return { id: `remote ${id}`, call, reading: call, pulse: signal(null), below, isRemote: true, remoteId: id };
}

/** @param {Entry} entry @returns {boolean} whether it and all calls below it have ended */
const isOver = ({ call, below }) => call.peek().state === "finished" && below.peek().every(isOver);

/** @param {Entry} entry */
const endedAt = ({ call }) => call.peek().finished ?? 0;

/** When a call began to ask. @param {Entry} entry */
const askedAt = ({ call }) => call.peek().open.values().next().value?.at ?? 0;
