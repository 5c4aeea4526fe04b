// One run, live: what comes next, one tap or key when it is done, warnings that say why, how long it still takes.
// The run is kept by the server; whoever else tells it something, a recogniser for instance, is seen here as well.
import { get, post, remove } from "./api.js";
import { button, el, field, link, nameElement, reportErrors, select, showError, showStatus } from "./dom.js";

const MAX_CANDIDATES = 5;
const LEAST_PROBABILITY = 0.05; // of a step that may not be done yet, to be offered all the same

export async function show(screen, graphId) {
  const graph = await get(`work/${graphId}`);
  document.title = `${graph.task} – msg2`;
  const run = (await keptRun(graphId)) ?? (await begin(screen, graph));
  keepRun(graphId, run.id);
  followRun(screen, graph, run);
}

// -- which run ---------------------------------------------------------------------------------------------------

const storageKey = (graphId) => `msg2 run ${graphId}`;

/** The run that the address names, or the last one of this graph on this device; null where it is gone. */
async function keptRun(graphId) {
  let id = new URLSearchParams(location.search).get("run");
  try {
    id ??= localStorage.getItem(storageKey(graphId));
  } catch {
    // A browser may forbid to keep anything: then the address has it.
  }
  if (!id) return null;
  const runs = (await get("runs")).runs;
  if (!runs.some((run) => run.id === id && run.graph === graphId)) return null;
  try {
    return await get(`runs/${id}`);
  } catch (error) {
    if (error.status !== 400) throw error; // its graph has changed, or its data is gone: it cannot go on
    await remove(`runs/${id}`);
    return null;
  }
}

function keepRun(graphId, id) {
  history.replaceState(null, "", `/follow/${graphId}?run=${id}`);
  try {
    localStorage.setItem(storageKey(graphId), id);
  } catch {
    // Then the address alone has it.
  }
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
    screen.replaceChildren(el("h1", {}, nameElement(graph.task)), field("Percentages and times come from", chosen),
      el("p", {}, button("Start", start, { className: "main" })));
  });
}

async function openRun(request) {
  showStatus("Learning from the videos …");
  const run = await post("runs", request);
  showStatus("");
  return run;
}

// -- the view ----------------------------------------------------------------------------------------------------

