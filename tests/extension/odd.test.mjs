// What strange values must not do: cost others the link, hang a run, or break what shows them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LARGEST, encode } from "../../src/afoot/extension/background/frames.js";
import { siteOf } from "../../src/afoot/extension/background/place.js";
import { Room } from "../../src/afoot/extension/background/room.js";
import { load } from "./parts.mjs";

const { encoding, Outbox } = load();
const nested = (levels) => {
  let value = 1;
  for (let i = 0; i < levels; i += 1) value = [value];
  return value;
};

test("B7: a frame is measured in bytes, as the gateway does it", () => {
  const value = "語".repeat(LARGEST / 2);
  const text = encode({ method: "tool.result", params: { room: "1", run: "r", seq: 4, value } });
  assert.equal(JSON.parse(text).params.error.code, "too_large");
  assert.equal(encode({ method: "tab.tools", params: { tools: [value] } }), null);
  const fitting = { method: "tool.result", params: { value: "語".repeat(LARGEST / 4) } };
  assert.equal(JSON.parse(encode(fitting)).params.value.length, LARGEST / 4);
});

test("G3: a result is measured in bytes", () => {
  assert.throws(() => encoding.encodeResult("語".repeat(12_000_000)), /36000002 bytes/);
  assert.equal(encoding.encodeResult("x".repeat(12_000_000)).length, 12_000_002);
});

test("B6: what is nested too deeply for the gateway is an error at once, or left out", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent = [];
  const outbox = new Outbox((frame) => sent.push(frame));
  for (const [run, levels] of [
    ["a", 501],
    ["b", 499],
  ]) {
    outbox.open(run);
    const reports = [{ message: "m", data: nested(levels) }];
    outbox.take({ method: "tool.progress", params: { run, seq: 1, reports } });
    outbox.take({ method: "tool.result", params: { run, seq: 2, value: nested(levels) } });
  }
  assert.deepEqual(sent[0].params.reports, [{ message: "m" }]);
  assert.match(sent[1].params.error.message, /nested/);
  assert.deepEqual([sent[1].params.run, sent[1].params.seq], ["a", 2]);
  assert.deepEqual([sent[2].params.reports[0].data, sent[3].params.value], [nested(499), nested(499)]);
});

test("C6: that a run waits for a person is said again, too", () => {
  const sent = [];
  const outbox = new Outbox((frame) => sent.push(frame));
  outbox.open("a");
  outbox.take({ method: "tool.asking", params: { run: "a", message: "send the form" } });
  outbox.replay();
  assert.deepEqual(sent[1], sent[0]);
  assert.equal(sent.length, 2);
});

test("B7: a document without an origin belongs to the site of its address, or of its tab", () => {
  const tab = { url: "https://shop.example/a" };
  const sites = [
    [{ origin: "https://in.example", url: "https://in.example/x", tab }, "https://in.example"],
    [{ origin: "null", url: "https://in.example/x", tab }, "https://in.example"],
    [{ origin: "null", url: "about:srcdoc", tab }, "https://shop.example"],
    [{ origin: "null", url: "about:srcdoc", tab: {} }, ""],
    [undefined, ""],
  ];
  for (const [sender, site] of sites) assert.equal(siteOf(sender), site);
});

test("B7: no room can put something into the hello that the gateway refuses", () => {
  const way = { send: () => {}, isBusy: () => false, count: () => {} };
  const running = [{ run: "a", seq: 1.5 }, { run: "b", seq: "7" }, { run: "c", seq: 1e300 }, { run: 5 }];
  const room = new Room({ id: "1.0.d", url: "" }, {}, { running: [...running, { run: "d", seq: 7 }] }, way);
  room.hear({ method: "tool.progress", params: { run: "a", seq: 2.5, reports: [] } });
  assert.deepEqual(
    room.running.map(({ run, seq }) => [run, seq]),
    [
      ["a", 0],
      ["b", 0],
      ["c", 0],
      ["d", 7],
    ],
  );
});
