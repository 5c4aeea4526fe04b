// Every change is sent at once, one after another, and again until the server has it: nothing is lost if it ends meanwhile.

const PAUSE = 200;
const RETRY = 1000;

/**
 * `send(entry)` sends one entry; `report(state, error)` is told "saving", "saved", "waiting" (the server is not there)
 * or "refused". Of several entries of the same key, only the last one is sent.
 */
export function autosave(send, report, pause = PAUSE) {
  const waiting = new Map();
  let timer = null;
  let sending = false;

  function put(key, entry) {
    waiting.delete(key);
    waiting.set(key, entry);
    report("saving");
    schedule(pause);
  }

  function schedule(delay) {
    clearTimeout(timer);
    timer = setTimeout(flush, delay);
  }

  async function flush() {
    if (sending || !waiting.size) return;
    sending = true;
    const [key, entry] = waiting.entries().next().value;
    try {
      await send(entry);
      if (waiting.get(key) === entry) waiting.delete(key);
      report(waiting.size ? "saving" : "saved");
      if (waiting.size) schedule(0);
    } catch (error) {
      const refused = error.status >= 400 && error.status < 500 && error.status !== 429;
      if (refused) waiting.delete(key);
      report(refused ? "refused" : "waiting", error);
      schedule(refused ? 0 : RETRY);
    } finally {
      sending = false;
    }
  }

  addEventListener("beforeunload", (event) => waiting.size && event.preventDefault());
  addEventListener("pagehide", flush);

  /** Waits until everything is saved. */
  async function settle() {
    while (waiting.size || sending) {
      schedule(0);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  return { put, settle };
}
