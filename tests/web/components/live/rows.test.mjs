// V1, V6: the rows of the live list: groups, trees, folds, filters, and what stays where it is under the pointer.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { groupsOf, isSameRow, liveRows } from "../../../../src/afoot/web/components/live/rows.js";
import { summary } from "../../../../src/afoot/web/components/live/run_summary.js";
import { beginCall, evolve } from "../../../../src/afoot/web/lib/fold.js";
import { formatPercent, progressFraction, statusMessage } from "../../../../src/afoot/web/lib/format.js";
import { signal } from "../../../../src/afoot/web/lib/signal.js";
import { STATE_WORDS, stateOf } from "../../../../src/afoot/web/lib/state.js";

const AT = 1000;
const NO_FILTER = { state: "", q: "", server: "", group: "state", toggled: new Set() };

/** A call with those below it; `facts` follow the start. */
function entry(id, { tool = "export", server = "local", caller = "c", below = [], facts = [], queued } = {}) {
  const call = beginCall(id, { type: "opened", at: AT - 10, tool, server, caller });
  if (!queued) evolve(call, { type: "started", at: AT - 10 });
  for (const fact of facts) evolve(call, fact);
  for (const child of below) child.call.peek().parent = id;
  return { id, call: signal(call), reading: signal(call), pulse: signal(null), below: signal(below) };
}

const asks = (at = AT - 5) => ({ type: "asked", at, question: { id: "q", key: "k", kind: "form" } });
const ends = (at = AT - 1, outcome = "ok") => ({ type: "finished", at, outcome });
const rowsOf = (roots, filter = {}, held = null) => liveRows(roots, { ...NO_FILTER, ...filter }, AT, held);
/** Rows as text: groups in capitals, calls indented by their depth. */
const drawn = (...given) =>
  rowsOf(...given).rows.map((row) =>
    row.kind === "group"
      ? `${row.title.toUpperCase()} ${row.count}`
      : row.kind === "tool"
        ? `${row.tool} x${row.entries.length}`
        : "  ".repeat(row.guides.length) + row.entry.id,
  );
const many = (count, from = 0, more = {}) => Array.from({ length: count }, (_, at) => entry(`c${at + from}`, more)); // prettier-ignore

test("V1: waiting first, then running in the order of arrival, then what ended last", () => {
  const roots = [
    entry("a"),
    entry("b", { facts: [ends(AT - 3)] }),
    entry("c", { facts: [asks(AT - 2)] }),
    entry("d", { queued: true }),
    entry("e", { facts: [ends(AT - 1)] }),
    entry("f", { facts: [asks(AT - 4)] }),
  ];
  assert.deepEqual(drawn(roots), [
    ...["WAITING FOR YOU 2", "f", "c", "RUNNING 1, and 1 queued", "a", "d", "JUST ENDED 2", "e", "b"],
  ]);
  const { counts, pinned } = rowsOf(roots);
  const { all, waiting, running, queued, ended } = counts;
  assert.deepEqual([all, waiting, running, queued, ended, pinned], [6, 2, 1, 1, 2, 3]);
});

test("V1: a tree stands together, open, with lines where it goes on", () => {
  const roots = [
    entry("a", { below: [entry("b", { below: [entry("c")] }), entry("d", { facts: [ends()] })] }),
  ];
  assert.deepEqual(drawn(roots), ["RUNNING 3", "a", "  b", "    c", "  d"]);
  const guides = rowsOf(roots).rows.slice(1).map((row) => row.guides); // prettier-ignore
  assert.deepEqual(guides, [[], [true], [true, false], [false]]);
  assert.deepEqual(drawn(roots, { toggled: new Set(["b"]) }), ["RUNNING 3", "a", "  b", "  d"]);
});

