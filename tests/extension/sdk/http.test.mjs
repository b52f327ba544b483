// The SDK's requests against a server that misbehaves in every way that matters.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { loadSDK, readVectors } from "./load.mjs";

const sdk = loadSDK();
const seen = [];
let base = "";

const ANSWERS = {
  "/list": [200, { "Content-Type": "application/json" }, '{"items":[1,2]}'],
  "/nothing": [204, {}, ""],
  "/login": [200, { "Content-Type": "text/html" }, "<p>log in"],
  "/moved": [302, { Location: "/login" }, ""],
  "/slow-down": [429, { "Retry-After": "7", "Content-Type": "text/plain" }, "slow down"],
  "/dated": [503, { "Retry-After": new Date(Date.now() + 60_000).toUTCString() }, ""],
  "/odd": [429, { "Retry-After": "soon" }, ""],
  "/page": [500, { "Content-Type": "text/html" }, "<h1>secret stack"],
  "/text": [200, { "Content-Type": "text/plain" }, "plain words"],
};

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  seen.push({ method: request.method, url: request.url, headers: request.headers, body });
  const path = request.url.split("?")[0];
  if (path === "/never") return;
  if (path === "/echo") response.end(JSON.stringify({ method: request.method, body }));
  else if (path.startsWith("/status/")) response.writeHead(Number(path.slice(8))).end("told");
  else {
    const [status, headers, text] = ANSWERS[path];
    response.writeHead(status, headers).end(text);
  }
});

before(async () => {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

test("B2: JSON and text are read, nothing is null", async () => {
  assert.deepEqual(await sdk.fetchJSON(`${base}/list`), { items: [1, 2] });
  assert.equal(seen.at(-1).headers.accept, "application/json");
  assert.equal(await sdk.fetchJSON(`${base}/nothing`), null);
  assert.equal(await sdk.fetchText(`${base}/text`), "plain words");
});

test("B2: each way of sending has its method and its kind of body", async () => {
  for (const [name, method] of Object.entries({ postJSON: "POST", putJSON: "PUT", patchJSON: "PATCH" })) {
    assert.deepEqual(await sdk[name](`${base}/echo`, { a: 1 }), { method, body: '{"a":1}' });
    assert.equal(seen.at(-1).headers["content-type"], "application/json");
  }
  assert.equal((await sdk.deleteJSON(`${base}/echo`)).method, "DELETE");
  assert.deepEqual(await sdk.postForm(`${base}/echo`, { q: "tea & milk" }), {
    method: "POST",
    body: "q=tea+%26+milk",
  });
  assert.match(seen.at(-1).headers["content-type"], /x-www-form-urlencoded/);
  const form = new FormData();
  form.set("q", "tea");
  await sdk.postForm(`${base}/echo`, form);
  assert.match(seen.at(-1).headers["content-type"], /multipart\/form-data/);
});

test("B2: headers of the caller win", async () => {
  await sdk.postJSON(`${base}/echo`, {}, { headers: { "content-type": "text/x", "X-CSRF": "7" } });
  assert.equal(seen.at(-1).headers["content-type"], "text/x");
  assert.equal(seen.at(-1).headers["x-csrf"], "7");
});

test("E1: a status is the error that it means, with what was said", async () => {
  for (const { status, category, retryable } of readVectors("http_status")) {
    const wanted = { name: "ToolError", category, retryable, code: String(status) };
    await assert.rejects(sdk.fetchJSON(`${base}/status/${status}?token=secret`), (error) => {
      assert.deepEqual(Object.fromEntries(Object.keys(wanted).map((key) => [key, error[key]])), wanted);
      assert.match(error.message, new RegExp(`^GET ${base}/status/${status} answered ${status} .*: told$`));
      return true;
    });
  }
});

test("E1: Retry-After is seconds or a date; what is neither is left out", async () => {
  await assert.rejects(sdk.fetchJSON(`${base}/slow-down`), { retryAfterMs: 7000, message: /: slow down$/ });
  await assert.rejects(sdk.fetchText(`${base}/dated`), ({ retryAfterMs, category }) => {
    assert.equal(category, "unavailable");
    return retryAfterMs > 50_000 && retryAfterMs <= 60_000;
  });
  await assert.rejects(sdk.fetchText(`${base}/odd`), { retryAfterMs: undefined, retryable: true });
});

test("E3: markup of an error page is not told", async () => {
  await assert.rejects(sdk.fetchJSON(`${base}/page`), { message: /answered 500 Internal Server Error$/ });
});

test("B2: a login page where JSON was wanted is an error that says where it came from", async () => {
  const wanted = { code: "not_json", message: /answered text\/html and no JSON, .* sent on to .*\/login$/ };
  await assert.rejects(sdk.fetchJSON(`${base}/moved`), wanted);
});

test("E1: a server that cannot be reached may be tried again", async () => {
  await assert.rejects(sdk.fetchJSON("http://127.0.0.1:1/x"), { category: "unavailable", retryable: true });
});

test("C7: a request has a limit, and ends with its run", async () => {
  await assert.rejects(sdk.fetchJSON(`${base}/never`, { timeoutMs: 30 }), {
    ...{ category: "timeout", message: `GET ${base}/never: not within 0.03 s` },
  });
  const stop = new AbortController();
  const reason = new Error("stopped by a person");
  const asked = sdk.fetchJSON(`${base}/never`, { context: { signal: stop.signal } });
  stop.abort(reason);
  await assert.rejects(asked, reason);
});
