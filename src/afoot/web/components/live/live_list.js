// liveList: the grid of live calls. Its rows are made as they come into view; keys move, fold, open and answer.

import { h } from "../../lib/dom.js";
import { registerKeys } from "../../lib/keys.js";
import { callPath, navigate, route, withQuery } from "../../lib/router.js";
import { computed, onCleanup, signal } from "../../lib/signal.js";
import { setTimer } from "../../lib/time.js";
import { VirtualList } from "../virtual_list.js";
import { callRow } from "./call_row.js";
import { groupHead, toolRow } from "./other_rows.js";
import { isSameRow } from "./rows.js";

/** @typedef {import("./rows.js").LiveRow} LiveRow */
/** @typedef {import("./rows.js").LiveModel} LiveModel */
/** @typedef {import("./model.js").Model} Model */
/** Heights in px, from the style sheet. @typedef {{call: number, group: number, first: number}} Heights */

const HEADS = [
  ["state", ""],
  ["tool", "Tool"],
  ["progress", "Progress"],
  ["left", "Left"],
  ["message", "Message"],
  ["silent", "Silent"],
  ["elapsed", "Elapsed"],
  ["action", ""],
];
const CONTROLS = "button, a[href]";

/**
 * @param {Model} found
 * @param {{isSelected: (id: string) => boolean, select: (event: MouseEvent, id: string) => void}} actions
 */
export function liveList({ model, holding }, actions) {
  const heights = signal(/** @type {Heights} */ ({ call: 36, group: 28, first: 36 }));
  const rowActions = { ...actions, toggle };
  const list = new VirtualList({
    rows: computed(() => model().rows),
    pinned: () => model().pinned,
    height: () => (row) => heightOf(row, heights()),
    isSame: isSameRow,
    render: (/** @type {() => LiveRow} */ row, /** @type {() => boolean} */ isSeen) =>
      renderRow(row, isSeen, rowActions),
  });
  const activeRow = () => model().rows[list.indexOf(list.activeKey() ?? "")];
  const head = h(
    "div.live-head",
    { role: "row", "aria-rowindex": 1 },
    ...HEADS.map(([name, words]) =>
      h("span", { class: `cell ${name}`, role: "columnheader" }, words || h("span.sr", name)),
    ),
  );
  const node = h(
    "div.live-list",
    {
      role: "treegrid",
      "aria-label": "Live calls",
      "aria-rowcount": () => model().rows.length + 1,
      "aria-colcount": HEADS.length,
      ...holding,
      ...list.props,
      onkeydown: (event) => onArrow(event, list, activeRow) || list.props.onkeydown(event),
    },
    head,
    list.pinnedRows,
    list.scrolledRows,
  );
  watchHeights(node, heights);
  registerListKeys(list, activeRow, () => model().rows);
  return { node, list, activeRow };
}

/** @param {() => LiveRow} row @param {() => boolean} isSeen @param {Parameters<typeof callRow>[2]} actions */
function renderRow(row, isSeen, actions) {
  const { kind } = row();
  if (kind === "group") return groupHead(/** @type {any} */ (row), actions.toggle);
  return kind === "tool"
    ? toolRow(/** @type {any} */ (row), actions.toggle)
    : callRow(/** @type {any} */ (row), isSeen, actions);
}

/** Fold or unfold a group, a run of one tool, or a tree. @param {string} key */
function toggle(key) {
  const known = (route.peek().query.toggled ?? "").split(",").filter(Boolean);
  const name = encodeURIComponent(key);
  const next = known.includes(name) ? known.filter((one) => one !== name) : [...known, name];
  navigate(withQuery({ toggled: next.join(",") }), { replace: true });
}

/** @param {LiveRow} row @param {Heights} heights */
function heightOf(row, { call, group, first }) {
  if (row.kind === "group") return group;
  return row.kind === "call" && row.isFirst ? first : call;
}

