// One run, live, one step at a time: what to do now in large type, Done, Back, another step; a stop where a stated rule
// would be broken. The run is kept by the server; whoever else tells it something, a recogniser for instance, is seen
// here as well. What was tapped is kept on the device until the server has it.
import { get, newId, post, remove } from "./api.js";
import { autosave } from "./autosave.js";
import { button, el, field, link, nameElement, reportErrors, select, showError, showStatus } from "./dom.js";
import * as cards from "./follow_cards.js";

const MAX_OTHERS = 4;
const QUIET = 400; // milliseconds without an answer after which the page says that it is saving

export async function show(screen, graphId) {
  const [graph, file] = await Promise.all([get(`work/${graphId}`), get(`work/${graphId}/as/json`)]);
  document.title = `${graph.task} – msg2`;
  const run = (await keptRun(graphId)) ?? (await begin(screen, graph));
  keepRun(graphId, run.id);
  followRun(screen, graph, file, run);
}

// -- which run ---------------------------------------------------------------------------------------------------

const storageKey = (graphId) => `msg2 run ${graphId}`;

/** What this device keeps under a key; a browser may forbid to keep anything. */
function recall(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function keep(key, text) {
  try {
    localStorage.setItem(key, text);
  } catch {
    // Then it lasts as long as the page is open.
  }
}

/** The run that the address names, or the last one of this graph on this device; null where it is gone. */
async function keptRun(graphId) {
  const id = new URLSearchParams(location.search).get("run") ?? recall(storageKey(graphId));
  if (!id) return null;
  const runs = (await get("runs")).runs;
  if (!runs.some((run) => run.id === id && run.graph === graphId)) return null;
  try {
    return await get(`runs/${id}`);
  } catch (error) {
    if (error.status !== 400) throw error; // its graph has changed, or its data is gone
  }
  try {
    return await post(`runs/${id}/graph`, { graph: graphId });
  } catch (error) {
    if (![400, 404].includes(error.status)) throw error; // it cannot go on
    await remove(`runs/${id}`);
    return null;
  }
}

function keepRun(graphId, id) {
  history.replaceState(null, "", `/follow/${graphId}?run=${id}`);
  keep(storageKey(graphId), id);
}

/** A new run: with the data that the graph was learned from, or with what is chosen where other data fit. */
async function begin(screen, graph) {
  const known = new Set(graph.steps);
  const fits = (data) => data.tasks.some((task) => task.steps.length && task.steps.every((step) => known.has(step)));
  const fitting = graph.job ? [] : (await get("data")).data.filter(fits);
  return fitting.length ? chosenRun(screen, graph, fitting) : openRun({ graph: graph.id });
}

function chosenRun(screen, graph, fitting) {
  const options = [...fitting.map((data) => [data.id, data.name]), ["", "nothing: the graph alone"]];
  const chosen = select(options, fitting[0].id);
  return new Promise((resolve) => {
    const start = reportErrors(async ({ currentTarget: pressed }) => {
      pressed.disabled = true;
      try {
        resolve(await openRun({ graph: graph.id, data: chosen.value || null }));
      } finally {
        pressed.disabled = false;
      }
    });
    screen.replaceChildren(el("h1", {}, nameElement(graph.task)), field("What is usual comes from", chosen),
      el("p", {}, button("Start", start, { className: "main" })));
  });
}

async function openRun(request) {
  showStatus("Learning from the videos …");
  const run = await post("runs", request);
  showStatus("");
  return run;
}

// -- the run -----------------------------------------------------------------------------------------------------

/** A run on the screen. `file` is its graph, `run` is as the server keeps it. */
function followRun(screen, graph, file, run) {
  let [version, answer, lastAt, chosen, removed, saving, shownStops] = [-1, null, null, null, false, null, "[]"];
  const unsentKey = `msg2 unsent ${run.id}`;
  const unsent = new Map(JSON.parse(recall(unsentKey) ?? "[]"));
  const clock = () => Date.now() / 1000 - run.made;

  // -- what is told: one event after the other, each until the server has it, and none of them twice
  const queue = autosave(send, (state, error) => {
    if (state === "refused") showError(error);
    else if (state === "waiting") showSaving("No connection: what you tap is kept, and sent when it is back.");
    draw();
  }, 0);

  async function send([key, event]) {
    try {
      // What has no id is taken back only if nothing has happened since: an answer may have been lost.
      const seen = event.undo === true ? (await get(`runs/${run.id}`)).answer : null;
      receive(seen && key !== `undo ${seen.version}` ? seen : await tellRun(run.id, event));
    } catch (error) {
      if (!(error.status >= 400 && error.status < 500) || error.status === 429) throw error;
      settle(key);
      if (!event.undo) throw error;
      receive((await get(`runs/${run.id}`)).answer); // it was taken back already
    }
    settle(key);
  }

  function settle(key) {
    unsent.delete(key);
    keep(unsentKey, JSON.stringify([...unsent]));
    if (!unsent.size) showSaving("");
  }

  function tell(event) {
    const id = newId();
    const key = event.undo ? `undo ${event.undo === true ? version : event.undo}` : id;
    unsent.set(key, event.undo ? event : { id, ...event });
    keep(unsentKey, JSON.stringify([...unsent]));
    clearTimeout(saving);
    saving = setTimeout(() => unsent.size && showSaving("Saving …"), QUIET);
    queue.put(key, [key, unsent.get(key)]);
    draw(true);
  }

  function showSaving(text) {
    clearTimeout(saving);
    showStatus(text);
  }

  // -- what can be tapped
  const told = (event) => (unsent.size ? null : tell(event)); // while one is on its way, its button is pressed already
  const undoing = () => [...unsent.values()].some((event) => event.undo);
  const actions = {
    did(step, next = null) {
      chosen = next;
      told({ did: step, at: Math.max(clock(), lastAt ?? -Infinity) });
    },
    accept: (step) => told({ accept: step }),
    choose(step) {
      chosen = step;
      openOthers(false);
      draw(true);
      if (step) parts.now.scrollIntoView({ block: "nearest" });
    },
    back() {
      if (chosen) return actions.choose(null);
      if (undoing() || !(answer.last || unsent.size)) return null;
      return tell({ undo: [...unsent.values()].at(-1)?.id ?? answer.last.id ?? true });
    },
  };

  const startOver = reportErrors(async () => {
    if (answer.last && !removed && !confirm("Start over? What was ticked is forgotten.")) return;
    stream.close();
    if (!removed) await remove(`runs/${run.id}`);
    removed = true;
    const again = await openRun({ graph: graph.id, data: run.data });
    keepRun(graph.id, again.id);
    location.reload();
  });

  // -- what is shown
  const parts = Object.fromEntries(["measure", "now", "missing", "others"].map((name) => [name, el("section", { className: name })]));
  const stop = el("div", { role: "alert" });
  const spoken = el("p", { className: "unseen", role: "status" });
  const backButton = button("Back", actions.back, { "aria-keyshortcuts": "u" });
  const othersButton = button("Another step", () => openOthers(!parts.others.classList.contains("open")), { className: "more" });
  const moves = el("p", { className: "moves" }, backButton, othersButton);
  const [soon, every] = [el("ol", { className: "soon" }), el("ol", { className: "every" })];
  const everything = el("details", { open: matchMedia("(min-width: 900px)").matches }, el("summary", {}, "All steps"), every);
  parts.others.id = "others";
  parts.others.append(el("h2", {}, "Another step"), soon, everything);
  othersButton.setAttribute("aria-controls", "others");
  openOthers(false);

  function openOthers(open) {
    parts.others.classList.toggle("open", open);
    othersButton.setAttribute("aria-expanded", String(open));
    if (open) parts.others.scrollIntoView({ block: "nearest" });
  }

  function receive(next) {
    if (next.version <= version) return;
    if (next.graph) return location.replace(`/follow/${next.graph}?run=${run.id}`); // it has taken over
    [version, answer] = [next.version, next];
    lastAt = answer.last?.at ?? (answer.last ? lastAt : null);
    if (answer.progress.includes(chosen)) chosen = null;
    spoken.textContent = cards.spokenText(answer);
    draw();
  }

  /** Draws everything; with `own`, somebody has just tapped or pressed a key here, and goes on with what comes up. */
  function draw(own = false) {
    const active = document.activeElement;
    const [inside, key] = [screen.contains(active), active?.dataset.key];
    const others = cards.possibleSteps(answer);
    const current = cards.currentStep(answer, chosen) ?? others.shift();
    const stops = cards.stopsOf(answer, chosen ? current : null);
    const stopped = stops.some(({ stated }) => stated);
    const over = !current || (answer.finished.finished && !chosen);
    if (shownStops !== (shownStops = JSON.stringify(stops))) { // it is read out as often as it is drawn
      stop.replaceChildren(...stops.map((alarm) => cards.stopElement(alarm, file, answer, actions)));
      if (stops.length) stop.scrollIntoView({ block: "nearest" }); // a list further down was tapped
    }
    parts.now.replaceChildren(...(stopped ? [] : over ? cards.finishedElements(answer, actions) : cards.stepElements(current, chosen, file, answer, actions)));
    parts.missing.replaceChildren(...(stopped || over ? [] : cards.missingElements(answer, stops, actions)));
    soon.replaceChildren(...(over && current ? [current, ...others] : others).filter(({ step }) => step !== chosen).slice(0, MAX_OTHERS)
      .map((one, place) => el("li", {}, cards.otherButton(one, place + 2, actions))));
    every.replaceChildren(...run.steps.map((step) => el("li", {}, cards.everyStep(step, answer, over ? null : current.step, actions))));
    parts.others.inert = moves.hidden = stopped;
    backButton.setAttribute("aria-disabled", String(undoing() || !(chosen || answer.last || unsent.size)));
    for (const pressed of screen.querySelectorAll("[data-tells]")) pressed.ariaDisabled = String(unsent.size > 0);
    drawMeasure();
    if (!inside || active === backButton || (screen.contains(active) && !own)) return;
    const same = own ? null : [...screen.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key);
    (same ?? stop.querySelector("button") ?? parts.now.querySelector("button") ?? backButton).focus({ preventScroll: true });
  }

  function drawMeasure() {
    const [done, required] = [answer.progress.length, answer.finished.left.length];
    // Where nothing required is left and still more may come, the bar is not full yet.
    const all = done + (required || (answer.finished.finished ? 0 : 1));
    const passed = lastAt === null ? 0 : Math.max(clock() - lastAt, 0);
    const left = answer.finished.finished ? null : timeText(answer.time_left, passed);
    parts.measure.replaceChildren(el("progress", { max: all || 1, value: done, "aria-label": "Steps done" }),
      el("p", {}, el("span", {}, `${done} done${required ? `, at least ${required} to go` : ""}`), left ? el("span", { className: "left" }, left) : null));
  }

  addEventListener("keydown", (event) => {
    // A key that is held would do what has come to the place of what it did.
    if (event.repeat && screen.contains(event.target) && /^(Enter| )$/.test(event.key)) event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input, select, textarea")) return;
    const shown = /^[1-5]$/.test(event.key) ? screen.querySelector(`[aria-keyshortcuts="${event.key}"]`) : null;
    if (shown && !shown.closest("[inert]")) shown.click();
    else if (event.key === "u") actions.back();
  });

  screen.replaceChildren(
    el("div", { className: "follow" },
      el("div", { className: "doing" },
        el("div", { className: "task" }, el("h1", {}, nameElement(run.task)), link("The graph", `/graph/${graph.id}`), button("Start over", startOver)),
        parts.measure, stop, parts.now, moves, parts.missing,
        el("p", { className: "quiet keys" }, "Keys: ", el("kbd", {}, "1"), " done, ", el("kbd", {}, "2"), " to ", el("kbd", {}, "5"), " another step, ",
          el("kbd", {}, "u"), " back")),
      el("div", { className: "beside" }, parts.others, cards.limitsElement(run))),
    spoken);
  receive(run.answer);
  for (const [key, event] of unsent) queue.put(key, [key, event]);
  setInterval(drawMeasure, 5000);

  const stream = new EventSource(`/api/runs/${run.id}/stream`);
  stream.onmessage = (event) => {
    if (!unsent.size) showStatus("");
    receive(JSON.parse(event.data));
  };
  stream.addEventListener("removed", () => {
    removed = true;
    stream.close();
    showError(new Error("This run was removed; start over."));
  });
  stream.onerror = () => showStatus("No connection to the app; trying again …");
}

/** Tells a run an event; one that comes too late for its time is told without it. */
async function tellRun(id, event) {
  try {
    return await post(`runs/${id}/events`, event);
  } catch (error) {
    if (error.status !== 400 || !("at" in event)) throw error;
    const { at, ...untimed } = event;
    return post(`runs/${id}/events`, untimed);
  }
}

// -- time --------------------------------------------------------------------------------------------------------

const units = [[172800, 86400, "days", 1], [5400, 3600, "h", 1], [90, 60, "min", 0], [0, 1, "s", 0]];

/** "about 6 min, 4 to 9", once some seconds have passed since it was said; null where nothing is known. */
export function timeText(left, passed) {
  if (!left) return null;
  const [median, high] = [left.median, left.high].map((seconds) => Math.max(seconds - passed, left.least));
  const low = Math.max(left.low - passed, Math.min(left.low, left.least));
  if (high <= 0) return "longer than usual";
  const [, size, unit, digits] = units.find(([least]) => Math.max(median, high / 2) >= least);
  const text = (seconds) => (size === 1 ? String(5 * Math.round(seconds / 5)) : (seconds / size).toFixed(digits));
  const [about, least, most] = [median, low, high].map(text);
  if (Number(about) === 0) return `less than ${Number(most) || (size === 1 ? 5 : 1)} ${unit} left`;
  if (least === most) return `about ${about} ${unit} left`;
  return `about ${about} ${unit} left, ${Number(least) === 0 ? `at most ${most}` : `${least} to ${most}`}`;
}
