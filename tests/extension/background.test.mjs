// What the worker's parts decide by themselves: proofs, caps, places, ends.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCached, reasonOf } from "../../src/afoot/extension/background/ending.js";
import { LARGEST, encode, fromRoom, isFrame } from "../../src/afoot/extension/background/frames.js";
import { Gate, KEPT, RATE, joined } from "../../src/afoot/extension/background/gate.js";
import { Proving } from "../../src/afoot/extension/background/link.js";
import { Unpaired, parsePairing } from "../../src/afoot/extension/background/pairing.js";
import { addressOf, placeOf } from "../../src/afoot/extension/background/place.js";
import { isProved, makeNonce, prove } from "../../src/afoot/extension/background/proof.js";
import { whyNot } from "../../src/afoot/extension/background/tabs.js";
import { inTurn } from "../../src/afoot/extension/background/turn.js";

const KEY = Array.from({ length: 32 }, (_, byte) => byte.toString(16).padStart(2, "0")).join("");
const NONCES = { gateway: "aa".repeat(32), extension: "55".repeat(32) };
// HMAC-SHA256 over the label and both nonces' bytes, as Python's hmac makes it.
const PROOFS = {
  ext: "15f323a7d850fd39f09b7d6855d4d9ccdd0790bfe44bf494822e6b13a4f32c77",
  gw: "2e152a7131fec5af207e633ba038c9beeaba86b792fc4b7e7cd1ed649ff04ef1",
};

test("B7: a proof is what Python makes of the same bytes, and one side's is not the other's", async () => {
  for (const side of ["ext", "gw"]) {
    assert.equal(await prove(KEY, side, NONCES), PROOFS[side]);
    assert.equal(await isProved(KEY, side, NONCES, PROOFS[side]), true);
  }
  assert.equal(await isProved(KEY, "gw", NONCES, PROOFS.ext), false);
  const swapped = { gateway: NONCES.extension, extension: NONCES.gateway };
  assert.equal(await isProved(KEY, "gw", swapped, PROOFS.gw), false);
  for (const odd of [undefined, null, "", 7, PROOFS.gw.slice(2), "zz".repeat(32)]) {
    assert.equal(await isProved(KEY, "gw", NONCES, odd), false);
  }
  assert.notEqual(makeNonce(), makeNonce());
});

test("B7: only a challenge, then only a right proof counts", async () => {
  const said = [];
  const open = () => new Proving(KEY, (text) => said.push(JSON.parse(text)));
  const challenge = JSON.stringify({ method: "link.challenge", params: { nonce: NONCES.gateway } });
  const good = open();
  assert.equal(await good.hear(challenge), false);
  const { nonce, mac } = said[0].params;
  const nonces = { gateway: NONCES.gateway, extension: nonce };
  assert.equal(await isProved(KEY, "ext", nonces, mac), true);
  const proof = JSON.stringify({ method: "link.proof", params: { mac: await prove(KEY, "gw", nonces) } });
  assert.equal(await good.hear(proof), true);
  await assert.rejects(open().hear(proof), /not your gateway/);
  for (const second of [proof, challenge, '{"method":"link.welcome"}', "null"]) {
    const other = open();
    await other.hear(challenge);
    await assert.rejects(other.hear(second), /not your gateway/); // an old proof is worth nothing now
  }
});

test("B7: a pairing file is believed only if it is whole and stays on this machine", () => {
  const file = (url, key = KEY) => JSON.stringify({ url, key });
  assert.deepEqual(parsePairing(file("ws://127.0.0.1:8420/link")), {
    url: "ws://127.0.0.1:8420/link",
    key: KEY,
  });
  const bad = [
    "",
    "null",
    file("ws://evil.example/link"),
    file("http://127.0.0.1/"),
    file("ws://127.0.0.1/", "short"),
  ];
  for (const text of bad) assert.throws(() => parsePairing(text), Unpaired);
});

