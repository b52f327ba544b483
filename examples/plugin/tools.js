// An example of a plugin: it reads what the example shop shows, and exports its archive, page by page.

/** @typedef {{number: number, customer: string, goods: string, price: number}} ArchivedOrder */
/** @typedef {{page: number, pages: number, orders: ArchivedOrder[]}} ArchivePage */

defineTool({
  name: "read_orders",
  displayName: "Read orders",
  description: "The orders that the shop's page shows now.",
  annotations: { readOnlyHint: true },
  handle() {
    const rows = [...document.querySelectorAll("#orders tr")];
    return {
      orders: rows.map((row) => {
        const [number, customer, goods] = [...row.children].map((cell) => cell.textContent);
        return { number: Number(number), customer, goods };
      }),
    };
  },
});

defineTool({
  name: "export_archive",
  displayName: "Export the archive",
  description:
    "All orders of the archive as CSV, of one customer or of all. Page by page; it can be stopped.",
  input: {
    type: "object",
    properties: { customer: { type: "string", description: "only this customer's orders" } },
  },
  output: {
    type: "object",
    properties: { orders: { type: "integer" }, csv: { type: "string" } },
    required: ["orders", "csv"],
  },
  annotations: { readOnlyHint: true },
  async handle({ customer = "" }, context) {
    /** @type {ArchivedOrder[]} */
    const found = [];
    for (let page = 1, pages = 1; page <= pages; page += 1) {
      const got = await retry(() => archivePage(page, context), { context });
      pages = got.pages;
      found.push(...got.orders.filter((order) => !customer || order.customer === customer));
      context?.reportProgress({ progress: page, total: pages, message: `page ${page} of ${pages}` });
    }
    if (found.length === 0) throw ToolError.notFound(`${customer} has never ordered anything`);
    return { orders: found.length, csv: csv(found) };
  },
});

/** With the login of the page. @param {number} page @param {ToolContext} [context] @returns {Promise<ArchivePage>} */
function archivePage(page, context) {
  return fetchJSON(`archive-${page}.json`, { context });
}

/** @param {ArchivedOrder[]} orders */
function csv(orders) {
  const quoted = (/** @type {string} */ text) => `"${text.replaceAll('"', '""')}"`;
  const lines = orders.map((one) => [
    one.number,
    quoted(one.customer),
    quoted(one.goods),
    one.price.toFixed(2),
  ]);
  return ["number,customer,goods,price", ...lines.map((line) => line.join(","))].join("\n");
}
