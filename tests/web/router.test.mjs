// V1: every view, filter and selection is an address.
import assert from "node:assert/strict";
import test from "node:test";
import { callAt, having, read, route, toolAt } from "../../src/afoot/web/router.js";

test("addresses lead to views", () => {
  const cases = {
    "/": "live",
    "/live": "live",
    "/inbox": "inbox",
    "/tools": "tools",
    "/calls/abc": "call",
    "/calls": "lost",
  };
  for (const [address, view] of Object.entries(cases)) assert.equal(read(address).view, view, address);
  assert.equal(read("/live/more").view, "lost");
});

test("names and ids come back as they went in", () => {
  for (const name of ["shop/export", "a b?c#d", "ünï/%41", "a//b"]) {
    assert.equal(read(toolAt(name)).params.name, name, name);
    assert.equal(read(callAt(name)).params.id, name, name);
  }
});

test("a half-written escape is taken as it stands", () => {
  assert.equal(read("/tools/100%").params.name, "100%");
});

test("a query is changed by parts, and what is empty is left out", () => {
  route.set(read("/history?q=a%20b&tool=x"));
  assert.equal(having({ tool: null, state: "live" }), "/history?q=a+b&state=live");
  assert.equal(having({ q: "", tool: "" }), "/history");
});
