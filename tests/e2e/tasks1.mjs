// The TypeScript SDK 1, which has the tasks of 2025-11-25 itself: runs tools as tasks, and prints what it saw as one line of JSON.
// Arguments: the folder of node_modules, and {"url", "tag"}.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, told] = process.argv.slice(2);
const plan = JSON.parse(told);
const load = createRequire(join(modules, "x.js"));
const sdk = "@modelcontextprotocol/sdk";
const { Client } = load(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = load(`${sdk}/client/streamableHttp.js`);
const { CallToolResultSchema, ElicitRequestSchema } = load(`${sdk}/types.js`);

const client = new Client({ name: "afoot-tests", version: "1" }, { capabilities: { elicitation: {} } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(request.params);
  return { action: "accept", content: { side: "left" } };
});
await client.connect(new StreamableHTTPClientTransport(new URL(plan.url)));
await client.listTools();
const tasks = client.experimental.tasks;

async function run(name, args) {
  const progress = [];
  const onprogress = (one) => progress.push([one.progress, one._meta]);
  const options = { task: { ttl: 60000 }, onprogress };
  const found = { progress, statuses: [] };
  for await (const one of tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, options)) {
    if (one.type === "taskCreated") found.task = one.task;
    else if (one.type === "taskStatus") found.statuses.push(one.task.status);
    else if (one.type === "result") found.result = one.result;
    else found.error = String(one.error);
  }
  return found;
}

const marched = await run("march", { steps: 30, tag: plan.tag });
const answered = await run("march_and_ask", {});
const { tasks: listed } = await tasks.listTasks();
console.log(JSON.stringify({ marched, answered, asked, listed }));
process.exit(0);
