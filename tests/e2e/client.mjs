// The official TypeScript client against a gateway: does what it is told, and prints what it saw as one line of JSON.
// Arguments: the folder of node_modules, and {"url"} or {"command", "args"} with {"tags"}.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [modules, told] = process.argv.slice(2);
const plan = JSON.parse(told);
const load = createRequire(join(modules, "x.js"));
const sdk = "@modelcontextprotocol/sdk";
const { Client } = load(`${sdk}/client/index.js`);
const { StdioClientTransport } = load(`${sdk}/client/stdio.js`);
const { StreamableHTTPClientTransport } = load(`${sdk}/client/streamableHttp.js`);
const { ElicitRequestSchema } = load(`${sdk}/types.js`);

const version = JSON.parse(readFileSync(join(modules, sdk, "package.json"))).version;
const client = new Client({ name: "afoot-tests", version: "1" }, { capabilities: { elicitation: {} } });
let answers = [];
client.setRequestHandler(ElicitRequestSchema, async () => answers.shift() ?? { action: "cancel" });

const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);

// What a call came to: its result or its error, how long it took, and its progress.
async function outcome(name, args, options = {}) {
  const progress = [];
  const began = performance.now();
  const onprogress = options.silent
    ? undefined
    : (seen) => progress.push([seen.progress, seen.total, seen.message]);
  let ended;
  try {
    ended = { result: await call(name, args, { ...options, onprogress }) };
  } catch (error) {
    ended = { code: error.code, message: String(error.message ?? error) };
  }
  return { ...ended, progress, took: (performance.now() - began) / 1000 };
}

// Aborts a call at its first report.
async function aborted(tag) {
  const control = new AbortController();
  const options = { signal: control.signal, onprogress: () => control.abort("enough") };
  return call("linger", { tag }, options).then(
    (result) => ({ result }),
    (error) => ({ message: String(error) }),
  );
}

async function questions(tag) {
  const seen = {};
  answers = [{ action: "accept", content: { name: "Ada" } }];
  seen.accepted = await outcome("ask_name", { tag });
  answers = [{ action: "decline" }];
  seen.declined = await outcome("ask_name", { tag: `${tag}-declined` });
  answers = [
    { action: "accept", content: { name: "Ada" } },
    { action: "accept", content: { age: 36 } },
  ];
  seen.twice = await outcome("ask_two_in_turn", { tag: `${tag}-twice` });
  return seen;
}

const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url))
  : new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env, stderr: "ignore" });
await client.connect(transport);
const seen = { version, tools: (await client.listTools()).tools.map((tool) => tool.name) };
seen.progress = await outcome("count_up", { n: 5 });
// The client's limit is shorter than the call and longer than any silence in it.
seen.reset = await outcome(
  "count_up",
  { n: 6, step_s: 0.15 },
  { timeout: 500, resetTimeoutOnProgress: true },
);
seen.unreset = await outcome("linger", { tag: plan.tags.timeout }, { timeout: 500 });
seen.idle = await outcome("paced", { pauses: [0.2, 1.5] });
seen.ceiling = await outcome("paced", { pauses: Array(20).fill(0.3) });
seen.failed = await outcome("fail", { how: "explained" });
seen.unknown = await outcome("count_upp", { n: 1 });
seen.aborted = await aborted(plan.tags.abort);
seen.questions = await questions(plan.tags.ask);
await client.close();
console.log(JSON.stringify(seen));