function followRun(screen, graph, run) {
  let [version, answer, lastAt, removed] = [-1, null, null, false];
  let sent = Promise.resolve(); // one event after the other
  const parts = Object.fromEntries(["measure", "now", "others", "missing", "every"].map((name) =>
    [name, el("section", { className: name })]));
  const warning = el("div", { role: "alert" });
  const spoken = el("p", { className: "unseen", role: "status" });
  const undoButton = button("Undo", () => tell({ undo: true }), { "aria-keyshortcuts": "u" });
  const clock = () => Date.now() / 1000 - run.made;

  const send = reportErrors(async (event) => {
    const timed = "did" in event ? { ...event, at: Math.max(clock(), lastAt ?? -Infinity) } : event;
    draw(await post(`runs/${run.id}/events`, timed).catch(explainLostConnection));
    showStatus("");
    if (answer.last?.report?.mistake) warning.scrollIntoView({ block: "center" }); // a list further down was tapped
  });
  const tell = (event) => (sent = sent.then(() => send(event)));
  /** A second tap of a double one would tick what has come to its place. */
  const tick = (step) => (event) => (event.detail > 1 ? null : tell({ did: step }));

  const startOver = reportErrors(async () => {
    if (answer.last && !removed && !confirm("Start over? What was ticked is forgotten.")) return;
    stream.close();
    if (!removed) await remove(`runs/${run.id}`);
    removed = true;
    const again = await openRun({ graph: graph.id, data: run.data });
    keepRun(graph.id, again.id);
    location.reload();
  });

  function draw(next) {
    if (next.version <= version) return;
    const focused = screen.contains(document.activeElement) && !undoButton.matches(":focus");
    [version, answer] = [next.version, next];
    lastAt = answer.last?.at ?? (answer.last ? lastAt : null);
    undoButton.disabled = !answer.last;
    warning.replaceChildren(...warningElements(answer, tell));
    drawMeasure();
    const candidates = candidatesOf(answer);
    const over = answer.finished.finished || !candidates.length;
    const ready = !over && candidates[0].eligible; // else all that is likely comes too early
    parts.now.replaceChildren(...(over ? finishedElements(answer) :
      ready ? [el("h2", {}, "Next"), stepButton(candidates[0], 1, tick, "first")] : []));
    const others = ready ? candidates.slice(1) : candidates;
    const from = candidates.length - others.length + 1;
    parts.others.replaceChildren(...(others.length ? [el("h2", {}, answer.finished.finished ? "If there is more" : "Or one of these"),
      el("ol", {}, ...others.map((one, place) => el("li", {}, stepButton(one, from + place, tick))))] : []));
    parts.missing.replaceChildren(...missingElements(answer, tell));
    drawEverything();
    if (focused) (screen.querySelector("[role=alert] button") ?? screen.querySelector(".step"))?.focus({ preventScroll: true });
    spoken.textContent = spokenText(answer, candidates);
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

  function drawEverything() {
    const open = parts.every.querySelector("details")?.open ?? matchMedia("(min-width: 900px)").matches;
    const items = run.steps.map((step) => el("li", {}, everyStep(step, answer, tick)));
    parts.every.replaceChildren(el("details", { open }, el("summary", {}, "All steps"), el("ul", {}, ...items)));
  }

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input, select, textarea")) return;
    const candidate = /^[1-5]$/.test(event.key) ? candidatesOf(answer)[Number(event.key) - 1] : null;
    if (candidate) tell({ did: candidate.step });
    else if (event.key === "u" && answer.last) tell({ undo: true });
  });

  const limits = Object.values(run.limitations);
  screen.replaceChildren(
    el("div", { className: "follow" },
      el("div", { className: "doing" }, el("h1", {}, nameElement(run.task)), parts.measure, warning, parts.now, parts.others),
      el("div", { className: "beside" }, parts.missing, parts.every,
        limits.length ? el("details", {}, el("summary", {}, "What it cannot tell"),
          el("ul", { className: "quiet" }, ...Object.entries(run.limitations).map(([name, why]) =>
            el("li", {}, `${limitNames[name] ?? name}: ${why}`)))) : null),
      el("p", { className: "buttons bottom" }, undoButton, button("Start over", startOver),
        link("The graph", `/graph/${graph.id}`, { className: "as-button" }))),
    spoken);
  draw(run.answer);
  setInterval(drawMeasure, 5000);

  const stream = new EventSource(`/api/runs/${run.id}/stream`);
  stream.onmessage = (event) => {
    showStatus("");
    draw(JSON.parse(event.data));
  };
  stream.addEventListener("removed", () => {
    removed = true;
    stream.close();
    showError(new Error("This run was removed; start over."));
  });
  stream.onerror = () => showStatus("Not connected to the app; trying again …", true);
}

const limitNames = { next: "Next step", finished: "Whether it is finished", plan: "Plans", time_left: "Time left" };

/** The steps that are offered, at most five: those that may be done, then others that are likely all the same. */
function candidatesOf(answer) {
  const early = answer.next.filter((one) => !one.eligible && one.probability >= LEAST_PROBABILITY);
  return [...answer.next.filter((one) => one.eligible), ...early].slice(0, MAX_CANDIDATES);
}

/** What was told is not known to the server: say so, rather than what the browser calls it. */
function explainLostConnection(error) {
  throw error instanceof TypeError ? new Error("No connection to the app: that was not saved. Tell it again.") : error;
}

/** With spaces that do not break. */
function percent(share) {
  if (share > 0.995 && share < 1) return ">\u00a099\u00a0%";
  return share < 0.005 ? "<\u00a01\u00a0%" : `${Math.round(100 * share)}\u00a0%`;
}

