// The parts of the history that need no page: how the selection moves, what a row adds, and what is drawn.
import assert from "node:assert/strict";
import test from "node:test";
import { asideText } from "../../../src/afoot/web/components/history/call_rows.js";
import { movedSelection } from "../../../src/afoot/web/components/history/lane_chart.js";
import { drawLanes, heightOf } from "../../../src/afoot/web/components/history/lane_drawing.js";
import { localTime } from "../../../src/afoot/web/components/history/time_range.js";
import { lanesOf } from "../../../src/afoot/web/lib/history/lanes.js";

test("V1: arrow keys move the selected time and its end, within the whole time", () => {
  const whole = { since: 0, until: 600 };
  const first = movedSelection(whole, null, -1, false);
  assert.deepEqual(first, { since: 500, until: 600 });
  assert.deepEqual(movedSelection(whole, first, -1, false), { since: 490, until: 590 });
  assert.deepEqual(movedSelection(whole, first, 1, false), first);
  assert.deepEqual(movedSelection(whole, first, -1, true), { since: 500, until: 590 });
  assert.deepEqual(movedSelection(whole, { since: 500, until: 510 }, -1, true), { since: 500, until: 510 });
});

test("V1: a row tells of attempts, questions and a wait before the start", () => {
  const call = { opened: 0, started: 20, approved: "auto" };
  const span = (asked, lost) => ({ asked, lost });
  assert.equal(asideText(call, undefined), " · queued 0:20");
  assert.equal(asideText({ ...call, approved: "user" }, undefined), " · asked 0:20");
  assert.equal(asideText(call, span([[0, 33]], [[0, 1, 2]])), " · 2 attempts · asked 0:33");
  assert.equal(asideText({ ...call, started: 0.2 }, undefined), "");
});

test("V1: a custom time starts with the time that is shown", () => {
  assert.equal(localTime(new Date(2026, 10, 5, 9, 3, 7).getTime() / 1000), "2026-11-05T09:03:07");
});

/** A canvas that notes what is filled, by colour. */
function notedCanvas() {
  const fills = [];
  const noted = { fillStyle: "", strokeStyle: "", lineWidth: 1 };
  const nothing = () => {};
  const context = new Proxy(noted, {
    get(target, name) {
      if (name === "fillRect") return (...box) => void fills.push([target.fillStyle, ...box]);
      if (name === "roundRect") return (...box) => void fills.push([target.fillStyle, ...box]);
      return name in target ? target[name] : nothing;
    },
  });
  return { context, fills };
}

const NAMES = ["run", "mid", "ask", "askGround", "bad", "badGround", "idle", "line", "track", "ink"];
const COLOURS = Object.fromEntries(NAMES.map((name) => [name, name]));

function drawn(tools, spans, width = 1000) {
  const summary = { since: 0, until: 1000, tools, spans, at_once: [1] };
  const lanes = lanesOf(summary, [], 1000);
  const { context, fills } = notedCanvas();
  drawLanes(context, { lanes, steps: [0, 3], ticks: [500], since: 0, until: 1000, width, colours: COLOURS });
  const of = (name) => fills.filter(([colour]) => colour === name).map(([, ...box]) => box.map(Math.round));
  return { lanes, of };
}

const tool = { tool: "t", server: "s", calls: 1, shown: 1, failed: 0, p50_s: 1, p95_s: 1 };

test("V1: running is blue, a question amber, a lost attempt striped red, and queued dotted grey", () => {
  const { of } = drawn([tool], [
    ["a", 0, 100, 120, 300, "ok", [[200, 220]]],
    ["b", 0, 400, 400, 500, "failed"],
    ["c", 0, 600, 600, 700, "ok", [], [[640, 660]], [[600, 610, 630]]],
  ]); // prettier-ignore
  assert.deepEqual(of("run").map(([left, , width]) => [left, width]), [[120, 80], [220, 80], [630, 10], [660, 40]]); // prettier-ignore
  assert.deepEqual(
    of("askGround").map(([left, , width]) => [left, width]),
    [[200, 20]],
  );
  assert.deepEqual(of("ask").length, 4, "dashes where its clocks stood still");
  assert.deepEqual(of("badGround").map(([left, , width]) => [left, width]), [[400, 100], [600, 10]]); // prettier-ignore
  assert.ok(of("idle").length >= 5 && of("idle").every(([left]) => left >= 100 && left < 120));
  assert.deepEqual(of("line"), [[500, 0, 1, heightOf(1)]]);
});

test("V1: of calls in one pixel one is drawn, and a failed one stands out among them", () => {
  const many = Array.from({ length: 5000 }, (_, at) => [`c${at}`, 0, 100 + at / 5000, 100, 100.9, "ok"]);
  assert.ok(drawn([tool], many).of("run").length <= 4);
  const slow = Array.from({ length: 7 }, (_, at) => ({ ...tool, tool: `slow${at}`, p95_s: 9 }));
  const tools = [tool, { ...tool, tool: "fast" }, ...slow];
  const rest = slow.map((_, at) => [`s${at}`, at + 2, 500, 500, 509, "ok"]);
  const { lanes, of } = drawn(tools, [...many, ["bad", 1, 100.2, 100.2, 100.3, "failed"], ...rest]);
  assert.deepEqual([lanes.length, lanes[7].name], [8, "2 other tools"]);
  assert.deepEqual([of("mid").length, of("bad").length, of("run").length], [2, 1, 7]);
});
