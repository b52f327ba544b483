// S6: the console sends its session to nobody who has not proved to know it.
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import test from "node:test";

const TOKEN = "a-session-of-this-browser";
const stored = new Map([["afoot.session", JSON.stringify({ token: TOKEN, id: "1", expires: 1e12 })]]);
globalThis.localStorage = {
  getItem: (key) => stored.get(key) ?? null,
  setItem: (key, value) => stored.set(key, value),
  removeItem: (key) => stored.delete(key),
};
globalThis.location = { protocol: "http:", host: "127.0.0.1:23668" };
const { get, session } = await import("../../../src/afoot/web/lib/api.js");

const sha256 = (text) => createHash("sha256").update(text).digest("hex");
const proofOf = (path, host) => {
  const nonce = new URLSearchParams(path.split("?")[1]).get("nonce");
  return createHmac("sha256", sha256(TOKEN)).update(`afoot.proof.1\n${host}\n${nonce}`).digest("hex");
};
const json = (body, status = 200) => new Response(JSON.stringify(body), { status });

/** A program at the gateway's port, and what is sent to it. */
function listening(prove) {
  const sent = [];
  globalThis.fetch = async (path, { headers, body } = {}) => {
    sent.push(`${path} ${[...(headers ?? [])]} ${body}`);
    return path.startsWith("/api/proof") ? prove(path) : json({ fine: true });
  };
  return sent;
}

const IMPOSTORS = {
  "makes up a proof": () => json({ mac: "0".repeat(64) }),
  "says yes": () => json({}),
  "proves it for another host": (path) => json({ mac: proofOf(path, "127.0.0.1:9") }),
  "repeats an old proof": () => json({ mac: proofOf("/api/proof?nonce=00", "127.0.0.1:23668") }),
  fails: () => new Response("", { status: 500 }),
};

for (const [name, prove] of Object.entries(IMPOSTORS))
  test(`an impostor that ${name} gets no session`, async () => {
    const sent = listening(prove);
    await assert.rejects(get("/api/calls"), /another program than the gateway/);
    assert.equal(sent.length, 1);
    assert.ok(!sent.join().includes(TOKEN) && session.peek()?.token === TOKEN);
  });

test("a gateway that knows the session gets it, and proves that each time anew", async () => {
  const sent = listening((path) => json({ mac: proofOf(path, "127.0.0.1:23668") }));
  assert.deepEqual([await get("/api/calls"), await get("/api/tools")], [{ fine: true }, { fine: true }]);
  assert.equal(sent.filter((one) => one.startsWith("/api/proof")).length, 2);
  assert.ok(sent[1].includes(`Bearer ${TOKEN}`));
});

test("requests that begin together share one proof", async () => {
  const sent = listening((path) => json({ mac: proofOf(path, "127.0.0.1:23668") }));
  await Promise.all([get("/api/calls"), get("/api/tools")]);
  assert.equal(sent.filter((one) => one.startsWith("/api/proof")).length, 1);
});

test("a session that the gateway does not know is over", async () => {
  listening(() => json({ error: { message: "unknown", category: "not_found" } }, 404));
  await assert.rejects(get("/api/calls"), /logged out/);
  assert.equal(session.peek(), null);
});
