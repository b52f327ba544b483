// The pure parts of the lists: a histogram in words, a new server, an allowlist entry, and the answer of a lookup.
import assert from "node:assert/strict";
import test from "node:test";
import { describeHistogram, histogramPosition } from "../../../src/afoot/web/components/tool/histogram.js";
import { answerOf } from "../../../src/afoot/web/components/lists/lookup.js";
import { serverOf } from "../../../src/afoot/web/components/lists/add_server.js";
import { entryWords } from "../../../src/afoot/web/components/tool/approval.js";
import { now } from "../../../src/afoot/web/lib/time.js";

const BINS = [
  [1, 2, 3],
  [2, 5, 0],
  [5, 10, 1],
];

test("V1, P9: a histogram says what it shows", () => {
  assert.equal(describeHistogram(BINS), "3 took 1.0 s to 2.0 s, 1 took 5.0 s to 0:10");
  assert.equal(describeHistogram([]), "nothing yet");
});

test("V1: a value has its place between its column's edges", () => {
  const places = [1, 1.5, 3.5, 0.5, 99].map((value) => histogramPosition(BINS, value));
  assert.deepEqual(places, [0, 0.5 / 3, 1.5 / 3, 0, 1]);
});

test("V1, U1: a new server is an address, or a command with arguments", () => {
  assert.deepEqual(serverOf(" https://x.example/mcp "), { url: "https://x.example/mcp" });
  const quoted = serverOf(`npx -y "a b" 'c d'`);
  assert.deepEqual(quoted, { command: "npx", args: ["-y", "a b", "c d"] });
  assert.deepEqual(serverOf("run"), { command: "run", args: [] });
});

test("V1, A4: an entry of the allowlist says what it allows, for whom, and whether it still holds", () => {
  now.set(10_000);
  const entry = {
    id: "e",
    server: "s",
    tools: { t: "d" },
    changed: [],
    scope: "tool",
    since: 9990,
    by: "operator",
  };
  assert.equal(
    entryWords({ ...entry, until: null, caller: null }, "t"),
    "Allowed always, by operator just now",
  );
  const narrow = { ...entry, until: null, caller: "cursor", arguments: '{"a": 1}', changed: ["t"] };
  const words = entryWords(narrow, "t");
  assert.ok(words.startsWith('Allowed with exactly {"a": 1}, for cursor, by operator'));
  assert.ok(words.endsWith("its definition has changed since, so it asks again"));
});

test("V1, F3: the call of a read has its contents, and that of a prompt its messages", () => {
  const resource = { uri: "a://b", text: "x" };
  assert.deepEqual(answerOf({ content: [{ type: "resource", resource }] }), { contents: [resource] });
  const messages = [{ role: "user", content: { type: "text", text: "hi" } }];
  assert.deepEqual(answerOf({ content: [], structured: { messages } }), { messages });
});
