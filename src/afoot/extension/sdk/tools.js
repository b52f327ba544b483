// The tools that a plugin defines, and the lines they log.

/**
 * A tool of a plugin. `input` and `output` are JSON Schemas of objects.
 * @template {Record<string, any>} [P=any]
 * @typedef {object} ToolDefinition
 * @property {string} name 1 to 64 letters, digits, _ and -
 * @property {string} description what it does, for the model
 * @property {(params: P, context?: ToolContext) => unknown} handle does the work
 * @property {string} [displayName] its name for people
 * @property {string} [icon] the address of a picture: https: or data:
 * @property {Record<string, any>} [input]
 * @property {Record<string, any>} [output]
 * @property {Record<string, any>} [annotations] readOnlyHint, destructiveHint, idempotentHint, openWorldHint
 */

/** @type {Map<string, ToolDefinition>} */
const definedTools = new Map();

/** Define a tool; gives it back as it is. @template {ToolDefinition} T @param {T} tool @returns {T} */
function defineTool(tool) {
  const { name, description, handle, input, output } = tool;
  if (typeof name !== "string" || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new TypeError(`a tool's name is 1 to 64 letters, digits, _ and -, not ${JSON.stringify(name)}`);
  }
  if (definedTools.has(name)) throw new TypeError(`the tool ${name} is defined twice`);
  if (typeof handle !== "function") throw new TypeError(`the tool ${name} has no function handle`);
  if (typeof description !== "string" || !description) {
    throw new TypeError(`the tool ${name} has no description`);
  }
  for (const [key, schema] of Object.entries({ input, output })) {
    if (schema !== undefined && (typeof schema !== "object" || (schema?.type ?? "object") !== "object")) {
      throw new TypeError(`${key} of the tool ${name} is no JSON Schema of an object`);
    }
  }
  definedTools.set(name, tool);
  return tool;
}

/** A tool of this plugin, for unit tests and other tools. @param {string} name @returns {ToolDefinition} */
function findTool(name) {
  const tool = definedTools.get(name);
  if (tool === undefined) throw new TypeError(`no tool ${name} is defined`);
  return tool;
}

/** The tools as the gateway is told of them. */
function toldTools() {
  return [...definedTools.values()].map((tool) => ({
    name: tool.name,
    title: tool.displayName ?? "",
    description: tool.description,
    icon: tool.icon ?? "",
    inputSchema: tool.input ?? { type: "object" },
    ...(tool.output === undefined ? {} : { outputSchema: tool.output }),
    ...(tool.annotations === undefined ? {} : { annotations: tool.annotations }),
  }));
}

/** Lines for the history of the only run there is; with none or several, for the browser's console. */
const log = Object.freeze({
  /** @param {unknown[]} words */ debug: (...words) => writeLine("debug", words),
  /** @param {unknown[]} words */ info: (...words) => writeLine("info", words),
  /** @param {unknown[]} words */ warn: (...words) => writeLine("warn", words),
  /** @param {unknown[]} words */ error: (...words) => writeLine("error", words),
});

/** @param {"debug" | "info" | "warn" | "error"} level @param {unknown[]} words */
function writeLine(level, words) {
  const line = onlyRun()?.log;
  if (line) line[level](...words);
  else console[level](...words);
}
