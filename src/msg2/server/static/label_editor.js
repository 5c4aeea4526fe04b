// Correct the labels of one video after another, on a timeline and in a table, and save them.
import { get, post } from "./api.js";
import { button, el, field, link, nameElement, reportErrors, row, select, showStatus, table } from "./dom.js";
import { onUndoKeys, UndoHistory } from "./undo_history.js";
import { timeline } from "./timeline.js";

export async function show(screen, id) {
  const data = await get(`data/${id}`);
  const choices = await get("choices");
  const taskInQuery = new URLSearchParams(location.search).get("task");
  const names = data.tasks.map((task) => task.name);
  document.title = `Labels of ${data.name} – msg2`;
  const body = el("div");
  const task = names.includes(taskInQuery) ? taskInQuery : names[0];
  const taskMenu = select(names, task, (name) => { location.search = new URLSearchParams({ task: name }); });
  screen.replaceChildren(el("h1", {}, "Labels of ", nameElement(data.name)), field("Task", taskMenu), body);
  edit(body, id, await get(`data/${id}/labels?${new URLSearchParams({ task })}`), choices);
}

function edit(body, id, { task, steps, videos }, choices) {
  let video = videos[0];
  let undoHistory = new UndoHistory(video.labels);
  let saved = video.labels;
  let chosen = 0;
  const strip = el("div");
  const list = el("div");
  const player = el("video", { controls: true, hidden: true, className: "video-player" });
  const files = el("p", { className: "downloads" });
  const undo = button("Undo", () => travel(() => undoHistory.undo()));
  const redo = button("Redo", () => travel(() => undoHistory.redo()));
  const names = videos.map((entry, place) => [place, `${entry.video} (${entry.labels.length} labels)`]);
  const videoMenu = select(names, 0, (place) => open(Number(place)));
  const newStep = el("input", { placeholder: "a step that is new", "aria-label": "A step that is new" });
  const zoom = el("input", { type: "range", min: 1, max: 20, value: 1, "aria-label": "Zoom",
    oninput: () => strip.style.setProperty("--zoom", zoom.value) });
  const timed = videos.some((entry) => entry.labels.some((label) => label.start !== undefined));

  const isDirty = () => undoHistory.current !== saved;

  async function open(place) {
    if (isDirty()) await save();
    video = videos[place];
    undoHistory = new UndoHistory(video.labels);
    saved = video.labels;
    chosen = 0;
    player.hidden = true;
    refresh();
  }

  function change(labels) {
    undoHistory.push(timed ? labels.toSorted((a, b) => a.start - b.start || a.end - b.end) : labels);
    refresh();
  }

  function travel(move) {
    move();
    refresh();
  }

  const set = (place, values) => {
    const label = { ...undoHistory.current[place], ...values };
    change(undoHistory.current.with(place, label));
    chosen = Math.max(0, undoHistory.current.indexOf(label));
    refresh();
  };
  const put = (place, values) => set(place, { ...values, ...markChecked(undoHistory.current[place], "corrected") });
  const accept = (place) => set(place, markChecked(undoHistory.current[place], "accepted"));
  const drop = (place) => change(undoHistory.current.toSpliced(place, 1));

  /** What a person has looked at is no longer a prediction, and has no confidence. */
  const markChecked = (label, source) => (label.source === undefined ? {} : { source, confidence: undefined });

  function add() {
    const last = undoHistory.current.at(-1);
    const start = timed ? (player.hidden ? (last?.end ?? 0) : round(player.currentTime)) : undefined;
    const times = timed ? { start, end: round(start + 5) } : {};
    const label = { video: video.video, step: last?.step ?? steps[0], ...times };
    change([...undoHistory.current, label]);
    chosen = undoHistory.current.indexOf(label);
    refresh();
  }

  function refresh() {
    undo.disabled = !undoHistory.canUndo;
    redo.disabled = !undoHistory.canRedo;
    strip.replaceChildren(timed ? timeline(undoHistory.current, chosen, { put, drop, accept, choose, seek }) : "");
    list.replaceChildren(table([...(timed ? ["Start", "End"] : []), "Step", "From", ""], undoHistory.current.map(labelRow)));
  }

  function choose(place) {
    chosen = place;
    list.querySelectorAll("tbody tr").forEach((line, index) => line.classList.toggle("chosen", index === place));
    strip.querySelectorAll(".segment").forEach((bar) => bar.classList.toggle("chosen", bar.dataset.place === String(place)));
  }

  function seek(seconds) {
    if (!player.hidden) player.currentTime = seconds;
  }

  function labelRow(label, place) {
    const number = (name) => el("input", { type: "number", min: 0, step: "any", value: label[name], "aria-label": name,
      onchange: (event) => setTime(place, name, event.target.valueAsNumber) });
    const step = select(steps, label.step, (value) => put(place, { step: value }), { "aria-label": "Step" });
    const percent = label.confidence === undefined ? "" : ` (${Math.round(100 * label.confidence)} %)`;
    const from = `${label.source ?? ""}${percent}`;
    const last = place === undoHistory.current.length - 1;
    const buttons = el("span", { className: "buttons" },
      label.source === "predicted" ? button("Accept", () => accept(place)) : null,
      timed ? null : button("↑", () => swap(place, place - 1), { disabled: place === 0, "aria-label": "Earlier" }),
      timed ? null : button("↓", () => swap(place, place + 1), { disabled: last, "aria-label": "Later" }),
      button("Delete", () => drop(place)));
    const tableRow = timed ? row(number("start"), number("end"), step, from, buttons) : row(step, from, buttons);
    tableRow.classList.toggle("chosen", place === chosen);
    tableRow.addEventListener("focusin", () => choose(place));
    return tableRow;
  }

  function setTime(place, name, value) {
    const label = { ...undoHistory.current[place], [name]: value };
    if (!(label.start >= 0 && label.end >= label.start)) {
      showStatus("A label ends no earlier than it starts, and starts at 0 or later.", true);
      return refresh();
    }
    put(place, { [name]: value });
  }

  function swap(place, other) {
    const labels = [...undoHistory.current];
    [labels[place], labels[other]] = [labels[other], labels[place]];
    change(labels);
  }

  const save = reportErrors(async () => {
    const record = await post(`data/${id}/labels`, { task, video: video.video, labels: undoHistory.current });
    video.labels = saved = undoHistory.current;
    id = record.id;
    history.replaceState(null, "", `/labels/${id}?${new URLSearchParams({ task })}`);
    listDownloads();
    showStatus(`Saved in ${record.name}.`);
  });

  function listDownloads() {
    files.replaceChildren("All labels as: ", ...choices.label_formats.map((format) =>
      link(`.${format}`, `/api/data/${id}/as/${format}`, { download: "" })));
  }

  const addStep = () => {
    const name = newStep.value.trim();
    if (!name || steps.includes(name)) return;
    steps = [...steps, name].toSorted();
    newStep.value = "";
    refresh();
  };
  newStep.addEventListener("keydown", (event) => event.key === "Enter" && addStep());
  const watch = el("input", { type: "file", accept: "video/*", onchange: (event) => {
    if (player.src) URL.revokeObjectURL(player.src);
    player.src = URL.createObjectURL(event.target.files[0]);
    player.hidden = false;
  } });

  onUndoKeys(() => travel(() => undoHistory.undo()), () => travel(() => undoHistory.redo()));
  addEventListener("beforeunload", (event) => isDirty() && event.preventDefault());
  listDownloads();
  body.replaceChildren(
    el("div", { className: "fields" }, field("Video", videoMenu),
      ...(timed ? [field("Watch its file", watch), field("Zoom", zoom)] : [])),
    el("p", { className: "buttons" }, undo, redo, button("Add a label", add), newStep, button("Add the step", addStep),
      button("Save", save, { className: "main" })),
    player, strip, list, files,
    el("p", { className: "quiet hint" }, timed ? HINT : ""),
  );
  refresh();
}

const HINT = "On the timeline: drag a label or its ends. With the keyboard: arrows move it by a tenth of a second " +
  "(with Shift its end, with Alt its start), Enter accepts a prediction, Delete removes it.";

const round = (seconds) => Math.round(100 * seconds) / 100;
