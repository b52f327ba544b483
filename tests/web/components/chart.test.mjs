// V1: what the drawings show, and how they say it in words.
import assert from "node:assert/strict";
import test from "node:test";
import { histogramPosition, plotPoints, describeHistogram } from "../../../src/afoot/web/components/chart.js";

const point = (at, progress, total = null) => ({ at, progress, total });
const BINS = [
  [1, 2, 3],
  [2, 5, 0],
  [5, 10, 1],
];

test("a curve begins at the left below and ends at the right, as high as it came", () => {
  const { line, top, took, words } = plotPoints([
    point(100, 0, 120),
    point(110, 60, 120),
    point(120, 90, 120),
  ]);
  assert.deepEqual(line[0], { x: 0, y: 140 });
  assert.deepEqual(line[1], { x: 300, y: 70 });
  assert.deepEqual(line[2], { x: 600, y: 35 });
  assert.deepEqual([top, took, words], ["120", "20 s", "90 of 120 after 20 s"]);
});

test("without a total the newest value is the top, and numbers may be under nothing", () => {
  const { line, words } = plotPoints([point(0, -10), point(10, 10)]);
  assert.deepEqual([line[0].y, line[1].y, words], [140, 0, "10 after 10 s"]);
});

test("nothing is drawn of nothing, nor of one point or of what is no number", () => {
  for (const points of [[], [point(1, 1)], [point(1, null), point(2, null)], [point(1, NaN), point(2, 3)]])
    assert.equal(plotPoints(points), null);
});

test("points of one moment, and zeros, make no odd numbers", () => {
  for (const { x, y } of plotPoints([point(5, 0, 0), point(5, 0, 0)]).line)
    assert.ok(Number.isFinite(x) && Number.isFinite(y));
});

test("of very many points some are drawn, the last among them", () => {
  const many = Array.from({ length: 100_000 }, (_, at) => point(at, at, 100_000));
  const { line } = plotPoints(many);
  assert.ok(line.length <= 402);
  assert.equal(line.at(-1).x, 600);
});

test("a histogram says what it shows", () => {
  assert.equal(describeHistogram(BINS), "3 took 1.0 s to 2.0 s, 1 took 5.0 s to 10 s");
  assert.equal(describeHistogram([]), "nothing yet");
});

test("a value has its place between its column's edges", () => {
  assert.equal(histogramPosition(BINS, 1), 0);
  assert.equal(histogramPosition(BINS, 1.5), 0.5 / 3);
  assert.equal(histogramPosition(BINS, 3.5), 1.5 / 3);
  assert.equal(histogramPosition(BINS, 0.5), 0);
  assert.equal(histogramPosition(BINS, 99), 1);
});
