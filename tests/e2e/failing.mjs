// An official TypeScript client, of version 1 or 2: calls tools that fail, and prints what came as one line of JSON.
// Arguments: the folder of node_modules, and {"url", "sdk": 1 | 2, "tools"}.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, told] = process.argv.slice(2);
const plan = JSON.parse(told);
const load = createRequire(join(modules, "x.js"));
const first = "@modelcontextprotocol/sdk";
const { Client, StreamableHTTPClientTransport } =
  plan.sdk === 1
    ? { ...load(`${first}/client/index.js`), ...load(`${first}/client/streamableHttp.js`) }
    : load("@modelcontextprotocol/client");

const client = new Client({ name: "afoot-tests", version: "1" }, { capabilities: {} });
await client.connect(new StreamableHTTPClientTransport(new URL(plan.url)));
await client.listTools(); // from here on it checks results against their schemas

const seen = {};
for (const name of plan.tools) {
  seen[name] = await client.callTool({ name, arguments: {} }).catch((error) => ({ thrown: String(error) }));
}
console.log(JSON.stringify(seen));
await client.close();
