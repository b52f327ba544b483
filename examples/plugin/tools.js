// Example plugin: it reads the orders on the example shop's page, and exports the shop's archive page by page.

/** @typedef {{number: number, customer: string, goods: string, price: number}} ArchivedOrder */
/** @typedef {{page: number, pages: number, orders: ArchivedOrder[]}} ArchivePage */

defineTool({
  name: "read_orders",
  displayName: "Read orders",
  description: "Read the orders that the shop's page shows now.",
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
    "Export the orders of the archive as CSV, for one customer or for all. It reads page by page and can be stopped.",
  input: {
    type: "object",
    properties: { customer: { type: "string", description: "export only this customer's orders" } },
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

/** Fetch one page of the archive with the page's login. @param {number} page @param {ToolContext} [context] @returns {Promise<ArchivePage>} */
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