test("V1: a call below that waits for a person stands with those that wait, and keeps its place in the tree", () => {
  const roots = [
    entry("a", { tool: "report", below: [entry("b", { facts: [asks()], below: [entry("c")] })] }),
  ];
  assert.deepEqual(drawn(roots), ["WAITING FOR YOU 1", "b", "RUNNING 2", "a", "  b", "    c"]);
  const [, waiting, , , place, below] = rowsOf(roots).rows;
  assert.deepEqual([waiting.within, waiting.isPlace, waiting.hasChildren], ["report", false, false]);
  assert.deepEqual([place.within, place.isPlace, place.hasChildren], ["", true, true]);
  assert.equal(below.isPlace, false);
  const keys = rowsOf(roots).rows.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length);
  assert.deepEqual(drawn(roots, { toggled: new Set([place.key]) }).at(-1), "  b");
  assert.deepEqual(drawn(roots, { state: "waiting" }), ["WAITING FOR YOU 1", "b"]);
});

test("V6: more than fifty calls of one tool, or below one call, are one line until it is opened", () => {
  const roots = [entry("first", { tool: "other" }), ...many(51), entry("last", { tool: "other" })];
  assert.deepEqual(drawn(roots), ["RUNNING 53", "first", "export x51", "last"]);
  assert.equal(drawn(roots, { toggled: new Set(["tool running export"]) }).length, 55);
  assert.deepEqual(drawn(many(50)).length, 51);
  const wide = [entry("a", { below: many(51) })];
  assert.deepEqual(drawn(wide), ["RUNNING 52", "a"]);
  assert.equal(drawn(wide, { toggled: new Set(["a"]) }).length, 53);
});

test("V6: all that wait for a person are listed, however many, and stay in view while they are few", () => {
  const roots = many(60, 0, { facts: [asks()] });
  assert.equal(drawn(roots).length, 61);
  assert.equal(rowsOf(roots).pinned, 0);
});

test("V6: a line of one tool says how many run, and the slowest", () => {
  const entries = [...many(78), entry("x", { facts: [ends(AT, "timed_out")] })];
  assert.equal(summary(entries, AT + 180), "78 running, 1 timed out, slowest 3:10");
});

test("V1: filters list what fits, as a tree where a call above fits, and count everything all the same", () => {
  const roots = [
    entry("a", { server: "web", below: [entry("b", { tool: "resize", server: "web" })] }),
    entry("c", { tool: "resize" }),
    entry("d", {
      facts: [ends()],
      below: [entry("e", { tool: "mail", below: [entry("f")], facts: [ends()] })],
    }),
  ];
  assert.deepEqual(drawn(roots, { q: "RESIZE" }), ["RUNNING 2", "b", "c"]);
  const [, b, c] = rowsOf(roots, { q: "RESIZE" }).rows;
  assert.deepEqual([b.within, c.within], ["export", ""]);
  assert.deepEqual(drawn(roots, { server: "web" }), ["RUNNING 2", "a", "  b"]);
  assert.deepEqual(drawn(roots, { state: "ended" }), ["JUST ENDED 2", "d", "  e"]);
  assert.deepEqual(drawn(roots, { q: "export" }), ["RUNNING 2", "a", "f", "JUST ENDED 1", "d"]);
  assert.deepEqual(drawn(roots, { state: "stalled" }), []);
  assert.equal(rowsOf(roots, { state: "stalled" }).counts.all, 6);
  assert.deepEqual(rowsOf(roots).servers, ["local", "web"]);
});

test("V1: grouped by server or caller, or not at all, the waiting are first and the ended last", () => {
  const roots = [
    entry("a", { server: "web", caller: "x" }),
    entry("b", { facts: [ends()] }),
    entry("c", { server: "ci", caller: "y" }),
    entry("d", { server: "web", caller: "y", facts: [asks()] }),
  ];
  assert.deepEqual(drawn(roots, { group: "server" }), [
    ...["WAITING FOR YOU 1", "d", "WEB 1", "a", "CI 1", "c", "JUST ENDED 1", "b"],
  ]);
  assert.deepEqual(drawn(roots, { group: "caller" }), [
    ...["WAITING FOR YOU 1", "d", "X 1", "a", "Y 1", "c", "JUST ENDED 1", "b"],
  ]);
  assert.deepEqual(drawn(roots, { group: "none" }), ["WAITING FOR YOU 1", "d", "a", "c", "b"]);
});

