// The history before it is drawn: its time, queries, lanes and trees.
import assert from "node:assert/strict";
import test from "node:test";
import { nestCalls, treeRows } from "../../../src/afoot/web/lib/history/call_pages.js";
import {
  axisTicks,
  lanesOf,
  liveSpan,
  queuedPart,
  runningParts,
  runningSteps,
  spanAt,
  spanOf,
} from "../../../src/afoot/web/lib/history/lanes.js";
import * as range from "../../../src/afoot/web/lib/history/range.js";

const query = (path) => Object.fromEntries(new URL(path, "http://x").searchParams);

test("V1: an address names a range that ends now, or a time from one instant to another", () => {
  assert.deepEqual(range.historyTime({}, 10_000), { since: 6400, until: 10_000, name: "1h" });
  assert.deepEqual(range.historyTime({ range: "15m" }, 10_000).since, 9100);
  assert.deepEqual(range.historyTime({ since: "5", until: "9" }, 10_000), { since: 5, until: 9, name: "" });
  for (const odd of [{ range: "toString" }, { since: "9", until: "5" }, { since: "x", until: "y" }])
    assert.equal(range.historyTime(odd, 10_000).name, "1h", JSON.stringify(odd));
});

test("V1: a selected time lies within the whole time", () => {
  const time = { since: 100, until: 200, name: "" };
  assert.deepEqual(range.selectedTime({ from: "50", to: "150" }, time), { since: 100, until: 150 });
  for (const none of [{}, { from: "150" }, { from: "190", to: "150" }, { from: "300", to: "400" }])
    assert.equal(range.selectedTime(none, time), null, JSON.stringify(none));
});

test("V1: the list has the selected time, and trees only while nothing else narrows it", () => {
  const time = { since: 100, until: 200, name: "" };
  const whole = query(range.pagePath({ from: "120", to: "130" }, time, 0, 50));
  const wanted = { since: "120", until: "130", state: "finished", sort: "-opened", below: "true" };
  assert.deepEqual(whole, { ...wanted, count: "true", roots: "true", limit: "50" });
  const next = query(range.pagePath({ show: "failed", q: "x" }, time, 50, 50));
  assert.equal(next.outcome, range.BAD_OUTCOMES);
  assert.deepEqual([next.q, next.skip, next.roots, next.count], ["x", "50", undefined, undefined]);
  assert.equal(query(range.pagePath({ tool: "x" }, time, 0, 50)).count, undefined, "the summary counts them");
});

test("V1: the summary covers the whole time, and the export what is listed", () => {
  const time = { since: 100, until: 200, name: "" };
  const asked = { from: "120", to: "130", show: "slower", tool: "a b" };
  assert.deepEqual(query(range.summaryPath(asked, time, 60)), {
    since: "100",
    until: "200",
    parts: "60",
    tool: "a b",
    slower: "true",
  });
  assert.equal(query(range.exportPath(asked, time)).since, "120");
});

test("V1: a column sorts the usual way first, then the other; the newest first needs no address", () => {
  assert.equal(range.nextSort("duration", "-opened"), "-duration");
  assert.equal(range.nextSort("duration", "-duration"), "duration");
  assert.equal(range.nextSort("tool", "tool"), "-tool");
  assert.equal(range.nextSort("opened", "opened"), null);
  assert.equal(range.sortOf({ sort: "colour" }), "-opened");
});

const tool = (name, p95_s, shown = 1) => ({
  tool: name,
  server: "local",
  calls: 9,
  shown,
  failed: 0,
  p50_s: 1,
  p95_s,
});
const told = (id, place, opened, finished, ...more) => [id, place, opened, opened, finished, "ok", ...more];
const summary = (tools, spans, more) => ({ since: 0, until: 3600, tools, spans, at_once: [], ...more });

test("V1: a lane for each tool, the slowest first; of many tools the fastest share the last one", () => {
  const slow = Array.from({ length: 7 }, (_, at) => tool(`slow${at}`, 60 + at));
  const tools = [tool("quick", 1), ...slow, tool("fast", 2, 4)];
  const spans = tools.map((_, at) => told(`c${at}`, at, 10, at % 8 ? 100 : 12));
  const lanes = lanesOf(summary(tools, spans), [], 3600);
  assert.deepEqual(lanes.map(({ name }) => name).slice(5), ["slow1", "slow0", "2 other tools"]); // prettier-ignore
  assert.deepEqual([lanes[7].isShared, lanes[7].calls, lanes[7].p95_s], [true, 5, 2]);
  assert.deepEqual(lanes[7].spans.map(({ id }) => id), ["c8", "c0"]); // prettier-ignore
});

