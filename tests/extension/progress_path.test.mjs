// The way of a report from a tool to the link: one limit, in the page, and one outbox, in the content script.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PageContext } from "../../src/afoot/extension/background/page_context.js";
import { FakeClock, load } from "./content/load.mjs";

const { Outbox, ToolRuns } = load();

/** A tool's runs, the relay's outbox and the worker's context, with a link that a test cuts and mends. */
function connect() {
  const clock = new FakeClock();
  const link = { isUp: true, frames: [] };
  const output = {
    send: (frame) => link.isUp && link.frames.push({ ...frame, at: clock.time }),
    count: (what) => assert.fail(what),
  };
  const context = new PageContext({ id: "1.0.d", url: "" }, {}, {}, output);
  const outbox = new Outbox((frame) => context.receive(structuredClone(frame)));
  const runs = new ToolRuns((text) => outbox.send(JSON.parse(text)), clock);
  const start = (id) => {
    context.startRun(id);
    outbox.open(id);
    return runs.open(id, "tool");
  };
  const reports = () => link.frames.flatMap(({ params }) => params.reports ?? []).map((one) => one.progress);
  return { clock, link, context, outbox, runs, start, reports };
}

test("B6: first and last report of a flood arrive, in order, at the limited rate, before the result", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { clock, link, runs, start, reports } = connect();
  await runs.perform(start("a"), async ({ reportProgress }) => {
    for (let step = 0; step <= 100_000; step += 1) {
      reportProgress(step, 100_000);
      if (step % 100 === 0) clock.turn(1);
    }
    return "done";
  });
  const seen = reports();
  assert.deepEqual([seen[0], seen.at(-1)], [0, 100_000]);
  assert.deepEqual(
    seen,
    [...seen].sort((one, other) => one - other),
  );
  const progress = link.frames.filter(({ method }) => method === "tool.progress");
  const gaps = progress.slice(1, -1).map(({ at }, before) => at - progress[before].at);
  assert.ok(Math.min(...gaps) >= 8);
  const dropped = progress.reduce((sum, { params }) => sum + (params.dropped ?? 0), 0);
  assert.equal(seen.length + dropped, 100_001);
  assert.deepEqual([link.frames.at(-1).method, link.frames.at(-1).params.value], ["tool.result", "done"]);
  const numbers = link.frames.map(({ params }) => params.seq);
  assert.deepEqual(
    numbers,
    numbers.map((_, at) => at + 1),
  );
});

test("B6: what was said while the link was lost is sent again: the newest progress, then the result", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { clock, link, context, outbox, runs, start, reports } = connect();
  await runs.perform(start("a"), async ({ reportProgress }) => {
    reportProgress(1, 3);
    clock.turn(100);
    link.isUp = false;
    reportProgress(2, 3);
    clock.turn(100);
    reportProgress(3, 3);
    return "done";
  });
  assert.deepEqual(reports(), [1]);
  assert.deepEqual(context.running, [{ run: "a", room: "1.0.d", seq: 4 }]); // so a new hello tells of it
  link.isUp = true;
  outbox.resend();
  assert.deepEqual(reports(), [1, 3]);
  assert.deepEqual([link.frames.at(-1).method, link.frames.at(-1).params.value], ["tool.result", "done"]);
  context.forgetRun("a");
  outbox.settle("a");
  assert.deepEqual([context.running, outbox.running()], [[], []]);
});

test("B6: many runs at once have a limit each, and none waits for another", () => {
  const { link, runs, start } = connect();
  const ends = [];
  for (let run = 0; run < 300; run += 1) {
    void runs.perform(start(`r${run}`), ({ reportProgress }) => {
      reportProgress(run, 300);
      return new Promise((resolve) => ends.push(resolve));
    });
  }
  assert.equal(link.frames.length, 300); // the first report of each, at once
});
