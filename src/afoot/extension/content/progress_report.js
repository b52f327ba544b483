// readReport and encodeReport: the arguments of reportProgress, checked and cut, and their JSON text.
"use strict";
(() => {
  /** @type {Modules} */
  const modules = /** @type {any} */ (globalThis)[Symbol.for("dev.afoot.modules")];
  const { hasOwn, isFinite, stringify } = modules.builtins;
  const { utf8Length, truncate, encode } = modules.encoding;

  const MAX_MESSAGE = 1000;
  const MAX_DATA_BYTES = 64 * 1024;
  const HEARTBEAT = '{"alive":true}';

  /**
   * A checked report; unusable parts are left out.
   * @typedef {{progress?: number, total?: number, message?: string, data?: unknown, encoded?: string}} Report
   */

  /**
   * Reads reportProgress("text"), reportProgress({progress, total, message, data}) and
   * reportProgress(progress, total, message). Never throws.
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
      // A getter of the page threw; the fields read before it count.
    }
    return report;
  };

  /** @param {Report} report @param {"progress" | "total"} field @param {any} number */
  const readNumber = (report, field, number) => {
    if (isFinite(number)) report[field] = number;
  };

  /** @param {Report} report @param {any} message */
  const readMessage = (report, message) => {
    if (typeof message === "string") report.message = truncate(message, MAX_MESSAGE);
  };

  /** @param {Report} report @param {any} data */
  const readData = (report, data) => {
    const encoded = data === undefined || data === null ? undefined : encode(data);
    if (encoded === undefined || encoded.length > MAX_DATA_BYTES || utf8Length(encoded) > MAX_DATA_BYTES)
      return;
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
    return `{${modules.builtins.slice(text, 1)}}`;
  };

  modules.reports = { __proto__: null, HEARTBEAT, encodeReport, readReport };
})();
