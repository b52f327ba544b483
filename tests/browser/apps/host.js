// The smallest host of MCP Apps: the official client and the official AppBridge, one tool, and one frame.
// The address says which gateway (mcp), which tool (tool) with which arguments (arguments), which era (era), whether the
// host declares apps (apps), and who it is (token).
// `window.host` tells the test what it saw.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  AppBridge,
  PostMessageTransport,
  RESOURCE_MIME_TYPE,
  getToolUiResourceUri,
} from "@modelcontextprotocol/ext-apps/app-bridge";

const CALL_MS = 60_000;
const plan = Object.fromEntries(new URLSearchParams(location.search));
const host = { tools: [], messages: [], error: "" };
window.host = host;

async function connect() {
  const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } };
  const era = plan.era === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
  const client = new Client(
    { name: "afoot-tests", version: "1" },
    { capabilities: plan.apps === "yes" ? { extensions } : {}, ...era },
  );
  const requestInit = plan.token ? { headers: { authorization: `Bearer ${plan.token}` } } : {};
  await client.connect(new StreamableHTTPClientTransport(new URL(plan.mcp), { requestInit }));
  return client;
}

async function findTool(client) {
  for (;;) {
    host.tools = (await client.listTools()).tools;
    const tool = host.tools.find((one) => one.name === plan.tool);
    if (tool) return tool;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function show(client, tool) {
  const { contents } = await client.readResource({ uri: getToolUiResourceUri(tool) });
  host.resource = { ...contents[0], text: contents[0].text.length };
  const frame = document.querySelector("iframe");
  const bridge = new AppBridge(
    client,
    { name: "afoot-tests", version: "1" },
    { openLinks: {}, serverTools: {}, serverResources: {}, logging: {} },
    { hostContext: { toolInfo: { tool }, theme: plan.theme ?? "light" } },
  );
  bridge.onsizechange = (size) => (host.size = size);
  bridge.onmessage = async (params) => {
    host.messages.push(params);
    return {};
  };
  const initialized = new Promise((resolve) => (bridge.oninitialized = resolve));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = contents[0].text;
  await initialized;
  const given = JSON.parse(plan.arguments ?? "{}");
  await bridge.sendToolInput({ arguments: given });
  host.isOpen = true;
  host.result = await client.callTool({ name: tool.name, arguments: given }, { timeout: CALL_MS });
  await bridge.sendToolResult(host.result);
}

try {
  const client = await connect();
  host.server = client.getServerCapabilities();
  const tool = await findTool(client);
  await show(client, tool);
  host.isShown = true;
} catch (error) {
  host.error = String(error.stack);
}
