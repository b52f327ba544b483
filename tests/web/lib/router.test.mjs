// V1: every view, filter and selection is an address.
import assert from "node:assert/strict";
import test from "node:test";
import { callPath, withQuery, parseRoute, route, toolPath } from "../../../src/afoot/web/lib/router.js";

test("addresses lead to views", () => {
  const cases = {
    "/": "live",
    "/live": "live",
    "/inbox": "inbox",
    "/tools": "tools",
    "/calls/abc": "call",
    "/calls": "lost",
  };
  for (const [address, view] of Object.entries(cases)) assert.equal(parseRoute(address).view, view, address);
  assert.equal(parseRoute("/live/more").view, "lost");
});

test("names and ids come back as they went in", () => {
  for (const name of ["shop/export", "a b?c#d", "ünï/%41", "a//b"]) {
    assert.equal(parseRoute(toolPath(name)).params.name, name, name);
    assert.equal(parseRoute(callPath(name)).params.id, name, name);
  }
});

test("a half-written escape is taken as it stands", () => {
  assert.equal(parseRoute("/tools/100%").params.name, "100%");
});

test("a query is changed by parts, and what is empty is left out", () => {
  route.set(parseRoute("/history?q=a%20b&tool=x"));
  assert.equal(withQuery({ tool: null, state: "live" }), "/history?q=a+b&state=live");
  assert.equal(withQuery({ q: "", tool: "" }), "/history");
});
