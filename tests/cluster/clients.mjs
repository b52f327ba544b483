// The TypeScript client 2 behind a load balancer: does what it is told, and prints what it saw as one line of JSON.
// Arguments: the folder of node_modules, and {"url", "era": "auto" | "legacy", "tag"}.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, told] = process.argv.slice(2);
const plan = JSON.parse(told);
const load = createRequire(join(modules, "x.js"));
const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");

const era = plan.era === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client(
  { name: "afoot-tests", version: "1" },
  { capabilities: { elicitation: {} }, ...era },
);
const asked = [];
const content = { "What is your name?": { name: "Ann" }, "How old are you?": { age: 40 } };
client.setRequestHandler("elicitation/create", async (request) => {
  asked.push(request.params.message);
  // A person needs a moment: what comes at once is taken for no person's answer.
  await new Promise((resolve) => setTimeout(resolve, 60));
  return { action: "accept", content: content[request.params.message] };
});

async function outcome(name, args) {
  const progress = [];
  const onprogress = (seen) => progress.push([seen.progress, seen.total, seen.message]);
  return { result: await client.callTool({ name, arguments: args }, { onprogress }), progress };
}

// Aborts a call at its first report.
async function aborted(tool, tag) {
  const control = new AbortController();
  const options = { signal: control.signal, onprogress: () => control.abort("enough") };
  return client.callTool({ name: tool, arguments: { tag } }, options).then(
    (result) => ({ result }),
    (error) => ({ message: String(error) }),
  );
}

await client.connect(new StreamableHTTPClientTransport(new URL(plan.url)));
const seen = { protocol: client.getNegotiatedProtocolVersion?.() };
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.counted = [await outcome("count_up", { n: 8 }), await outcome("count_up", { n: 8 })];
seen.asked = [];
for (const turn of ["1", "2"]) {
  seen.asked.push(await outcome("ask_two_in_turn", { tag: `${plan.tag}-ask-${turn}` }));
}
seen.questions = asked;
seen.aborted = [];
for (const turn of ["1", "2"]) seen.aborted.push(await aborted("linger", `${plan.tag}-abort-${turn}`));
// The cancel of the last call is on its way.
await new Promise((resolve) => setTimeout(resolve, 500));
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
