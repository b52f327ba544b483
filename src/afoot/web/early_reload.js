// Loads the page again if a script of it did not arrive: the gateway may have been too busy, or just ended. One missing
// module is enough for none of them to run, and the page would stay empty. A module could not tell.
{
  const RETRY_MS = 2000;
  const isScript = (/** @type {EventTarget | null} */ target) => target instanceof HTMLScriptElement;
  addEventListener("error", ({ target }) => void (isScript(target) && setTimeout(() => location.reload(), RETRY_MS)), {
    capture: true, // the error of an element goes no further up
  });
}
