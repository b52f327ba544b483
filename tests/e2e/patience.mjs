// The official TypeScript client with its own fixed limit: calls a tool, and does as a handle says until it has a result.
// Arguments: the folder of node_modules, and {"url", "tool", "arguments", "timeout"}. Prints one line of JSON.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, told] = process.argv.slice(2);
const plan = JSON.parse(told);
const load = createRequire(join(modules, "x.js"));
const sdk = "@modelcontextprotocol/sdk";
const { Client } = load(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = load(`${sdk}/client/streamableHttp.js`);

const client = new Client({ name: "afoot-tests", version: "1" }, { capabilities: {} });
await client.connect(new StreamableHTTPClientTransport(new URL(plan.url)));
await client.listTools(); // from here on it checks results against their schemas

const progress = [];
const options = { timeout: plan.timeout, onprogress: (seen) => progress.push(seen.progress) };
const call = (name, args) => client.callTool({ name, arguments: args }, undefined, options);

let handles = 0;
let result = await call(plan.tool, plan.arguments);
while (result.structuredContent?.afoot_call && handles < 20) {
  handles += 1;
  result = await call("afoot_wait", { call: result.structuredContent.afoot_call });
}
console.log(JSON.stringify({ handles, result, progress }));
await client.close();
