// What a tool may say of its progress, and what of it is passed on.
"use strict";
(() => {
  /** @type {Parts} */
  const parts = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.parts")];
  const { hasOwn, isFinite, stringify } = parts.builtins;
  const { bytesOf, cut, encode } = parts.encoding;

  const MESSAGE_LIMIT = 1000;
  const DATA_LIMIT = 64 * 1024;
  const ALIVE = '{"alive":true}';

  /**
   * A report as it was understood; what is not usable is left out.
   * @typedef {{progress?: number, total?: number, message?: string, data?: unknown, encoded?: string}} Report
   */

  /**
   * Reads reportProgress("text"), reportProgress({progress, total, message, data}) and
   * reportProgress(progress, total, message). Never throws: a report costs at most itself.
   * @param {any} first @param {any} [second] @param {any} [third] @returns {Report}
   */
  const readReport = (first, second, third) => {
    /** @type {Report} */
    const report = /** @type {any} */ ({ __proto__: null });
    try {
      if (typeof first === "object" && first !== null) {
        readNumber(report, "progress", first.progress);
        readNumber(report, "total", first.total);
        readMessage(report, first.message);
        readData(report, first.data);
      } else {
        readNumber(report, "progress", first);
        readNumber(report, "total", second);
        readMessage(report, typeof first === "number" ? third : first);
      }
    } catch {
      // A getter of the page broke; what was read before it counts.
    }
    return report;
  };

  /** @param {Report} report @param {"progress" | "total"} field @param {any} number */
  const readNumber = (report, field, number) => {
    if (isFinite(number)) report[field] = number;
  };

  /** @param {Report} report @param {any} message */
  const readMessage = (report, message) => {
    if (typeof message === "string") report.message = cut(message, MESSAGE_LIMIT);
  };

  /** @param {Report} report @param {any} data */
  const readData = (report, data) => {
    const encoded = data === undefined || data === null ? undefined : encode(data);
    if (encoded === undefined || encoded.length > DATA_LIMIT || bytesOf(encoded) > DATA_LIMIT) return;
    report.data = data;
    report.encoded = encoded;
  };

  /** The JSON text of a report. @param {Report} report */
  const encodeReport = (report) => {
    let text = "";
    if (hasOwn(report, "progress")) text += `,"progress":${stringify(report.progress)}`;
    if (hasOwn(report, "total")) text += `,"total":${stringify(report.total)}`;
    if (hasOwn(report, "message")) text += `,"message":${stringify(report.message)}`;
    if (hasOwn(report, "encoded")) text += `,"data":${report.encoded}`;
    return `{${parts.builtins.slice(text, 1)}}`;
  };

  parts.reporting = { __proto__: null, ALIVE, encodeReport, readReport };
})();