test("V1: few tools have a lane each, and a tool without a drawn call has none", () => {
  const tools = [tool("quick", 1), tool("unused", 9), tool("brief", 2)];
  const spans = [told("a", 0, 10, 11), told("b", 2, 10, 12)];
  const lanes = lanesOf(summary(tools, spans), [], 3600);
  assert.deepEqual(lanes.map(({ name, isShared }) => [name, isShared]), [["brief", false], ["quick", false]]); // prettier-ignore
});

test("V1: a call that lives is drawn up to now, in the lane of its tool", () => {
  const open = new Map([["q", { id: "q", kind: "form", at: 80 }]]);
  const call = { id: "x", tool: "new", server: "local", opened: 50, started: 60, open };
  const [lane] = lanesOf(summary([], []), [call], 100);
  assert.equal(lane.name, "new");
  assert.deepEqual(lane.spans[0], liveSpan(call, 100));
  assert.deepEqual([lane.spans[0].finished, lane.spans[0].asked], [100, [[80, 100]]]);
  assert.deepEqual(runningSteps(summary([], [], { until: 100, at_once: [0, 1] }), [call]), [0, 2]);
});

test("V1: a call is blue but for questions, frozen clocks and lost attempts", () => {
  const span = spanOf(["a", 0, 0, 10, 100, "ok", [[20, 30]], [[50, 60]], [[70, 75, 80]]]);
  assert.deepEqual(runningParts(span), [[10, 20], [30, 50], [60, 70], [80, 100]]); // prettier-ignore
  assert.deepEqual(queuedPart(span), [0, 10]);
  const approved = spanOf(["b", 0, 0, 10, 20, "ok", [[0, 9]]]);
  assert.deepEqual([queuedPart(approved), runningParts(approved)], [[9, 10], [[10, 20]]]);
  const refused = spanOf(["c", 0, 0, null, 5, "refused", [[0, 5]]]);
  assert.deepEqual([queuedPart(refused), runningParts(refused)], [null, []]);
});

test("V1: the axis has round times of the local clock", () => {
  const hour = axisTicks({ since: 1000, until: 4600 }, 660, () => 0);
  assert.deepEqual([hour.step, hour.ticks], [600, [1200, 1800, 2400, 3000, 3600, 4200]]);
  const days = axisTicks({ since: 0, until: 604_800 }, 700, () => 3600);
  assert.equal(days.step, 172_800);
  assert.ok(days.ticks.every((at) => (at + 3600) % days.step === 0));
});

test("V1: the pointer finds the call under it, or one that is very near", () => {
  const spans = [spanOf(told("a", 0, 0, 100)), spanOf(told("b", 0, 40, 50)), spanOf(told("c", 0, 200, 200))];
  const at = (time) => spanAt({ spans }, time, 5)?.id ?? null;
  assert.deepEqual([45, 20, 197, 150].map(at), ["b", "a", "c", null]);
});

test("V1: unfolded calls show the calls below them, with lines that lead to them", () => {
  const call = (id) => ({ id });
  const children = new Map([["a", [call("b"), call("c")]], ["b", [call("d")]]]); // prettier-ignore
  const rows = treeRows(nestCalls([call("a"), call("z")], []), children, new Set(["a", "b"]));
  assert.deepEqual(
    rows.map(({ call: { id }, depth, isLast, guides }) => [id, depth, isLast, guides]),
    [["a", 0, false, []], ["b", 1, false, []], ["d", 2, true, [true]], ["c", 1, true, []], ["z", 0, true, []]], // prettier-ignore
  );
  assert.equal(treeRows(nestCalls([call("a")], []), children, new Set()).length, 1);
});

test("V1: a filtered list shows its calls in their trees, with the calls above them for context", () => {
  const call = (id, parent, opened = 0) => ({ id, parent, opened, below: { total: 1 } });
  const above = [call("top", null), call("middle", "top", 1)];
  const listed = [
    call("alone", null),
    call("late", "middle", 9),
    call("early", "middle", 2),
    call("second", "top", 5),
  ];
  const matching = new Set(listed.map(({ id }) => id));
  const told = (toggled, fetched = new Map()) =>
    treeRows(nestCalls(listed, above), fetched, new Set(toggled), matching).map(
      ({ call: { id }, depth, isContext, isOpen }) => `${"-".repeat(depth)}${id}${isContext ? " grey" : ""}${isOpen ? " open" : ""}`,
    ); // prettier-ignore
  assert.deepEqual(told([]), ["alone", "top grey open", "-middle grey open", "--early", "--late", "-second"]);
  assert.deepEqual(told(["top"]), ["alone", "top grey"], "it can be folded");
  const fetched = new Map([["alone", [call("child", "alone")]]]);
  assert.deepEqual(told(["alone", "top"], fetched), ["alone open", "-child grey", "top grey"]);
});
