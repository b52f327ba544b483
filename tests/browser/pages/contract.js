// The tools that every provider's contract wants, as a page registers them with WebMCP.
"use strict";

const context = document.modelContext;
const object = (properties = {}) => ({ type: "object", properties, required: Object.keys(properties) });

context?.registerTool({
  name: "echo",
  description: "Gives back the text.",
  inputSchema: object({ text: { type: "string" } }),
  execute: ({ text }) => text,
});

context?.registerTool({
  name: "count",
  description: "Reports 1 to n of n.",
  inputSchema: object({ n: { type: "integer" } }),
  async execute({ n }, { reportProgress }) {
    for (let i = 1; i <= n; i += 1) {
      reportProgress({ progress: i, total: n, message: `${i} of ${n}` });
      if (i % 10 === 0) await null;
    }
    return String(n);
  },
});

context?.registerTool({
  name: "crash",
  description: "Breaks.",
  inputSchema: object(),
  execute: () => {
    throw new TypeError("boom");
  },
});

context?.registerTool({
  name: "missing",
  description: "Finds nothing.",
  inputSchema: object(),
  async execute() {
    throw Object.assign(new Error("no such thing"), { category: "not_found", code: "no_such_thing" });
  },
});

context?.registerTool({
  name: "hang",
  description: "Reports once and waits until it is cancelled.",
  inputSchema: object(),
  execute(_input, { signal, reportProgress }) {
    reportProgress({ progress: 1, message: "waiting" });
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        window.aborted = [...(window.aborted ?? []), { at: Date.now(), reason: String(signal.reason) }];
        reject(signal.reason);
      });
    });
  },
});
