// The workbench: one video after another is watched or read, its drafts accepted, moved or rejected, its steps labelled.
import { agreementPanel } from "./agreement.js";
import { get, newId, post, put } from "./api.js";
import { autosave } from "./autosave.js";
import { captionLine } from "./captions.js";
import { button, el, field, link, nameElement, plural, reportErrors, select, showError, showStatus } from "./dom.js";
import { bindKeys } from "./label_keys.js";
import { labelList } from "./label_list.js";
import * as edits from "./label_state.js";
import { liveGraph } from "./live_graph.js";
import { createPlayer } from "./player.js";
import { clockText, createTimeline } from "./timeline.js";
import { UndoHistory } from "./undo_history.js";

const SURE = 0.8;
const NUDGE = 0.1;
const NEW_SECONDS = 5;
const PERSON = "msg2-person";

export async function show(screen, id) {
  const data = await get(`data/${id}`);
  const names = data.tasks.map((task) => task.name);
  const asked = new URLSearchParams(location.search).get("task");
  const task = names.includes(asked) ? asked : names[0];
  const person = localStorage.getItem(PERSON) ?? "me";
  document.title = `Labels of ${data.name} – msg2`;
  document.body.classList.add("wide");
  const opened = await get(`data/${id}/workbench?${new URLSearchParams({ task, person })}`);
  const [choices, datasets] = [await get("choices"), (await get("data")).data];
  workbench(screen, { id, data, names, person, choices, datasets, ...opened });
}

