// The panel's port to the worker, opened again whenever the worker was ended.

/** @typedef {{method: string, params: any}} Message */

const AGAIN_MS = 200;

/**
 * Connect to the worker.
 * @param {(message: Message) => void} hear
 * @returns {(method: string, params?: Record<string, any>) => void} what says something to it
 */
export function connect(hear) {
  /** @type {chrome.runtime.Port | null} */
  let port = null;
  /** @type {Message[]} */
  let waiting = []; // what was said while there was no worker
  const send = (/** @type {Message} */ message) => {
    try {
      if (port) port.postMessage(message);
      else waiting.push(message);
    } catch {
      waiting.push(message); // the worker was ended this moment
    }
  };
  const open = () => {
    port = chrome.runtime.connect({ name: "afoot.panel" });
    port.onMessage.addListener(hear);
    const all = waiting;
    waiting = [];
    all.forEach(send);
    port.onDisconnect.addListener(() => {
      port = null;
      setTimeout(open, AGAIN_MS);
    });
  };
  open();
  return (method, params = {}) => send({ method, params });
}
