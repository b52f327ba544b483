// A tool inside a frame, which says where it is and notes how it is stopped.
"use strict";
document.modelContext
  .registerTool({
    name: "framed",
    description: "says where it is",
    inputSchema: { type: "object", properties: { wait: { type: "boolean" } } },
    execute: ({ wait }, { signal, reportProgress }) => {
      reportProgress({ progress: 1, total: 1, message: "in a frame" });
      if (!wait) return { origin: self.origin, href: location.href };
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  })
  .catch((error) => (window.failed = `${error.name}: ${error.message}`));
