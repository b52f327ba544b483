// The time axis of a waterfall: readable steps, whatever the span and the width.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  axisLabel,
  axisSpan,
  axisStep,
  axisTimes,
  mergeTicks,
  zoomLevels,
  zoomWord,
} from "../../../../src/afoot/web/lib/call/timescale.js";

test("V5: from a millisecond to a week, labels are some way apart and the whole fits", () => {
  for (const span of [0.001, 0.02, 0.9, 3, 12, 59, 246, 3601, 40_000, 604_800]) {
    for (const width of [140, 620, 1400]) {
      const whole = axisSpan(span, width);
      const step = axisStep(whole, width);
      const times = axisTimes(0, whole, step);
      assert.ok(whole >= span && whole <= Math.max(span, 0.01) * 2, `${span} in ${whole}`);
      assert.ok((step / whole) * width >= 60, `${step} of ${whole} in ${width}`);
      assert.equal(new Set(times.map((at) => axisLabel(at, step))).size, times.length, `${span}: ${times}`);
    }
  }
});

test("V5: a call of 4:06 has a label every half minute, and zooms of a minute and of ten seconds", () => {
  const whole = axisSpan(246, 620);
  assert.deepEqual([whole, axisStep(whole, 620)], [270, 30]);
  assert.deepEqual(
    axisTimes(0, whole, 30)
      .map((at) => axisLabel(at, 30))
      .slice(0, 3),
    ["0:00", "0:30", "1:00"],
  );
  assert.deepEqual(zoomLevels(246).map(zoomWord), ["1:00", "0:10"]);
  assert.deepEqual(zoomLevels(3).map(zoomWord), ["1.0 s", "0.1 s"]);
});

test("V5: the axis of a live call stays for a while as it grows", () => {
  const seen = new Set();
  for (let span = 60; span < 120; span++) seen.add(axisSpan(span, 620));
  assert.ok(seen.size <= 13, [...seen].join());
});

test("V5: dense reports merge into a band", () => {
  const merged = mergeTicks(Array.from({ length: 5000 }, (_, n) => n / 50));
  assert.equal(merged.length, 50);
  assert.deepEqual(mergeTicks([1, 1.2, 30]), [1, 30]);
});
