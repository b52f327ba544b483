// Why no tool can run in a tab.
import assert from "node:assert/strict";
import { test } from "node:test";
import { unavailableReason } from "../../../src/afoot/extension/background/tabs.js";

test("B6: a tab without a context says what to do", () => {
  assert.equal(unavailableReason({ discarded: false }), "ungranted");
  assert.equal(unavailableReason({ url: "chrome://settings/", discarded: false }), "closed to extensions");
  assert.equal(
    unavailableReason({ url: "https://a.example/", status: "complete", discarded: false }),
    "reload",
  );
  assert.equal(unavailableReason({ url: "https://a.example/", status: "loading", discarded: false }), "");
});
