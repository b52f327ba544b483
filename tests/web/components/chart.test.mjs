// V1: what a histogram shows, and how it says it in words.
import assert from "node:assert/strict";
import test from "node:test";
import { histogramPosition, describeHistogram } from "../../../src/afoot/web/components/chart.js";

const BINS = [
  [1, 2, 3],
  [2, 5, 0],
  [5, 10, 1],
];

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
