// defineTool and log: the tools of a plugin, and the lines that they log.

/**
 * A tool of a plugin. `input` and `output` are JSON Schemas of objects, or have a method `toJSONSchema`, as Zod's have.
 * @template {Record<string, any>} [P=any]
 * @typedef {object} ToolDefinition
 * @property {string} name 1 to 64 letters, digits, _ and -
 * @property {string} description what it does, for the model
 * @property {(params: P, context?: ToolContext) => unknown} handle does the work
 * @property {string} [displayName] its name for people
 * @property {string} [icon] URL of a picture: https: or data:
 * @property {Record<string, any>} [input]
 * @property {Record<string, any>} [output]
 * @property {Record<string, any>} [annotations] readOnlyHint, destructiveHint, idempotentHint, openWorldHint
 */

/** @type {Map<string, ToolDefinition>} */
const definedTools = new Map();
/** @type {Map<string, {input?: Record<string, any>, output?: Record<string, any>}>} */
const toolSchemas = new Map();

/** Define a tool, and return it. @template {ToolDefinition} T @param {T} tool @returns {T} */
function defineTool(tool) {
  const { name, description, handle } = tool;
  if (typeof name !== "string" || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new TypeError(`a tool's name is 1 to 64 letters, digits, _ and -, not ${JSON.stringify(name)}`);
  }
  if (definedTools.has(name)) throw new TypeError(`the tool ${name} is defined twice`);
  if (typeof handle !== "function") throw new TypeError(`the tool ${name} has no function handle`);
  if (typeof description !== "string" || !description) {
    throw new TypeError(`the tool ${name} has no description`);
  }
  toolSchemas.set(name, { input: jsonSchema(tool, "input"), output: jsonSchema(tool, "output") });
  definedTools.set(name, tool);
  return tool;
}

/**
 * The JSON Schema of a tool's input or output. Zod has two where values are converted, and `io` says which.
 * @param {ToolDefinition} tool @param {"input" | "output"} io
 * @returns {Record<string, any> | undefined}
 */
function jsonSchema(tool, io) {
  const given = tool[io];
  const schema = typeof given?.toJSONSchema === "function" ? given.toJSONSchema({ io }) : given;
  if (schema !== undefined && (typeof schema !== "object" || (schema?.type ?? "object") !== "object")) {
    throw new TypeError(`${io} of the tool ${tool.name} is no JSON Schema of an object`);
  }
  return schema;
}

/**
 * A tool of this plugin, for unit tests and other tools.
 * @param {string} name
 * @returns {ToolDefinition}
 */
function findTool(name) {
  const tool = definedTools.get(name);
  if (tool === undefined) throw new TypeError(`no tool ${name} is defined`);
  return tool;
}

/** The descriptions of the tools for the gateway. */
function toolDescriptions() {
  return [...definedTools.values()].map((tool) => {
    const { input = { type: "object" }, output } = toolSchemas.get(tool.name) ?? {};
    return {
      name: tool.name,
      title: tool.displayName ?? "",
      description: tool.description,
      icon: tool.icon ?? "",
      inputSchema: input,
      ...(output === undefined ? {} : { outputSchema: output }),
      ...(tool.annotations === undefined ? {} : { annotations: tool.annotations }),
    };
  });
}

/** Logs lines into the history of the only open run; with none or several, into the browser's console. */
const log = Object.freeze({
  /** @param {unknown[]} values */ debug: (...values) => writeLog("debug", values),
  /** @param {unknown[]} values */ info: (...values) => writeLog("info", values),
  /** @param {unknown[]} values */ warn: (...values) => writeLog("warn", values),
  /** @param {unknown[]} values */ error: (...values) => writeLog("error", values),
});

/** @param {"debug" | "info" | "warn" | "error"} level @param {unknown[]} values */
function writeLog(level, values) {
  const line = currentRun()?.log;
  if (line) line[level](...values);
  else console[level](...values);
}
