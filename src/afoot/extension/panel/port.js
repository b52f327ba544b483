// connect: the panel's port to the service worker, reopened whenever the worker was stopped.

/** @typedef {{method: string, params: any}} Message */

const RECONNECT_MS = 200;

/**
 * Connect to the worker.
 * @param {(message: Message) => void} onMessage
 * @returns {(method: string, params?: Record<string, any>) => void} sends a message to the worker
 */
export function connect(onMessage) {
  /** @type {chrome.runtime.Port | null} */
  let port = null;
  /** @type {Message[]} */
  let waiting = []; // messages to send when there is a worker
  const send = (/** @type {Message} */ message) => {
    try {
      if (port) port.postMessage(message);
      else waiting.push(message);
    } catch {
      waiting.push(message); // the worker was stopped in this moment
    }
  };
  const open = () => {
    port = chrome.runtime.connect({ name: "afoot.panel" });
    port.onMessage.addListener(onMessage);
    const all = waiting;
    waiting = [];
    all.forEach(send);
    port.onDisconnect.addListener(() => {
      port = null;
      setTimeout(open, RECONNECT_MS);
    });
  };
  open();
  return (method, params = {}) => send({ method, params });
}