test("B7: who speaks is the browser's word; a message cannot name another room", () => {
  const sender = {
    tab: { id: 7, url: "https://top.example/x" },
    frameId: 3,
    documentId: "D",
    origin: "https://in.example",
    url: "https://in.example/a",
    documentLifecycle: "active",
  };
  const place = placeOf(sender, "page");
  assert.deepEqual(
    [place.id, place.origin, place.top],
    ["7.3.D", "https://in.example", "https://top.example"],
  );
  assert.equal(placeOf(sender, "plugin:a@1").id, "7.3.D.plugin:a@1");
  assert.equal(placeOf({ ...sender, tab: undefined }, "page"), null);
  assert.equal(placeOf({ ...sender, documentLifecycle: "prerender" }, "page"), null);
  const unseen = { ...sender, origin: undefined, tab: { id: 7 } };
  assert.deepEqual([placeOf(unseen, "page").origin, placeOf(unseen, "page").top], ["null", ""]);
  assert.equal(addressOf(place, "https://in.example/b#c"), "https://in.example/b#c");
  assert.equal(addressOf(place, "https://bank.example/"), "https://in.example/a");
  const frame = { method: "tool.result", params: { run: "r", seq: 1, value: 1, room: "other", evil: 1 } };
  assert.deepEqual(fromRoom("7.3.D", frame).params, { run: "r", seq: 1, value: 1, room: "7.3.D" });
});

test("B7: a room may send what rooms send, and nothing else", () => {
  const refused = [
    { method: "link.hello", params: {} },
    { method: "panel.answer", params: { question: "1" } },
    { method: "tab.gone", params: { room: "1" } },
    { method: "constructor", params: {} },
    { method: "tool.progress", params: { run: "r", reports: "many" } },
    { method: "tool.result", params: { run: 7 } },
  ];
  for (const frame of refused) assert.equal(fromRoom("1", frame), null);
  for (const odd of [null, 1, "x", {}, { method: 1, params: {} }, { method: "x", params: null }]) {
    assert.equal(isFrame(odd), false);
  }
});

test("B6: a result that is too large becomes an error that says so; other frames are not sent", () => {
  const value = "x".repeat(LARGEST);
  const text = encode({ method: "tool.result", params: { room: "1", run: "r", seq: 4, value } });
  assert.equal(JSON.parse(text).params.error.code, "too_large");
  assert.equal(encode({ method: "tab.tools", params: { tools: [value] } }), null);
});

/** A gate whose clock stands still until it is moved. */
function gated() {
  const sent = [];
  const timers = [];
  const world = { now: 0, isBusy: false };
  const gate = new Gate({
    send: (frame) => sent.push(frame),
    isBusy: () => world.isBusy,
    now: () => world.now,
    later: (then, ms) => timers.push([world.now + ms, then]),
  });
  const move = (ms) => {
    const end = world.now + ms;
    while (timers.length && timers[0][0] <= end) {
      const [at, then] = timers.shift();
      world.now = at;
      then();
    }
    world.now = end;
  };
  return { gate, sent, move, world };
}

const report = (run, seq) => ({
  method: "tool.progress",
  params: { run, seq, reports: [{ progress: seq }] },
});

test("B6: a flood is joined, in order, and the newest of it always arrives", () => {
  const { gate, sent, move } = gated();
  for (let seq = 1; seq <= 5000; seq += 1) gate.offer(report("a", seq));
  assert.equal(sent.length, RATE);
  move(1000);
  const seen = sent.flatMap((frame) => frame.params.reports.map((one) => one.progress));
  assert.deepEqual(
    seen,
    [...seen].sort((one, other) => one - other),
  );
  assert.equal(seen.at(-1), 5000);
  const dropped = sent.reduce((sum, frame) => sum + (frame.params.dropped ?? 0), 0);
  assert.equal(seen.length + dropped, 5000);
});

test("B6: a result never waits, and what waits of its run goes first", () => {
  const { gate, sent } = gated();
  for (let seq = 1; seq <= RATE + 10; seq += 1) gate.offer(report("a", seq));
  gate.offer(report("b", 1));
  gate.pass({ method: "tool.result", params: { run: "a", seq: 999 } });
  const [before, last] = sent.slice(-2);
  assert.deepEqual([before.params.seq, last.method], [RATE + 10, "tool.result"]);
  assert.equal(
    sent.some((frame) => frame.params.run === "b"),
    false,
  );
});