/** A step to tick; where nothing is known but the order, it has no percentage. */
function stepButton({ step, probability, reason, eligible }, key, tick, className = "") {
  const properties = { type: "button", className: `step ${className} ${eligible ? "" : "early"}`, onclick: tick(step) };
  return el("button", { ...properties, "aria-keyshortcuts": key },
    el("span", { className: "number", "aria-hidden": "true" }, String(key)),
    el("span", { className: "name" }, nameElement(step), el("small", {}, eligible ? reason : `not yet: ${reason}`)),
    el("span", { className: "chance" }, probability === null ? "" : percent(probability)));
}

/** A rule that a person stated is no matter of probability. */
const breaksStatedRule = ({ reason }) => reason.includes("(a stated rule)");

/** The alarm that was raised just now, and every stop that still stands; of a stream of frames, all that stand. */
function warningElements({ last, alarms }, tell) {
  const raised = last?.report?.mistake ? last.report : null;
  const stands = (alarm) => !last || (breaksStatedRule(alarm) && alarm.kind === "need");
  const others = alarms.filter((alarm) => stands(alarm) && !raised?.reason.includes(alarm.reason));
  return [...(raised ? [{ ...raised, step: raised.findings[0]?.step ?? raised.step }] : []), ...others].map((alarm) =>
    el("div", { className: "box warning" },
      el("h2", {}, ...(breaksStatedRule(alarm) ? ["Stop: ", nameElement(alarm.step)] : [nameElement(alarm.step), " looks like a mistake"])),
      el("ul", {}, ...alarm.reason.split("; ").map((reason) => el("li", {}, reason))),
      el("p", { className: "quiet" }, `${percent(alarm.probability)} sure.`),
      el("p", { className: "buttons" }, raised ? button("Undo", () => tell({ undo: true }), { className: "main" }) : null,
        last ? button("It counts anyway", () => tell({ accept: alarm.step })) : null)));
}

function finishedElements({ finished }) {
  const certain = finished.probability === null ? "" : ` (${percent(finished.probability)})`;
  const open = finished.left.length ? [el("p", {}, "Not done: ", ...finished.left.flatMap((step, place) =>
    [place ? ", " : "", nameElement(step)]))] : [];
  return [el("div", { className: "box finished" }, el("h2", {}, finished.left.length ? "Nothing more can be done" : `Finished${certain}`),
    el("p", { className: "quiet" }, finished.reason), ...open)];
}

/** What is missing, but for what the warning is about. */
function missingElements({ missing, last }, tell) {
  const others = missing.filter(({ step }) => !last?.report?.mistake || step !== last.report.step);
  const items = others.map(({ step, reason }) => el("li", {}, el("strong", {}, nameElement(step)), el("small", {}, reason),
    button("It is done", () => tell({ accept: step }), { "aria-label": `${step}: it is done` })));
  return items.length ? [el("h2", {}, "Missing"), el("ul", {}, ...items)] : [];
}

/** One of all the steps: done, probably done, or to be ticked. */
function everyStep(step, answer, tick) {
  const unseen = answer.inferred[step] >= 0.5 ? " (probably done, not seen)" : "";
  if (answer.progress.includes(step)) return el("span", { className: "done" }, "✓ ", nameElement(step), unseen);
  const share = answer.done[step];
  const note = unseen || (share === undefined ? "" : ` (${percent(share)} done)`);
  return el("button", { type: "button", className: "plain", onclick: tick(step) }, nameElement(step), note);
}

function spokenText({ last, finished }, candidates) {
  const step = last?.report ? last.report.step : Object.keys(last?.seen ?? {})[0];
  const told = step ? `${step} ${last.report?.mistake ? "looks like a mistake" : last.kind === "began" ? "begun" : "done"}. ` : "";
  if (finished.finished || !candidates.length) return `${told}Finished.`;
  const { step: next, probability } = candidates[0];
  return `${told}Next: ${next}${probability === null ? "" : `, ${percent(probability)}`}`;
}

// -- time --------------------------------------------------------------------------------------------------------

const units = [[5400, 3600, "h", 1], [90, 60, "min", 0], [0, 1, "s", 0]];

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
