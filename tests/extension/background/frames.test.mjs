// The frames that a context may send, and their size.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  MAX_FRAME_BYTES,
  addContext,
  encodeFrame,
  isFrame,
} from "../../../src/afoot/extension/background/frames.js";

test("B7: a context may send what contexts send, and nothing else", () => {
  const refused = [
    { method: "link.hello", params: {} },
    { method: "panel.answer", params: { question: "1" } },
    { method: "tab.gone", params: { room: "1" } },
    { method: "constructor", params: {} },
    { method: "tool.progress", params: { run: "r", reports: "many" } },
    { method: "tool.result", params: { run: 7 } },
  ];
  for (const frame of refused) assert.equal(addContext("1", frame), null);
  for (const odd of [null, 1, "x", {}, { method: 1, params: {} }, { method: "x", params: null }]) {
    assert.equal(isFrame(odd), false);
  }
});

test("B6: a result that is too large becomes an error that says so; other frames are not sent", () => {
  const value = "x".repeat(MAX_FRAME_BYTES);
  const text = encodeFrame({ method: "tool.result", params: { room: "1", run: "r", seq: 4, value } });
  assert.equal(JSON.parse(text).params.error.code, "too_large");
  assert.equal(encodeFrame({ method: "tab.tools", params: { tools: [value] } }), null);
});

test("B7: a frame is measured in bytes, as the gateway does it", () => {
  const value = "語".repeat(MAX_FRAME_BYTES / 2);
  const text = encodeFrame({ method: "tool.result", params: { room: "1", run: "r", seq: 4, value } });
  assert.equal(JSON.parse(text).params.error.code, "too_large");
  assert.equal(encodeFrame({ method: "tab.tools", params: { tools: [value] } }), null);
  const fitting = { method: "tool.result", params: { value: "語".repeat(MAX_FRAME_BYTES / 4) } };
  assert.equal(JSON.parse(encodeFrame(fitting)).params.value.length, MAX_FRAME_BYTES / 4);
});
