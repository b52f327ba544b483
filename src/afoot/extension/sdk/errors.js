// ToolError: the error that a tool throws, with the kind of failure and whether a retry may help.

/** @typedef {{category?: string, code?: string, retryable?: boolean, retryAfterMs?: number}} Failure */

/** HTTP status to [category, retryable]; the same as in afoot's Python. */
const STATUS_MEANINGS = Object.freeze(
  /** @type {Record<number, [string, boolean]>} */ ({
    400: ["validation", false],
    401: ["auth", false],
    403: ["auth", false],
    404: ["not_found", false],
    408: ["timeout", true],
    409: ["validation", false],
    410: ["not_found", false],
    422: ["validation", false],
    425: ["unavailable", true],
    429: ["rate_limit", true],
    502: ["unavailable", true],
    503: ["unavailable", true],
    504: ["timeout", true],
  }),
);

/** A failure that a tool can explain: the text is for the model, the fields are for programs. */
class ToolError extends Error {
  /**
   * @param {string} message
   * @param {Failure} [failure]
   */
  constructor(message, { category = "internal", code, retryable = false, retryAfterMs } = {}) {
    super(message);
    this.name = "ToolError";
    this.category = category;
    this.code = code ?? category;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
  }

  /**
   * The person is not logged in, or may not do this.
   * @param {string} message
   * @param {string} [code]
   */
  static auth(message, code) {
    return new ToolError(message, { category: "auth", code });
  }

  /** The thing that was asked for does not exist. @param {string} message @param {string} [code] */
  static notFound(message, code) {
    return new ToolError(message, { category: "not_found", code });
  }

  /**
   * Too many requests.
   * @param {string} message
   * @param {number} [retryAfterMs]
   * @param {string} [code]
   */
  static rateLimited(message, retryAfterMs, code) {
    return new ToolError(message, { category: "rate_limit", code, retryable: true, retryAfterMs });
  }

  /** The input is not valid. @param {string} message @param {string} [code] */
  static validation(message, code) {
    return new ToolError(message, { category: "validation", code });
  }

  /** Something took too long. @param {string} message @param {string} [code] */
  static timeout(message, code) {
    return new ToolError(message, { category: "timeout", code, retryable: true });
  }

  /**
   * A service cannot be reached now.
   * @param {string} message
   * @param {number} [retryAfterMs]
   * @param {string} [code]
   */
  static unavailable(message, retryAfterMs, code) {
    return new ToolError(message, { category: "unavailable", code, retryable: true, retryAfterMs });
  }

  /** The tool itself is broken. @param {string} message @param {string} [code] */
  static internal(message, code) {
    return new ToolError(message, { category: "internal", code });
  }

  /**
   * The error for an HTTP status.
   * @param {number} status
   * @param {string} message
   * @param {number} [retryAfterMs]
   */
  static fromStatus(status, message, retryAfterMs) {
    const [category, retryable] = STATUS_MEANINGS[status] ?? ["internal", false];
    return new ToolError(message, { category, code: String(status), retryable, retryAfterMs });
  }
}