/** Follow the heights of the style sheet, which depend on the window. @param {HTMLElement} node @param {Signal<Heights>} heights */
function watchHeights(node, heights) {
  const px = (/** @type {string} */ name) => parseFloat(getComputedStyle(node).getPropertyValue(name));
  const read = () => {
    const next = { call: px("--row-height"), group: px("--group-height"), first: px("--first-height") };
    if (node.isConnected && JSON.stringify(next) !== JSON.stringify(heights.peek())) heights.set(next);
  };
  // A height that changed within the notification would be a loop.
  const resized = new ResizeObserver(() => setTimer(0, read));
  resized.observe(node);
  onCleanup(() => resized.disconnect());
}

/** @param {LiveRow | undefined} row @param {boolean} isOpen */
function setOpen(row, isOpen) {
  const canFold = row && (row.kind !== "call" || row.hasChildren);
  if (!canFold || row.isOpen === isOpen) return false;
  toggle(row.key);
  return true;
}

/**
 * Left and right fold, unfold, and go through the buttons of a row.
 * @param {KeyboardEvent} event
 * @param {VirtualList<LiveRow>} list
 * @param {() => LiveRow | undefined} activeRow
 * @returns {boolean} whether the key was for this
 */
function onArrow(event, list, activeRow) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
  const target = event.target instanceof HTMLElement ? event.target : null;
  const node = /** @type {HTMLElement | null | undefined} */ (target?.closest("[role=row]"));
  if (!step || !node || !target || event.altKey || event.ctrlKey || event.metaKey) return false;
  event.preventDefault();
  if (target === node && setOpen(activeRow(), step > 0)) return true;
  const next = controlBeside(node, target, step);
  if (next) next.focus();
  else if (step < 0 && target === node) list.moveTo(indexAbove(list, activeRow()));
  return true;
}

/**
 * The button of a row that is next on this side; left of the first is the row itself.
 * @param {HTMLElement} node
 * @param {HTMLElement} from
 * @param {number} step
 */
function controlBeside(node, from, step) {
  const controls = /** @type {HTMLElement[]} */ ([...node.querySelectorAll(CONTROLS)]);
  const all = [node, ...controls.filter((one) => one.checkVisibility())];
  return all[all.indexOf(from) + step];
}

/** The index of the row above in the tree; of the row itself if there is none. @param {VirtualList<LiveRow>} list @param {LiveRow | undefined} row */
function indexAbove(list, row) {
  const above = row?.kind === "call" ? row.entry.call.peek().parent : null;
  const found = list.indexOf(above ?? "");
  return found < 0 ? list.indexOf(row?.key ?? "") : found;
}

/**
 * Go to the next call on this side, past the heads of groups.
 * @param {VirtualList<LiveRow>} list
 * @param {readonly LiveRow[]} rows
 * @param {1 | -1} step
 */
function moveCall(list, rows, step) {
  let at = list.active() === "" ? -1 : list.indexOf(list.activeKey() ?? "");
  do at += step;
  while (rows[at]?.kind === "group");
  if (rows[at]) list.moveTo(at);
}

/** @param {VirtualList<LiveRow>} list @param {() => LiveRow | undefined} activeRow @param {() => readonly LiveRow[]} rows */
function registerListKeys(list, activeRow, rows) {
  const hasRows = () => activeRow() !== undefined;
  const canSet = (/** @type {boolean} */ isOpen) => () => {
    const row = activeRow();
    return row !== undefined && (row.kind !== "call" || row.hasChildren) && row.isOpen !== isOpen;
  };
  const open = () => {
    const row = activeRow();
    if (row?.kind === "call" && !row.isRemote) navigate(callPath(row.entry.id));
    else if (row) toggle(row.key);
  };
  const isHere = () => list.active() !== "" && hasRows();
  registerKeys(
    { keys: "j", words: "Next call", when: hasRows, act: () => moveCall(list, rows(), 1), repeats: true },
    { keys: "k", words: "Call before", when: hasRows, act: () => moveCall(list, rows(), -1), repeats: true },
    { keys: "h", words: "Fold", when: canSet(false), act: () => void setOpen(activeRow(), false) },
    { keys: "l", words: "Unfold", when: canSet(true), act: () => void setOpen(activeRow(), true) },
    { keys: "Enter", words: "Open the call", when: isHere, act: open },
  );
}
