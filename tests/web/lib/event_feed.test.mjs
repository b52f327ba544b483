// H2, V1: one stream for all tabs, and no fact lost or repeated, whoever leads and whatever breaks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { eventParser } from "../../../src/afoot/web/lib/api.js";
import { isLeading, online } from "../../../src/afoot/web/lib/event_feed.js";
import { World, settle } from "../fakes.mjs";

const whole = (world) => {
  for (const tab of world.tabs) {
    assert.equal(tab.place, world.gateway.pos);
    assert.equal(tab.gaps, 0);
  }
};

async function worldOf(count) {
  const world = new World();
  for (let number = 0; number < count; number++) await world.open();
  return world;
}

test("ten tabs hold one stream, and all of them are told everything", async () => {
  const world = await worldOf(10);
  for (let number = 0; number < 5; number++) world.gateway.add();
  world.gateway.note();
  await settle();
  whole(world);
  assert.equal(world.gateway.opened, 1);
  assert.deepEqual(new Set(world.tabs.map((tab) => tab.readings)), new Set([1]));
  assert.deepEqual(new Set(world.tabs.map((tab) => tab.repeats)), new Set([0]));
});

test("a tab that comes late begins with what there is, and goes on with the rest", async () => {
  const world = await worldOf(1);
  for (let number = 0; number < 7; number++) world.gateway.add();
  const late = await world.open();
  world.gateway.add();
  await settle();
  whole(world);
  assert.deepEqual([late.snapshots, late.repeats, world.gateway.opened], [1, 0, 1]);
});

test("what the leader sends while a late tab waits for its snapshot is neither lost nor told twice", async () => {
  const world = await worldOf(1);
  const { snapshot } = world.gateway;
  let give = () => {};
  world.gateway.snapshot = () => new Promise((resolve) => (give = () => resolve(snapshot())));
  const late = await world.open();
  world.gateway.add();
  await settle();
  world.gateway.add();
  give();
  world.gateway.add();
  await settle();
  whole(world);
  assert.equal(late.repeats, 0);
});

test("when the leader closes, the next tab goes on where it was", async () => {
  const world = await worldOf(3);
  world.gateway.add();
  await settle();
  await world.close(world.tabs[0]);
  assert.equal(world.gateway.streams.size, 1);
  world.gateway.add();
  await settle();
  whole(world);
  assert.deepEqual([world.gateway.opened, world.tabs[0].snapshots, world.tabs[1].snapshots], [2, 1, 1]);
});

test("a frame that a tab did not get is noticed with the next one", async () => {
  const world = await worldOf(2);
  world.hub.dropped = (data) => data.kind === "frame";
  world.gateway.add();
  await settle();
  world.hub.dropped = () => false;
  world.gateway.add();
  await settle();
  whole(world);
  assert.equal(world.tabs[1].snapshots, 2);
});

test("a new leader that was behind repeats nothing to those who were not", async () => {
  const world = await worldOf(3);
  const behind = world.tabs[1];
  let count = 0;
  world.hub.dropped = (data) => data.kind === "frame" && count++ === 0; // the first of the others: the next leader
  world.gateway.add();
  await settle();
  assert.equal(behind.place, 0);
  await world.close(world.tabs[0]);
  world.gateway.add();
  await settle();
  whole(world);
  assert.equal(world.tabs[1].snapshots, 1);
});

test("while the gateway is down it is tried again, ever more slowly, and then goes on without a gap", async () => {
  const world = await worldOf(2);
  const { gateway } = world;
  gateway.add();
  await settle();
  gateway.down();
  await settle();
  assert.equal(online.peek(), false);
  await world.time.pass(60_000);
  assert.ok(gateway.refused >= 12 && gateway.refused <= 32, `tried ${gateway.refused} times in a minute`);
  gateway.pos += 3; // facts that only the journal saw
  gateway.isUp = true;
  await world.time.pass(5_000);
  whole(world);
  assert.equal(online.peek(), true);
  assert.deepEqual([gateway.opened, ...world.tabs.map((tab) => tab.snapshots)], [2, 1, 1]);
});

