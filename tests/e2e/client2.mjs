// The TypeScript client 2 against a gateway: does what it is told, and prints what it saw as one line of JSON.
// Arguments: the folder of node_modules, and {"url"} or {"command", "args"} with {"era": "auto" | "legacy", "tags", "marks"}.
import { createRequire } from "node:module";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [modules, told] = process.argv.slice(2);
const plan = JSON.parse(told);
const load = createRequire(join(modules, "x.js"));
const sdk = "@modelcontextprotocol/client";
const { Client, StreamableHTTPClientTransport } = load(sdk);
const { StdioClientTransport } = load(`${sdk}/stdio`);

const version = JSON.parse(readFileSync(join(modules, sdk, "package.json"))).version;
const era = plan.era === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client(
  { name: "afoot-tests", version: "1" },
  { capabilities: { elicitation: {} }, ...era },
);
const asked = [];
const content = { "What is your name?": { name: "Ada" }, "Which colour?": { colour: "red" } };
client.setRequestHandler("elicitation/create", async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: content[request.params.message] };
});

const call = (name, args, options) => client.callTool({ name, arguments: args }, options);

// What a call came to: its result or its error, and its progress.
async function outcome(name, args, options = {}) {
  const progress = [];
  const onprogress = (seen) => progress.push([seen.progress, seen.total, seen.message]);
  try {
    return { result: await call(name, args, { ...options, onprogress }), progress };
  } catch (error) {
    return { code: error.code, message: String(error.message ?? error), progress };
  }
}

// Aborts a call at its first report.
async function aborted(tool, tag) {
  const control = new AbortController();
  const options = { signal: control.signal, onprogress: () => control.abort("enough") };
  return call(tool, { tag }, options).then(
    (result) => ({ result }),
    (error) => ({ message: String(error) }),
  );
}

const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url))
  : new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env, stderr: "ignore" });
await client.connect(transport);
const seen = { version, protocol: client.getNegotiatedProtocolVersion?.() };
// A server behind the gateway is opened in the background.
while (!(seen.tools = (await client.listTools()).tools.map((tool) => tool.name)).includes("wrap")) {
  await new Promise((resolve) => setTimeout(resolve, 20));
}
seen.own = await outcome("count_up", { n: 5 });
seen.behind = await outcome("wrap", { n: 5 });
// The client's limit is shorter than the call and longer than any silence in it.
seen.reset = await outcome(
  "count_up",
  { n: 8, step_s: 0.15 },
  { timeout: 1000, resetTimeoutOnProgress: true },
);
seen.asked = await outcome("ask_name", { tag: plan.tags.ask });
seen.askedBehind = await outcome("paint", {});
seen.questions = asked;
seen.failed = await outcome("fail", { how: "explained" });
seen.unknown = await outcome("count_upp", { n: 1 });
seen.aborted = await aborted("linger", plan.tags.linger);
seen.abortedBehind = await aborted("dawdle", plan.tags.dawdle);
// Closing ends what is still being sent, a cancel too.
const marked = (tag) => existsSync(join(plan.marks, tag)) && readFileSync(join(plan.marks, tag), "utf8");
while (![plan.tags.linger, plan.tags.dawdle].every((tag) => (marked(tag) || "").includes("cancelled"))) {
  await new Promise((resolve) => setTimeout(resolve, 20));
}
await client.close();
console.log(JSON.stringify(seen));