test("V1: a group that is folded keeps its head", () => {
  const toggled = new Set(["group running"]);
  assert.deepEqual(drawn([entry("a"), entry("b", { facts: [ends()] })], { toggled }), [
    ...["RUNNING 1", "JUST ENDED 1", "b"],
  ]);
});

test("V1: under the pointer nothing comes, goes or changes its place", () => {
  const child = entry("b");
  const roots = [entry("a", { below: [child] }), entry("c"), entry("e", { facts: [ends(AT - 2)] })];
  const held = groupsOf(roots, NO_FILTER, AT);
  const before = drawn(roots);
  evolve(roots[1].call.peek(), ends(AT - 1));
  evolve(child.call.peek(), asks());
  child.below.set([entry("f")]);
  const rows = drawn([...roots, entry("d")], {}, held);
  assert.deepEqual(rows.slice(1), ["a", "  b", "c", before[4], "e"]);
  assert.equal(rowsOf([...roots, entry("d")], {}, held).counts.waiting, 1);
  assert.deepEqual(drawn([...roots, entry("d")]), [
    ...["WAITING FOR YOU 1", "b", "RUNNING 3", "a", "  b", "    f", "d", "JUST ENDED 2", "c", "e"],
  ]);
});

test("V5: a call in the last quarter of its silence counts as stalled", () => {
  const { counts } = liveRows([entry("a")], NO_FILTER, AT + 13);
  assert.deepEqual([counts.running, counts.stalled], [0, 1]);
});

test("P8: calls at a gateway behind this one stand below the call that reported them", () => {
  const children = [
    { id: "r1", tool: "knit", state: "running", progress: 1, total: 2 },
    { id: "r2", tool: "sew", state: "finished", outcome: "ok", parent: "r1" },
  ];
  const roots = [entry("a", { facts: [{ type: "reported", at: AT - 1, children }] })];
  assert.deepEqual(drawn(roots), ["RUNNING 1", "a", "  remote r1", "    remote r2"]);
  const [, , first] = rowsOf(roots).rows;
  assert.equal(first.isRemote, true);
  assert.equal(rowsOf(roots).rows[2].entry, first.entry, "it keeps its place while nothing changes");
});

// The terminal agrees with the same vectors (`tests/cli/terminal/live/test_call_table.py`).
const farCalls = JSON.parse(
  readFileSync(new URL("../../../vectors/far_calls.json", import.meta.url), "utf8"),
);

for (const { name, children, rows } of farCalls) {
  test(`V6, P8: calls at a gateway behind this one: ${name}`, () => {
    const roots = [entry("a", { facts: [{ type: "reported", at: AT - 1, children }] })];
    const told = liveRows(roots, NO_FILTER, AT).rows.filter(({ isRemote }) => isRemote);
    const shown = told.map(({ entry: { call }, guides }) => {
      const now = call.peek();
      const share = now.outcome === "ok" ? 1 : progressFraction(now);
      const percent = share === null ? `${now.latest?.progress ?? ""}` : formatPercent(share);
      return [guides.length, now.tool, STATE_WORDS[stateOf(now)], percent, statusMessage(now) ?? ""];
    });
    assert.deepEqual(shown, rows);
  });
}

test("V6: a row that is made again is drawn anew only if it differs", () => {
  const parent = entry("a", { below: [entry("b")] });
  const roots = [parent, entry("c")];
  const rows = () => rowsOf(roots).rows;
  const before = rows();
  assert.deepEqual(rows().map((row, at) => isSameRow(before[at], row)), [false, true, true, true]); // prettier-ignore
  parent.below.peek().push(entry("d"));
  assert.deepEqual(rows().slice(1, 3).map((row, at) => isSameRow(before[at + 1], row)), [true, false]); // prettier-ignore
  assert.equal(isSameRow(before[3], rowsOf([parent, entry("c")]).rows[4]), false, "another call of this id");
});

test("V6: the rows of 10,000 calls are made in a moment", () => {
  const roots = many(10_000);
  rowsOf(roots);
  assert.deepEqual(drawn(roots), ["RUNNING 10,000", "export x10000"]);
});
