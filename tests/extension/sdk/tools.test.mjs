// The SDK's errors, patterns and tools, on the vectors that Python is tested with.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadSDK, readVectors } from "./load.mjs";

test("E1: a status means the same as in Python", () => {
  const { ToolError } = loadSDK();
  for (const { status, category, retryable } of readVectors("http_status")) {
    const { message, code, ...rest } = ToolError.fromStatus(status, "no");
    assert.deepEqual(
      { message, code, category: rest.category, retryable: rest.retryable },
      {
        ...{ message: "no", code: String(status), category, retryable },
      },
    );
  }
});

test("E1: each factory names its category", () => {
  const { ToolError } = loadSDK();
  const made = [
    [ToolError.auth("x"), "auth", false],
    [ToolError.notFound("x"), "not_found", false],
    [ToolError.rateLimited("x", 1500), "rate_limit", true],
    [ToolError.validation("x"), "validation", false],
    [ToolError.timeout("x"), "timeout", true],
    [ToolError.unavailable("x"), "unavailable", true],
    [ToolError.internal("x", "odd"), "internal", false],
  ];
  for (const [error, category, retryable] of made) {
    assert.ok(error instanceof Error && error.name === "ToolError");
    assert.deepEqual([error.category, error.retryable], [category, retryable]);
    assert.equal(error.code, category === "internal" ? "odd" : category);
  }
  assert.equal(made[2][0].retryAfterMs, 1500);
});

test("B2: an address fits a pattern as it does in Python", () => {
  const { matchesPattern, matchesUrl } = loadSDK(
    ["matchesPattern", "matchesUrl"],
    ["sdk/match_patterns.js"],
    [],
  );
  for (const { pattern, url, fits } of readVectors("match_patterns").fits) {
    assert.equal(matchesPattern(pattern, url), fits, `${pattern} ${url}`);
  }
  for (const { pattern } of readVectors("match_patterns").wrong.slice(0, 6)) {
    assert.equal(matchesPattern(pattern, "https://shop.example/"), false, pattern);
  }
  assert.equal(matchesUrl(["*://a.example/*"], ["*://*/private*"], "https://a.example/x"), true);
  assert.equal(matchesUrl(["*://a.example/*"], ["*://*/private*"], "https://a.example/private/x"), false);
});

test("B2: a tool is given back as it is, and found by its name", async () => {
  const { defineTool, findTool } = loadSDK();
  const tool = { name: "add", description: "Add.", handle: ({ a, b }) => a + b };
  assert.equal(defineTool(tool), tool);
  assert.equal(findTool("add"), tool);
  assert.equal(await findTool("add").handle({ a: 1, b: 2 }), 3);
  assert.throws(() => findTool("sub"), /no tool sub is defined/);
});

test("B2: a schema may be an object that makes its JSON Schema, as those of Zod do", () => {
  const { defineTool, toolDescriptions } = loadSDK(["toolDescriptions"]);
  const object = (properties) => ({ type: "object", properties });
  const schema = { toJSONSchema: ({ io }) => object({ [io]: { type: "string" } }), parse() {} };
  defineTool({ name: "add", description: "Add.", input: schema, output: schema, handle() {} });
  defineTool({ name: "sub", description: "Subtract.", input: object({ a: {} }), handle() {} });
  const [add, sub] = toolDescriptions();
  assert.deepEqual(add.inputSchema, object({ input: { type: "string" } }));
  assert.deepEqual(add.outputSchema, object({ output: { type: "string" } }));
  assert.deepEqual([sub.inputSchema, "outputSchema" in sub], [object({ a: {} }), false]);
  const wrong = {
    name: "no",
    description: "No.",
    handle() {},
    input: { toJSONSchema: () => ({ type: "string" }) },
  };
  assert.throws(() => defineTool(wrong), /input of the tool no is no JSON Schema of an object/);
});

