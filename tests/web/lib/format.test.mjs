// V1: what people read: times, amounts, and text that cannot trick the eye.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import {
  formatBytes,
  formatCount,
  formatElapsed,
  formatEstimate,
  formatLeft,
  formatNumber,
  formatProgress,
  progressFraction,
  safeText,
  formatPercent,
  formatSmallPercent,
  formatSpan,
} from "../../../src/afoot/web/lib/format.js";

test("characters that are not seen, or steer what is, get visible marks", () => {
  assert.equal(safeText("a\u0000b\u001b[31mc\u007f"), "a␀b␛[31mc␡");
  assert.equal(safeText("evil\u202etxt.exe"), "evil⟨U+202E⟩txt.exe");
  assert.equal(safeText("in\u200bvis\u2066ible\ufeff"), "in⟨U+200B⟩vis⟨U+2066⟩ible⟨U+FEFF⟩");
  assert.equal(safeText("half \ud800 a pair"), "half ⟨U+D800⟩ a pair");
  assert.equal(safeText("\u3164\u2028"), "⟨U+3164⟩⟨U+2028⟩");
});

test("words, lines and emoji stay as they are", () => {
  for (const text of ["two\nlines\tand a tab", "👩‍👩‍👧‍👦 👩🏽‍💻 ❤️‍🔥", "日本語 עברית", "<b>bold</b>"])
    assert.equal(safeText(text), text);
  assert.equal(safeText("a\u200db"), "a⟨U+200D⟩b");
});

test("a long text is cut, and says so", () => {
  const text = safeText("x".repeat(1_000_000), 100);
  assert.equal(text, `${"x".repeat(100)}… (1,000,000 characters)`);
  assert.equal(safeText(null), "");
});

test("how far a call is", () => {
  const call = (progress, total) => ({ latest: { at: 0, progress, total, message: null } });
  assert.deepEqual([formatProgress(call(37, 120)), progressFraction(call(37, 120))], ["37 of 120", 37 / 120]);
  assert.deepEqual([formatProgress(call(37, null)), progressFraction(call(37, null))], ["37", null]);
  assert.deepEqual([formatProgress(call(0, 0)), progressFraction(call(0, 0))], ["0", null]);
  assert.equal(progressFraction(call(150, 120)), 1);
  assert.equal(progressFraction(call(-1, 120)), 0);
  assert.deepEqual([formatProgress({ latest: null }), progressFraction({ latest: null })], ["", null]);
  const below = { latest: { at: 0, progress: 0.41, total: 2, message: null, source: "below" } };
  assert.deepEqual([formatProgress(below), progressFraction(below)], ["21 %", 0.205]);
});

test("times and amounts", () => {
  assert.deepEqual(
    [formatElapsed(7.9), formatElapsed(760), formatElapsed(3723), formatElapsed(-1)],
    ["0:07", "12:40", "1:02:03", "0:00"],
  );
  assert.deepEqual(
    [formatNumber(1234567), formatNumber(3.14159), formatNumber(42.57)],
    ["1,234,567", "3.14", "42.6"],
  );
});

test("V1: a span has tenths below ten seconds, and never jumps back where it changes its form", () => {
  assert.deepEqual([-1, 0, 8.44, 9.94, 9.96, 42.9, 725, 3723].map(formatSpan), [
    "0.0 s",
    "0.0 s",
    "8.4 s",
    "9.9 s",
    "0:10",
    "0:42",
    "12:05",
    "1:02:03",
  ]);
});

test("V6: the time that is left and the time that was used add up to the limit", () => {
  assert.deepEqual([-1, 5.64, 9.94, 9.96, 10.2, 285.4, 300].map(formatLeft), [
    ...["0.0 s", "5.6 s", "9.9 s", "0:10", "0:11", "4:46", "5:00"],
  ]);
  const seconds = (text) => text.split(":").reduce((sum, digits) => sum * 60 + Number(digits), 0);
  for (let used = 10.05; used < 290; used += 0.37)
    assert.equal(seconds(formatSpan(used)) + seconds(formatLeft(300 - used)), 300, `${used} s`);
});

test("V1: figures are written in one way: estimates, per cent, counts, sizes", () => {
  assert.deepEqual([formatEstimate(null), formatEstimate({ left_s: 84.2 }), formatEstimate({ left_s: 0.2 })], ["", "~1:24", "~0:01"]); // prettier-ignore
  assert.deepEqual([0, 0.6, 0.999, 1].map(formatPercent), ["0 %", "60 %", "99 %", "100 %"]);
  assert.deepEqual([0, 0.0178, 0.12, 1].map(formatSmallPercent), ["0 %", "1.8 %", "12 %", "100 %"]);
  assert.deepEqual([12, 1234, 1234567].map(formatCount), ["12", "1,234", "1,234,567"]);
  assert.deepEqual([812, 84_000, 1_234_000].map(formatBytes), ["812 bytes", "84 kB", "1.23 MB"]);
});

test("V6: figures are written as in the terminal", () => {
  const vectors = JSON.parse(readFileSync(new URL("../../vectors/figures.json", import.meta.url), "utf8"));
  const formats = {
    span: formatSpan,
    elapsed: formatElapsed,
    left: formatLeft,
    estimate: (left_s) => formatEstimate({ left_s }),
    percent: formatPercent,
  };
  for (const [kind, format] of Object.entries(formats))
    for (const [value, text] of vectors[kind]) assert.equal(format(value), text, `${kind} ${value}`);
});
