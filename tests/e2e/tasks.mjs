// The TypeScript client 2 with its tasks package: does what it is told, and prints what it saw as one line of JSON.
// Arguments: the folder of node_modules, and {"url", "era": "auto" | "legacy", "do": "all" | "start" | "find", "tag", "reference"}.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, told] = process.argv.slice(2);
const plan = JSON.parse(told);
const load = createRequire(join(modules, "x.js"));
const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
const tasks = await import(
  pathToFileURL(join(modules, "@modelcontextprotocol/ext-tasks/dist/client/index.js"))
);

const TASKS = "io.modelcontextprotocol/tasks";
const info = { name: "afoot-tests", version: "1" };
const isModern = plan.era === "auto";
const capabilities = { elicitation: {}, ...(isModern ? { extensions: { [TASKS]: {} } } : {}) };
const client = new Client(info, {
  capabilities,
  ...(isModern ? { versionNegotiation: { mode: "auto" } } : {}),
});
const transport = new StreamableHTTPClientTransport(
  new URL(plan.url),
  plan.session ? { sessionId: plan.session } : undefined,
);
await client.connect(transport);

// The package leaves it to its host to carry what the client's own types refuse.
async function rawDispatch(request, options = {}) {
  const { method, params } = request;
  const name = params?.taskId ?? params?.name;
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(name ? { "mcp-name": name } : {}),
  };
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: (rawDispatch.id = (rawDispatch.id ?? 0) + 1),
    method,
    params,
  });
  const response = await fetch(plan.url, { method: "POST", headers, body, signal: options.signal });
  const answer = await response.json();
  return answer.error ? { kind: "error", error: answer.error } : { kind: "result", result: answer.result };
}

const asked = [];
const session = tasks.createTaskSessionFromClient(client, {
  endpointId: "afoot",
  tools: { currentTool: (name) => ({ name, inputSchema: { type: "object" }, taskSupport: "optional" }) },
  onInputRequest: async (request) => {
    asked.push(request.params.message);
    return { action: "accept", content: { side: "left" } };
  },
  ...(isModern
    ? {
        rawDispatch,
        v2RequestFraming: {
          protocolVersion: "2026-07-28",
          clientInfo: info,
          clientCapabilities: capabilities,
        },
      }
    : {}),
});
const prefer = { task: { preference: "prefer" } };

// What a task came to, and everything that was seen on the way.
async function followed(execution) {
  const seen = [];
  const onEvent = ({ task }) => task && seen.push([task.status, task.statusMessage, task.raw?._meta]);
  const { outcome } = await execution.settle({ onEvent });
  return {
    kind: execution.kind,
    status: outcome.status,
    result: outcome.result,
    error: String(outcome.error ?? ""),
    seen,
  };
}

const found = { protocol: client.getNegotiatedProtocolVersion?.(), capabilities: session.capabilities };
if (plan.do === "all") {
  found.marched = await followed(await session.callTool("march", { steps: 30, tag: plan.tag }, prefer));
  found.asked = await followed(await session.callTool("march_and_ask", {}, prefer));
  found.questions = asked;
  const stroll = await session.callTool("stroll", { tag: `${plan.tag}-stroll` }, prefer);
  await stroll.cancel();
  found.strolled = (await stroll.settle()).outcome.status;
  if (session.capabilities.inventory === "server-list")
    found.listed = (await session.listTasks()).tasks.map((task) => task.status);
} else if (plan.do === "start") {
  const execution = await session.callTool("steady", { steps: 40, tag: plan.tag }, prefer);
  found.reference = execution.serializeReference();
  found.session = transport.sessionId;
  await execution.detach();
} else {
  found.steady = await followed(await session.resumeTask(plan.reference));
}
await session.close();
console.log(JSON.stringify(found));
process.exit(0);