test("B2: a tool that cannot be one says why", () => {
  const { defineTool } = loadSDK();
  const good = { name: "ok", description: "Fine.", handle() {} };
  const wrong = [
    [{ ...good, name: "not a name" }, /letters, digits, _ and -, not "not a name"/],
    [{ ...good, name: undefined }, /not undefined/],
    [{ ...good, handle: "x" }, /ok has no function handle/],
    [{ ...good, description: "" }, /ok has no description/],
    [{ ...good, input: { type: "string" } }, /input of the tool ok is no JSON Schema of an object/],
    [{ ...good, output: 7 }, /output of the tool ok/],
  ];
  for (const [tool, why] of wrong) assert.throws(() => defineTool(tool), why);
  defineTool(good);
  assert.throws(() => defineTool(good), /ok is defined twice/);
});

test("P2: a handler works with no context, and with any part of one", async () => {
  const { defineTool, sleep, waitUntil, retry, pageValue } = loadSDK();
  globalThis.app = { user: { name: "Ada" } };
  const { handle } = defineTool({
    name: "all",
    description: "Everything that waits.",
    async handle({ steps }, context) {
      for (let step = 1; step <= steps; step += 1) {
        await sleep(1, { context });
        context?.reportProgress?.({ progress: step, total: steps });
      }
      await waitUntil(() => true, { context });
      return {
        name: await pageValue("app.user.name", { context }),
        tries: await retry((n) => n, { context }),
      };
    },
  });
  const wanted = { name: "Ada", tries: 1 };
  assert.deepEqual(await handle({ steps: 2 }), wanted);
  const seen = [];
  assert.deepEqual(await handle({ steps: 2 }, { reportProgress: (one) => seen.push(one.progress) }), wanted);
  assert.deepEqual(seen, [1, 2]);
  delete globalThis.app;
});

test("B2: a value of the page is JSON or an error", async () => {
  const { pageValue } = loadSDK();
  const odd = { list: [NaN, undefined, () => 1], when: new Date(0), f() {}, u: undefined };
  globalThis.shop = {
    open: false,
    list: [{ id: 7 }],
    f() {},
    none: null,
    odd,
  };
  assert.equal(await pageValue("shop.open"), false);
  assert.equal(await pageValue("shop.list.0.id"), 7);
  assert.equal(await pageValue("shop.nothing.at.all"), undefined);
  assert.equal(await pageValue("shop.none.at.all"), undefined);
  assert.equal(await pageValue("shop.none"), null);
  assert.deepEqual(await pageValue("shop.odd"), {
    list: [null, null, null],
    when: "1970-01-01T00:00:00.000Z",
  });
  assert.equal(await pageValue("shop.f"), undefined);
  delete globalThis.shop;
});

test("B2: what is no JSON, or no path, is an error", async () => {
  const { pageValue } = loadSDK();
  const ring = {};
  ring.self = ring;
  globalThis.shop = { ring, big: "x".repeat(1_000_001) };
  await assert.rejects(pageValue("shop.ring"), {
    name: "ToolError",
    code: "page_value",
    message: /holds itself/,
  });
  await assert.rejects(pageValue("shop.big"), { message: /over 1 MB/ });
  for (const path of ["", "shop open", "shop..open", "shop[0]", "shop.open;"]) {
    await assert.rejects(pageValue(path), { category: "validation" });
  }
  delete globalThis.shop;
});

test("B2: lines go to the only run; with none or several, to the console", (t) => {
  const { log, runtime } = loadSDK(["runtime"]);
  const printed = t.mock.method(console, "warn", () => {});
  log.warn("nobody", 1);
  assert.deepEqual(printed.mock.calls[0].arguments, ["nobody", 1]);
  const lines = [];
  const run = { log: { warn: (...words) => lines.push(words) } };
  runtime.runs.add(run);
  log.warn("one");
  runtime.runs.add({});
  log.warn("two");
  assert.deepEqual(lines, [["one"]]);
  assert.equal(printed.mock.callCount(), 2);
});
