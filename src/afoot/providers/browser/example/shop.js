// An example of a page with tools: a little shop, whose orders an agent can find, export and delete.
"use strict";
{
  const PAGE_MS = 250; // what the export of one page takes

  /** @typedef {{number: number, customer: string, goods: string}} Order */
  /** @typedef {{signal: AbortSignal, reportProgress: (report: object) => void}} Context */

  /** @type {Order[]} */
  const orders = [
    { number: 1001, customer: "Ada", goods: "a loom" },
    { number: 1002, customer: "Grace", goods: "a moth, framed" },
    { number: 1003, customer: "Ada", goods: "four punched cards" },
    { number: 1004, customer: "Annie", goods: "a star chart" },
  ];
  const modelContext = /** @type {any} */ (document).modelContext;
  const bar = /** @type {HTMLProgressElement} */ (document.querySelector("#bar"));

  const searchOrders = {
    name: "search_orders",
    title: "Search orders",
    description: "Find the orders of a customer.",
    inputSchema: {
      type: "object",
      properties: { customer: { type: "string", description: "the customer's name, or a part of it" } },
      required: ["customer"],
    },
    annotations: { readOnlyHint: true },
    /** @param {{customer: string}} input */
    execute: ({ customer }) => ({
      orders: orders.filter((order) => order.customer.toLowerCase().includes(customer.toLowerCase())),
    }),
  };

  const exportOrders = {
    name: "export_orders",
    title: "Export orders",
    description: "Export the orders of the last years, page by page. It takes a while, and can be stopped.",
    inputSchema: {
      type: "object",
      properties: { pages: { type: "integer", minimum: 1, description: "how many pages" } },
      required: ["pages"],
    },
    /** @param {{pages: number}} input @param {Context} context */
    async execute({ pages }, { signal, reportProgress }) {
      for (let page = 1; page <= pages; page += 1) {
        await new Promise((done) => setTimeout(done, PAGE_MS));
        if (signal.aborted) {
          say(`The export was stopped at page ${page}: ${signal.reason}`);
          throw signal.reason;
        }
        say(`Exported page ${page} of ${pages}.`, page / pages);
        reportProgress({ progress: page, total: pages, message: `page ${page}` });
      }
      return { pages, orders: pages * 20 };
    },
  };

  const deleteOrder = {
    name: "delete_order",
    title: "Delete an order",
    description: "Delete an order for good.",
    inputSchema: {
      type: "object",
      properties: { number: { type: "integer", description: "the order's number" } },
      required: ["number"],
    },
    annotations: { consequentialHint: true },
    /** @param {{number: number}} input */
    execute({ number }) {
      const at = orders.findIndex((order) => order.number === number);
      if (at < 0) throw new RangeError(`there is no order ${number}`);
      const [gone] = orders.splice(at, 1);
      show();
      say(`Order ${number} was deleted.`);
      return { deleted: gone };
    },
  };

  /** Show the orders that there are. */
  function show() {
    const rows = orders.map(({ number, customer, goods }) => {
      const row = document.createElement("tr");
      for (const text of [number, customer, goods]) {
        row.insertCell().textContent = String(text);
      }
      return row;
    });
    document.querySelector("#orders")?.replaceChildren(...rows);
  }

  /** Say what is being done, and how much of it is. @param {string} text @param {number} [share] */
  function say(text, share = 0) {
    const line = /** @type {HTMLElement} */ (document.querySelector("#said"));
    line.textContent = text;
    bar.value = share;
  }

  show();
  if (modelContext) {
    for (const tool of [searchOrders, exportOrders, deleteOrder]) modelContext.registerTool(tool);
  } else {
    say("This browser has no WebMCP, and afoot is not here: load this page where either is.");
  }

  // The page's own use of its tool: whoever runs it, its reports go to whoever wants to hear them.
  document.querySelector("#export")?.addEventListener("click", async () => {
    const tools = await modelContext.getTools();
    const tool = tools.find((/** @type {{name: string}} */ one) => one.name === "export_orders");
    const monitor = (/** @type {EventTarget} */ heard) =>
      heard.addEventListener("progress", (event) => console.log(/** @type {any} */ (event).message));
    await modelContext.executeTool(tool, { pages: 10 }, { monitor });
  });
}
