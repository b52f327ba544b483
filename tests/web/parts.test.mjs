// V1: what people read: times, amounts, and text that cannot trick the eye.
import assert from "node:assert/strict";
import test from "node:test";
import {
  amount,
  howFar,
  kindOf,
  lasted,
  left,
  pace,
  shareOf,
  span,
  visible,
  wordOf,
} from "../../src/afoot/web/parts.js";

test("characters that are not seen, or steer what is, get visible marks", () => {
  assert.equal(visible("a\u0000b\u001b[31mc\u007f"), "a␀b␛[31mc␡");
  assert.equal(visible("evil\u202etxt.exe"), "evil⟨U+202E⟩txt.exe");
  assert.equal(visible("in\u200bvis\u2066ible\ufeff"), "in⟨U+200B⟩vis⟨U+2066⟩ible⟨U+FEFF⟩");
  assert.equal(visible("half \ud800 a pair"), "half ⟨U+D800⟩ a pair");
  assert.equal(visible("\u3164\u2028"), "⟨U+3164⟩⟨U+2028⟩");
});

test("words, lines and emoji stay as they are", () => {
  for (const text of ["two\nlines\tand a tab", "👩‍👩‍👧‍👦 👩🏽‍💻 ❤️‍🔥", "日本語 עברית", "<b>bold</b>"])
    assert.equal(visible(text), text);
  assert.equal(visible("a\u200db"), "a⟨U+200D⟩b");
});

test("a long text is cut, and says so", () => {
  const text = visible("x".repeat(1_000_000), 100);
  assert.equal(text, `${"x".repeat(100)}… (1,000,000 characters)`);
  assert.equal(visible(null), "");
});

test("how far a call is", () => {
  const call = (progress, total) => ({ latest: { at: 0, progress, total, message: null } });
  assert.deepEqual([howFar(call(37, 120)), shareOf(call(37, 120))], ["37 of 120", 37 / 120]);
  assert.deepEqual([howFar(call(37, null)), shareOf(call(37, null))], ["37", null]);
  assert.deepEqual([howFar(call(0, 0)), shareOf(call(0, 0))], ["0", null]);
  assert.equal(shareOf(call(150, 120)), 1);
  assert.equal(shareOf(call(-1, 120)), 0);
  assert.deepEqual([howFar({ latest: null }), shareOf({ latest: null })], ["", null]);
});

test("times and amounts", () => {
  assert.deepEqual([span(7.9), span(760), span(3723), span(-1)], ["0:07", "12:40", "1:02:03", "0:00"]);
  assert.deepEqual([lasted(0.035), lasted(4.2), lasted(42), lasted(180), lasted(7200)], ["35 ms", "4.2 s", "42 s", "3 min", "2.0 h"]); // prettier-ignore
  assert.deepEqual([amount(1234567), amount(3.14159), amount(42.57)], ["1,234,567", "3.14", "42.6"]);
  assert.deepEqual([left(null), left({ low_s: 30, high_s: 50 }), left({ low_s: 60, high_s: 60 })], ["", "30 s to 50 s left", "about 60 s left"]); // prettier-ignore
  assert.deepEqual(
    [pace(null), pace(3.4), pace(0.5), pace(0.001)],
    ["", "3.4 a second", "30 a minute", "3.6 an hour"],
  );
});

test("what a call does has one word, the most telling", () => {
  const call = { state: "running", open: new Map(), stalled: true, outcome: null };
  assert.equal(kindOf(call), "stalled");
  assert.equal(kindOf({ ...call, hindered: { by: "its tab is hidden" } }), "hindered");
  assert.equal(kindOf({ ...call, open: new Map([["q", {}]]) }), "waiting");
  assert.equal(kindOf({ ...call, state: "cancelling" }), "cancelling");
  assert.equal(wordOf(kindOf({ ...call, state: "finished", outcome: "timed_out" })), "timed out");
});