test("a place that is no longer kept gives everybody a new beginning", async () => {
  const world = await worldOf(2);
  world.gateway.add();
  await settle();
  world.gateway.down();
  [world.gateway.epoch, world.gateway.pos, world.gateway.isUp] = ["f", 40, true];
  await world.time.pass(2_000);
  world.gateway.add();
  await settle();
  whole(world);
  assert.deepEqual(
    world.tabs.map((tab) => tab.snapshots),
    [2, 2],
  );
});

test("a stream that has died without a word is begun again after two keepalives", async () => {
  const world = await worldOf(1);
  await world.time.pass(31_000);
  assert.equal(world.gateway.opened, 1);
  await world.time.pass(3_000);
  assert.equal(world.gateway.opened, 2);
  assert.equal(world.gateway.streams.size, 1);
});

test("after a sleep the stream is begun again at once, but not because timers were slow", async () => {
  const world = await worldOf(1);
  await world.time.pass(1_500);
  world.time.now += 11_000; // nothing ran: less than a stream may be silent, and more than a timer may be late
  await world.time.pass(2_000);
  assert.equal(world.gateway.opened, 2);
  world.isHidden = true;
  await world.time.pass(2_000);
  world.time.now += 20_000;
  world.gateway.add(); // a hidden page is told as ever; its timers run once a minute
  world.isHidden = false; // somebody looks at it before the next of them
  world.time.now += 20_000;
  await world.time.pass(2_000);
  assert.equal(world.gateway.opened, 2);
});

test("a tab that follows is told when the gateway is away, also when it comes then", async () => {
  const world = await worldOf(1);
  world.gateway.down();
  await settle();
  online.set(true);
  await world.open();
  assert.equal(online.peek(), false);
  world.gateway.isUp = true;
  await world.time.pass(6_000);
  whole(world);
  assert.equal(online.peek(), true);
});

test("a new leader tells those who think that the gateway is away", async () => {
  const world = await worldOf(2);
  online.set(false); // as the one before it told them
  const heard = [];
  const channel = world.hub.open();
  channel.onmessage = ({ data }) => data.kind === "state" && heard.push(data.online);
  await world.close(world.tabs[0]);
  await settle();
  assert.deepEqual(heard, [true]);
  const late = await world.open();
  await settle();
  assert.deepEqual(heard, [true, true]);
  assert.ok(late.snapshots > 0);
});

test("a page that fails to show a frame is given the next", async () => {
  const world = await worldOf(1);
  const [tab] = world.tabs;
  const told = console.error;
  const errors = [];
  console.error = (error) => errors.push(error);
  Object.defineProperty(tab, "repeats", { get: () => 0, set: () => {} });
  Object.defineProperty(tab, "readings", {
    get: () => 0,
    set: () => {
      throw new Error("cannot draw this");
    },
  });
  world.gateway.note();
  world.gateway.add();
  await settle();
  console.error = told;
  assert.equal(errors.length, 2);
  assert.equal(world.gateway.opened, 1);
});

test("whoever stopped holds nothing", async () => {
  const world = await worldOf(2);
  for (const tab of [...world.tabs]) await world.close(tab);
  assert.equal(world.gateway.streams.size, 0);
  assert.equal(isLeading.peek(), false);
});

test("events are read however the bytes are cut", () => {
  const text =
    ': alive\n\nid: e:1\nevent: changes\ndata: {"a":1}\n\ndata: x\ndata: y\n\nevent: reset\ndata:\n\n';
  for (let size = 1; size <= text.length; size++) {
    const found = [];
    const take = eventParser((event) => found.push(event));
    for (let at = 0; at < text.length; at += size) take(text.slice(at, at + size));
    assert.deepEqual(found, [
      { event: "changes", id: "e:1", data: '{"a":1}' },
      { event: "message", id: "", data: "x\ny" },
      { event: "reset", id: "", data: "" },
    ]);
  }
});