function workbench(screen, { id, data, names, person, choices, datasets, task, steps, people, videos }) {
  steps = orderByTime(steps, videos);
  let video = videos[0];
  let history = null;
  let captions = [];
  let chosen = null;
  let step = steps[0] ?? null;
  let unsureOnly = false;
  const timed = videos.every((one) => [...one.labels, ...one.drafts].every((row) => row.start !== undefined));

  const open = reportErrors(openVideo);

  // -- parts of the screen ---------------------------------------------------------------------------------------

  const saved = el("span", { className: "save-state saved", role: "status" }, "saved");
  const done = el("span", { className: "quiet" });
  const videoMenu = select([], "", (name) => open(name), { "aria-label": "Video" });
  const undoButton = button("Undo", () => travel("undo"));
  const redoButton = button("Redo", () => travel("redo"));
  const unsureBox = el("input", { type: "checkbox", onchange: () => setUnsure(unsureBox.checked) });
  const player = createPlayer({ onTime: showTime, onLength: () => refresh(), onPlay: (on) => {
    playButton.textContent = on ? "❚❚ Pause" : "▶ Play";
  } });
  const playButton = button("▶ Play", () => player.toggle(), { className: "play" });
  const clock = el("span", { className: "clock" });
  const spoken = captionLine();
  const chosenLine = el("p", { className: "chosen-line", role: "status" });
  const timeline = createTimeline({ change, choose, chooseStep, seek: (seconds) => player.seek(seconds) });
  const list = el("div", { className: "label-list" });
  const stepMenu = select([], "", (name) => chooseStep(name), { "aria-label": "Step of new labels" });
  const graph = liveGraph(id, () => ({ task, person }), { open, keep: reportErrors(keepGraph) });
  const files = el("p", { className: "downloads" });
  const stage = el("div", { className: "bench-stage" }, player.element, spoken.element);

  // -- saving ----------------------------------------------------------------------------------------------------

  const stateOf = ({ labels, settled }) => ({ labels, settled });
  for (const entry of videos) Object.assign(entry, { saved: stateOf(entry), sent: new Map() });

  const saver = autosave(async (save) => {
    const { who, entry, state, save_id } = save;
    entry.sent.set(save_id, state);
    try {
      const { version } = await put(`data/${id}/workbench`,
        { task, person: who, video: entry.video, version: entry.version, save_id, ...state });
      Object.assign(entry, { version, saved: state });
    } catch (error) {
      if (error.status !== 409) throw error;
      rebase(who, entry, error.problem.current);
    }
    entry.sent.clear();
    graph.refresh();
  }, (state, error) => {
    saved.textContent = { saving: "saving …", saved: "saved", waiting: "not saved yet: the server is not there, trying again", refused: "not saved" }[state];
    saved.className = `save-state ${state}`;
    if (state === "refused") showError(error);
  });

  /** Puts what was done here on top of what is kept: by another tab or, where its answer was lost, by this one. */
  function rebase(who, entry, current) {
    const own = entry.sent.get(current.save_id);
    const merged = own ? stateOf(entry) : edits.merge(entry.saved, stateOf(entry), current);
    Object.assign(entry, merged, { version: current.version, saved: own ?? stateOf(current) });
    saver.put(`${who}\n${entry.video}`, { who, entry, state: merged, save_id: newId() });
    if (own) return;
    if (entry === video) {
      history.push(merged);
      sessionStorage.setItem(historyKey(), history.save());
      chosen = null;
      refresh();
    }
    tell(`The labels of ${entry.video} were changed elsewhere too: here are both. Undo goes back to yours alone.`);
  }

  const historyKey = () => ["msg2", id, task, person, video.video].join("\n");

  function keep() {
    const state = history.current;
    Object.assign(video, state, { own: true });
    sessionStorage.setItem(historyKey(), history.save());
    saver.put(`${person}\n${video.video}`, { who: person, entry: video, state, save_id: newId() });
    refresh();
  }

  // -- changes ---------------------------------------------------------------------------------------------------

  const rows = () => edits.allRows(history.current, video.drafts);
  const isUnsure = (row) => edits.isDraft(row) && (row.confidence ?? 0) < SURE;
  const visited = () => (unsureOnly ? rows().filter(isUnsure) : rows());

  function update([state, row]) {
    history.push(state);
    chosen = row;
    keep();
  }

  function change(row, values) {
    update(edits.change(history.current, row, values, person));
  }

  function accept(row = chosen) {
    if (!row) return tell("No label is chosen: j goes to the first one.");
    if (!edits.isDraft(row)) return goToRow(1);
    const next = following(row);
    update(edits.change(history.current, row, {}, person));
    if (next) choose(next);
    tell(`Accepted: ${row.step}.`);
  }

  function reject(row = chosen) {
    if (!row) return tell("No label is chosen: j goes to the first one.");
    const next = following(row);
    update([edits.remove(history.current, row), null]);
    if (next) choose(next);
    tell(`${edits.isDraft(row) ? "Rejected" : "Deleted"}: ${row.step}.`);
  }

  /** The next row to look at, after a decision on this one. */
  function following(row) {
    const left = visited();
    return left.slice(left.indexOf(row) + 1).find(edits.isDraft) ?? left.find((one) => edits.isDraft(one) && one !== row) ?? null;
  }

  function startNow() {
    const at = edits.round(player.time);
    if (chosen) return timed ? change(chosen, { start: at, end: Math.max(chosen.end, at) }) : tell("These labels have no times.");
    if (!step) return tell("There is no step yet: add one below the timeline.");
    const times = timed ? { start: at, end: edits.round(at + NEW_SECONDS) } : {};
    update(edits.add(history.current, { video: video.video, step, ...times, source: person }));
  }

  function endNow() {
    const at = edits.round(player.time);
    if (!chosen || !timed) return tell("Choose a label first (j), or make one with [.");
    change(chosen, { start: Math.min(chosen.start, at), end: at });
  }

  function nudge(which, by) {
    if (!chosen) return tell("No label is chosen: j goes to the first one.");
    if (timed) return change(chosen, edits.shiftLabel(chosen, which, by * NUDGE));
    if (!edits.isDraft(chosen)) reorder(chosen, by);
  }

  function reorder(row, by) {
    update([edits.reorder(history.current, row, by), row]);
  }

  function giveStep(place) {
    if (chosen && steps[place]) change(chosen, { step: steps[place] });
  }

  function travel(way) {
    if (!(way === "undo" ? history.canUndo : history.canRedo)) return tell(way === "undo" ? "Nothing to undo." : "Nothing to do again.");
    history[way]();
    chosen = null;
    keep();
    tell(way === "undo" ? "Undone." : "Done again.");
  }

  // -- going around ----------------------------------------------------------------------------------------------

  function choose(row, seek = true) {
    chosen = row;
    if (row) step = row.step;
    if (seek && row && timed) player.seek(row.start);
    if (seek) return refresh();
    refreshTimeline(); // the list has the focus, and stays as it is
    list.querySelectorAll("tbody tr").forEach((line, place) => line.classList.toggle("chosen", rows()[place] === row));
  }

  function chooseStep(given) {
    const name = typeof given === "number" ? steps[given] : given;
    if (!name) return;
    step = name;
    if (chosen?.step !== name) chosen = null;
    refresh();
  }

  function goToRow(by) {
    const reachable = visited();
    if (!reachable.length) {
      if (unsureOnly && by > 0) return nextUnsureVideo();
      return tell("There is nothing to go to.");
    }
    const place = chosen ? reachable.indexOf(chosen) : by > 0 ? -1 : reachable.length;
    if (unsureOnly && by > 0 && place === reachable.length - 1) return nextUnsureVideo();
    choose(reachable[Math.max(0, Math.min(reachable.length - 1, place + by))]);
  }

  function nextUnsureVideo() {
    const order = [...videos.slice(videos.indexOf(video) + 1), ...videos.slice(0, videos.indexOf(video))];
    const next = order.find((one) => edits.openDrafts(one.drafts, one.settled).some(isUnsure));
    if (!next) return tell("No draft is unsure any more.");
    open(next.video); // which goes to its first unsure draft
  }

  function setUnsure(on) {
    unsureOnly = unsureBox.checked = on;
    tell(on ? "Only unsure drafts." : "All labels and drafts.");
    refresh();
  }

  function goToVideo(by) {
    const next = videos[videos.indexOf(video) + by];
    if (next) open(next.video);
    else tell(by > 0 ? "This is the last video." : "This is the first video.");
  }

  function bestVideo() {
    const isNew = (name) => !videos.find((one) => one.video === name)?.own;
    const best = [...graph.ranked, ...videos.map((one) => one.video)].find((name) => name !== video.video && isNew(name));
    if (best) open(best);
    else tell("Every other video has labels.");
  }

  async function openVideo(name) {
    video = videos.find((one) => one.video === name) ?? videos[0];
    history = UndoHistory.restore(sessionStorage.getItem(historyKey()), { labels: video.labels, settled: video.settled });
    chosen = null;
    captions = [];
    window.history.replaceState(null, "", `#${encodeURIComponent(video.video)}`);
    const query = new URLSearchParams({ task, video: video.video });
    const opened = video;
    const lastEnd = Math.max(0, ...[...video.labels, ...video.drafts].map((row) => row.end ?? 0));
    player.load(video.media ? `/api/data/${id}/workbench/media?${query}` : null, Math.max(10, lastEnd * 1.05));
    spoken.load([]);
    choose(visited().find(edits.isDraft) ?? null);
    if (video.captions) {
      const found = (await get(`data/${id}/workbench/captions?${query}`)).captions;
      if (opened !== video) return;
      captions = found;
      player.extend(captions.at(-1)?.end ?? 0);
      spoken.load(captions);
      refresh();
    }
  }

  // -- showing ---------------------------------------------------------------------------------------------------

  function tell(text) {
    showStatus(text);
  }

  function showTime(seconds) {
    timeline.setTime(seconds, player.playing);
    spoken.show(seconds);
    clock.textContent = `${clockText(seconds, true)} / ${clockText(player.length)}`;
  }

  const isDone = (one) => one.labels.length + one.settled.length > 0 && !edits.openDrafts(one.drafts, one.settled).length;

  function refreshTimeline() {
    const shown = unsureOnly ? rows().filter((row) => !edits.isDraft(row) || isUnsure(row)) : rows();
    if (timed) timeline.render({ steps, rows: shown, chosen, step, captions, length: Math.max(player.length, 1) });
    chosenLine.replaceChildren(...describeChosen());
    graph.mark(step);
    return shown;
  }

  function refresh() {
    const shown = refreshTimeline();
    const act = { change, choose, accept, reject, reorder };
    list.replaceChildren(labelList({ rows: shown, chosen, steps, timed }, act));
    const marks = videos.map((one) => [one.video, `${one.video}${isDone(one) ? " ✓ done" : one.own ? " … begun" : ""}`]);
    videoMenu.replaceChildren(...marks.map(([value, text]) => el("option", { value }, text)));
    videoMenu.value = video.video;
    stepMenu.replaceChildren(...steps.map((name, place) => el("option", { value: name }, `${place + 1}. ${name}`)));
    stepMenu.value = step ?? "";
    undoButton.disabled = !history.canUndo;
    redoButton.disabled = !history.canRedo;
    done.textContent = `${videos.filter(isDone).length} of ${plural(videos.length, "video")} done`;
    stage.classList.toggle("watching", player.hasVideo);
    stage.hidden = !player.hasVideo && !captions.length;
    showTime(player.time);
  }

  function describeChosen() {
    const drafts = rows().filter(edits.isDraft);
    const left = drafts.length ? `${plural(drafts.length, "draft")} to decide on, ${drafts.filter(isUnsure).length} of them unsure.` : "No drafts left.";
    if (!chosen) return [step ? "Step of new labels: " : "", step ? nameElement(step) : "", step ? ". " : "", left];
    const times = timed ? `, ${clockText(chosen.start, true)} to ${clockText(chosen.end, true)}` : "";
    const what = edits.isDraft(chosen)
      ? `: a draft${chosen.confidence === undefined ? "" : `, ${Math.round(100 * chosen.confidence)} % sure`}. Enter accepts, x rejects. `
      : `: by ${chosen.source ?? "the data"}. `;
    return [el("strong", {}, nameElement(chosen.step)), times, what, left];
  }

  // -- the rest --------------------------------------------------------------------------------------------------

  async function keepGraph() {
    await saver.settle();
    const table = await post(`data/${id}/workbench/table`, { task, person });
    const job = await post("work", { data: table.id });
    location.assign(`/graph/${job.id}`);
  }

  const addStep = reportErrors(async () => {
    const given = newStep.value.split(/\n|;/).map((name) => name.trim()).filter((name) => name && !steps.includes(name));
    newStep.value = "";
    if (!given.length) return;
    await post(`data/${id}/workbench/steps`, { task, steps: given });
    steps = [...steps, ...given];
    chooseStep(given[0]);
    tell(`Added: ${given.join(", ")}.`);
  });
  const newStep = el("input", { placeholder: "a step that is new", "aria-label": "A step that is new",
    onkeydown: (event) => {
      if (event.key === "Enter") addStep().then(() => newStep.blur());
      if (event.key === "Escape") newStep.blur();
    } });

  const tables = datasets.filter((one) => one.id !== id && one.tasks.some((entry) => entry.steps.length))
    .map((one) => [one.id, `from ${one.name}`]);
  const getDrafts = reportErrors(async (source) => {
    await post(`data/${id}/workbench/drafts`, { task, person, ...(source ? { data: source } : {}) });
    location.reload();
  });
  const draftMenu = select([["-", "Get drafts …"], ...tables, ["", "made from what is said"]], "-",
    (source) => { draftMenu.value = "-"; getDrafts(source); }, { "aria-label": "Get drafts" });

  const personInput = el("input", { value: person, maxLength: 100, "aria-label": "Your name", list: "people",
    onchange: reportErrors(async () => {
      localStorage.setItem(PERSON, personInput.value.trim() || "me");
      await saver.settle();
      location.reload();
    }) });
  personInput.setAttribute("list", "people");

  const download = reportErrors(async () => {
    await saver.settle();
    const table = await post(`data/${id}/workbench/table`, { task, person });
    files.replaceChildren("All labels of ", nameElement(person), " as: ", ...choices.label_formats.map((format) =>
      link(`.${format}`, `/api/data/${table.id}/as/${format}`, { download: "" })));
  });

  const showKeys = bindKeys({
    toggle: () => player.toggle(),
    back: (event) => player.seek(player.time - (event.shiftKey ? 10 : 2)),
    forward: (event) => player.seek(player.time + (event.shiftKey ? 10 : 2)),
    nextRow: () => goToRow(1), previousRow: () => goToRow(-1),
    accept: () => accept(), reject: () => reject(), startNow, endNow,
    earlier: () => nudge("both", -1), later: () => nudge("both", 1),
    endEarlier: () => nudge("end", -1), endLater: () => nudge("end", 1),
    stepUp: () => chooseStep(steps.indexOf(step) - 1), stepDown: () => chooseStep(steps.indexOf(step) + 1),
    unchoose: () => choose(null), unsure: () => setUnsure(!unsureOnly),
    nextVideo: () => goToVideo(1), previousVideo: () => goToVideo(-1),
    bestVideo,
    undo: () => travel("undo"), redo: () => travel("redo"),
    zoomIn: () => timeline.zoomBy(1.5), zoomOut: () => timeline.zoomBy(1 / 1.5),
    chooseStep, giveStep,
  });

  const others = () => people.filter((name) => name !== person);
  const taskMenu = select(names, task, (name) => { location.search = new URLSearchParams({ task: name }); }, { "aria-label": "Task" });
  screen.replaceChildren(
    el("h1", { className: "unseen" }, "Labels of ", nameElement(data.name)),
    el("datalist", { id: "people" }, ...people.map((name) => el("option", { value: name }))),
    el("div", { className: "bench-bar" },
      names.length > 1 ? taskMenu : el("strong", {}, nameElement(task)),
      el("span", { className: "group" }, button("‹", () => goToVideo(-1), { "aria-label": "Previous video" }), videoMenu,
        button("›", () => goToVideo(1), { "aria-label": "Next video" })),
      done, el("label", { className: "check" }, unsureBox, "Unsure only"), undoButton, redoButton, saved,
      el("span", { className: "spring" }), el("label", {}, "Labelled by ", personInput), button("Keys (?)", () => showKeys())),
    el("div", { className: "bench" },
      el("div", { className: "bench-main" }, stage,
        el("p", { className: "transport buttons" }, ...(timed ? [playButton, clock] : []),
          stepMenu, button(timed ? "[ Starts now" : "Add a label", () => startNow()), timed ? button("Ends now ]", endNow) : null,
          button("Accept", () => accept(), { title: "Enter" }), button("Reject", () => reject(), { title: "x" }),
          ...(timed ? [button("−", () => timeline.zoomBy(1 / 1.5), { "aria-label": "Zoom out" }),
            button("+", () => timeline.zoomBy(1.5), { "aria-label": "Zoom in" })] : [])),
        chosenLine, timed ? timeline.element : "",
        el("p", { className: "buttons" }, newStep, button("Add the step", addStep), draftMenu, button("Download the labels", download)),
        files, el("details", { open: !timed }, el("summary", {}, "All labels of this video, with exact times"), list)),
      el("aside", {}, graph.element, agreementPanel(id, task, () => person, others))));
  const asked = decodeURIComponent(location.hash.slice(1));
  const first = videos.find((one) => one.video === asked) ?? videos.find((one) => !isDone(one)) ?? videos[0];
  open(first.video);
  graph.refresh(0);
}

/** Steps in the order in which they usually begin, those without times last. */
function orderByTime(steps, videos) {
  const places = new Map(steps.map((name) => [name, []]));
  for (const { labels, drafts } of videos) {
    const last = Math.max(...[...labels, ...drafts].map((row) => row.end ?? 0), 1e-9);
    for (const row of [...labels, ...drafts]) places.get(row.step)?.push((row.start ?? 0) / last);
  }
  const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : 2);
  return steps.toSorted((a, b) => mean(places.get(a)) - mean(places.get(b)) || (a < b ? -1 : 1));
}