test("B6: nothing but results is sent while the socket is full, and lines of a log are left out", () => {
  const { gate, sent, move, world } = gated();
  world.isBusy = true;
  gate.offer(report("a", 1));
  gate.offer({ method: "tool.log", params: { run: "a", text: "x" } });
  gate.offer({ method: "tab.tools", params: { tools: [1] } });
  gate.offer({ method: "tab.tools", params: { tools: [2] } });
  move(500);
  assert.deepEqual([sent.length, gate.left], [0, 1]);
  world.isBusy = false;
  move(100);
  assert.deepEqual(sent.map((frame) => frame.method).sort(), ["tab.tools", "tool.progress"]);
  assert.deepEqual(sent.find((frame) => frame.method === "tab.tools").params.tools, [2]);
});

test("B6: joined reports are the newest, and those left out are counted", () => {
  const many = (from, count) => Array.from({ length: count }, (_, at) => ({ progress: from + at }));
  const first = { method: "tool.progress", params: { run: "a", seq: 1, reports: many(0, 50), dropped: 2 } };
  const second = { method: "tool.progress", params: { run: "a", seq: 2, reports: many(50, 50) } };
  const { params } = joined(first, second);
  assert.deepEqual([params.seq, params.reports.length, params.dropped], [2, KEPT, 2 + 100 - KEPT]);
  assert.equal(params.reports.at(-1).progress, 99);
});

const HERE = { status: "complete", url: "https://a.example/x#1", discarded: false };
const SIGNS = {
  isTop: true,
  saidBye: true,
  isTopThere: false,
  hasNext: false,
  wasReplaced: false,
  looks: 20,
};
const why = (tab, other = {}) => reasonOf({ ...SIGNS, url: "https://a.example/x", tab, ...other });

test("B6: what the browser says when a port closes tells why", () => {
  assert.equal(why(null), "closed");
  assert.equal(why(null, { wasReplaced: true }), "discarded");
  assert.equal(why({ ...HERE, discarded: true, status: "unloaded" }), "discarded");
  assert.equal(why({ ...HERE, status: "unloaded" }), "crashed");
  assert.equal(why({ ...HERE, status: "loading", pendingUrl: "https://a.example/x" }), "reloaded");
  assert.equal(why({ ...HERE, status: "loading", pendingUrl: "https://a.example/y" }), "navigated");
  assert.equal(why({ status: "loading", discarded: false }), "navigated"); // to a site that is not allowed
  assert.equal(why(HERE, { saidBye: false }), "lost");
  assert.equal(why(HERE, { looks: 0 }), null); // the tab may be about to close
  assert.equal(why(HERE, { looks: 0, hasNext: true }), "reloaded");
});

test("B6: a frame's end is its own, unless its tab ends", () => {
  const inner = { isTop: false, isTopThere: true, url: "https://b.example/" };
  assert.equal(why(HERE, inner), "removed");
  assert.equal(why(HERE, { ...inner, looks: 0 }), null);
  assert.equal(why({ ...HERE, status: "loading" }, inner), "navigated");
  assert.equal(why(HERE, { ...inner, saidBye: false }), "crashed");
  assert.equal(why({ ...HERE, pendingUrl: HERE.url }, { ...inner, isTopThere: false }), "reloaded");
});

test("B6: a page that may come back is told from one that is over", () => {
  assert.equal(
    isCached("The page keeping the extension port is moved into back/forward cache, so", null),
    true,
  );
  assert.equal(isCached(undefined, { persisted: true }), true);
  assert.equal(isCached(undefined, { persisted: "yes" }), false);
});

test("B6: a tab without a room says what to do", () => {
  assert.equal(whyNot({ discarded: false }), "ungranted");
  assert.equal(whyNot({ url: "chrome://settings/", discarded: false }), "closed to extensions");
  assert.equal(whyNot({ url: "https://a.example/", status: "complete", discarded: false }), "reload");
  assert.equal(whyNot({ url: "https://a.example/", status: "loading", discarded: false }), "");
});

test("work that is asked for while it runs runs once more, never twice at once", async () => {
  let running = 0;
  let runs = 0;
  const work = inTurn(async () => {
    assert.equal(running, 0);
    running += 1;
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    runs += 1;
  });
  await Promise.all([work(), work(), work()]);
  assert.equal(runs, 2);
  await work();
  assert.equal(runs, 3);
});
