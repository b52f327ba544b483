// The TypeScript client 2 in a library (servers/test_library.py): prints everything that it saw as one line of JSON.
// Arguments: the folder of node_modules, and {"url", "era": "auto" | "legacy"}.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, told] = process.argv.slice(2);
const plan = JSON.parse(told);
const load = createRequire(join(modules, "x.js"));
const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");

const era = plan.era === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "library", version: "1" }, { capabilities: { elicitation: {} }, ...era });
client.setRequestHandler("elicitation/create", async () => ({
  action: "accept",
  content: { value: "Emma" },
}));
await client.connect(new StreamableHTTPClientTransport(new URL(plan.url)));

async function call(name, args) {
  const result = await client.callTool({ name, arguments: args });
  return [Boolean(result.isError), result.content[0].text, result.structuredContent ?? null];
}

const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
const seen = { tools: (await client.listTools()).tools.map((tool) => tool.name).sort(), calls: {} };
for (const [name, args] of plan.calls) seen.calls[`${name} ${Object.values(args)}`] = await call(name, args);
const progress = [];
const onprogress = (report) => progress.push(report.progress);
await client.callTool({ name: "scan", arguments: { pages: 3 } }, { onprogress });
seen.rises =
  progress.length > 0 && progress.every((value, place) => place === 0 || value > progress[place - 1]);
seen.resources = (await client.listResources()).resources.map((one) => one.uri);
seen.templates = (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate);
seen.read = [await read("library://titles"), await read("library://books/Emma")];
seen.prompts = (await client.listPrompts()).prompts.map((one) => [
  one.name,
  one.arguments.map((arg) => arg.name),
]);
const { messages } = await client.getPrompt({ name: "review", arguments: { title: "Emma" } });
seen.prompt = messages.map((one) => [one.role, one.content.text]);
const ref = { type: "ref/prompt", name: "review" };
seen.completion = (await client.complete({ ref, argument: { name: "title", value: "E" } })).completion.values;
await client.close();
console.log(JSON.stringify(seen));
