// Correct the labels of one video after another, on a timeline and in a table, and save them.
import { get, post } from "./api.js";
import { button, choice, el, field, link, named, row, safely, say, table } from "./dom.js";
import { onKeys, Past } from "./past.js";
import { timeline } from "./timeline.js";

export async function show(screen, id) {
  const data = await get(`data/${id}`);
  const choices = await get("choices");
  const wanted = new URLSearchParams(location.search).get("task");
  const names = data.tasks.map((task) => task.name);
  document.title = `Labels of ${data.name} – msg2`;
  const body = el("div");
  const task = names.includes(wanted) ? wanted : names[0];
  const tasks = choice(names, task, (other) => { location.search = new URLSearchParams({ task: other }); });
  screen.replaceChildren(el("h1", {}, "Labels of ", named(data.name)), field("Task", tasks), body);
  edit(body, id, await get(`data/${id}/labels?${new URLSearchParams({ task })}`), choices);
}

function edit(body, id, { task, steps, videos }, choices) {
  let video = videos[0];
  let past = new Past(video.labels);
  let saved = video.labels;
  let chosen = 0;
  const strip = el("div");
  const list = el("div");
  const film = el("video", { controls: true, hidden: true, className: "film" });
  const files = el("p", { className: "downloads" });
  const undo = button("Undo", () => turn(() => past.undo()));
  const redo = button("Redo", () => turn(() => past.redo()));
  const names = videos.map((one, place) => [place, `${one.video} (${one.labels.length} labels)`]);
  const next = choice(names, 0, (place) => open(Number(place)));
  const newStep = el("input", { placeholder: "a step that is new", "aria-label": "A step that is new" });
  const zoom = el("input", { type: "range", min: 1, max: 20, value: 1, "aria-label": "Zoom",
    oninput: () => strip.style.setProperty("--zoom", zoom.value) });
  const timed = videos.some((one) => one.labels.some((label) => label.start !== undefined));

  const isDirty = () => past.now !== saved;

  async function open(place) {
    if (isDirty()) await save();
    video = videos[place];
    past = new Past(video.labels);
    saved = video.labels;
    chosen = 0;
    film.hidden = true;
    refresh();
  }

  function change(labels) {
    past.add(timed ? labels.toSorted((a, b) => a.start - b.start || a.end - b.end) : labels);
    refresh();
  }

  function turn(move) {
    move();
    refresh();
  }

  const set = (place, values) => {
    const label = { ...past.now[place], ...values };
    change(past.now.with(place, label));
    chosen = Math.max(0, past.now.indexOf(label));
    refresh();
  };
  const put = (place, values) => set(place, { ...values, ...checked(past.now[place], "corrected") });
  const accept = (place) => set(place, checked(past.now[place], "accepted"));
  const drop = (place) => change(past.now.toSpliced(place, 1));

  /** What a person has looked at is no longer a prediction, and has no confidence. */
  const checked = (label, source) => (label.source === undefined ? {} : { source, confidence: undefined });

  function add() {
    const last = past.now.at(-1);
    const start = timed ? (film.hidden ? (last?.end ?? 0) : round(film.currentTime)) : undefined;
    const times = timed ? { start, end: round(start + 5) } : {};
    const label = { video: video.video, step: last?.step ?? steps[0], ...times };
    change([...past.now, label]);
    chosen = past.now.indexOf(label);
    refresh();
  }

  function refresh() {
    undo.disabled = !past.canUndo;
    redo.disabled = !past.canRedo;
    strip.replaceChildren(timed ? timeline(past.now, chosen, { put, drop, accept, choose, seek }) : "");
    list.replaceChildren(table([...(timed ? ["Start", "End"] : []), "Step", "From", ""], past.now.map(line)));
  }

  function choose(place) {
    chosen = place;
    list.querySelectorAll("tbody tr").forEach((line, at) => line.classList.toggle("chosen", at === place));
    strip.querySelectorAll(".segment").forEach((bar) => bar.classList.toggle("chosen", bar.dataset.place === String(place)));
  }

  function seek(seconds) {
    if (!film.hidden) film.currentTime = seconds;
  }

  function line(label, place) {
    const number = (name) => el("input", { type: "number", min: 0, step: "any", value: label[name], "aria-label": name,
      onchange: (event) => moved(place, name, event.target.valueAsNumber) });
    const step = choice(steps, label.step, (value) => put(place, { step: value }), { "aria-label": "Step" });
    const sure = label.confidence === undefined ? "" : ` (${Math.round(100 * label.confidence)} %)`;
    const from = `${label.source ?? ""}${sure}`;
    const last = place === past.now.length - 1;
    const buttons = el("span", { className: "buttons" },
      label.source === "predicted" ? button("Accept", () => accept(place)) : null,
      timed ? null : button("↑", () => swap(place, place - 1), { disabled: place === 0, "aria-label": "Earlier" }),
      timed ? null : button("↓", () => swap(place, place + 1), { disabled: last, "aria-label": "Later" }),
      button("Delete", () => drop(place)));
    const made = timed ? row(number("start"), number("end"), step, from, buttons) : row(step, from, buttons);
    made.classList.toggle("chosen", place === chosen);
    made.addEventListener("focusin", () => choose(place));
    return made;
  }

  function moved(place, name, value) {
    const label = { ...past.now[place], [name]: value };
    if (!(label.start >= 0 && label.end >= label.start)) {
      say("A label ends no earlier than it starts, and starts at 0 or later.", true);
      return refresh();
    }
    put(place, { [name]: value });
  }

  function swap(place, other) {
    const labels = [...past.now];
    [labels[place], labels[other]] = [labels[other], labels[place]];
    change(labels);
  }

  const save = safely(async () => {
    const made = await post(`data/${id}/labels`, { task, video: video.video, labels: past.now });
    video.labels = saved = past.now;
    id = made.id;
    history.replaceState(null, "", `/labels/${id}?${new URLSearchParams({ task })}`);
    download();
    say(`Saved in ${made.name}.`);
  });

  function download() {
    files.replaceChildren("All labels as: ", ...choices.label_formats.map((format) =>
      link(`.${format}`, `/api/data/${id}/as/${format}`, { download: "" })));
  }

  const more = () => {
    const name = newStep.value.trim();
    if (!name || steps.includes(name)) return;
    steps = [...steps, name].toSorted();
    newStep.value = "";
    refresh();
  };
  newStep.addEventListener("keydown", (event) => event.key === "Enter" && more());
  const watch = el("input", { type: "file", accept: "video/*", onchange: (event) => {
    if (film.src) URL.revokeObjectURL(film.src);
    film.src = URL.createObjectURL(event.target.files[0]);
    film.hidden = false;
  } });

  onKeys(() => turn(() => past.undo()), () => turn(() => past.redo()));
  addEventListener("beforeunload", (event) => isDirty() && event.preventDefault());
  download();
  body.replaceChildren(
    el("div", { className: "fields" }, field("Video", next),
      ...(timed ? [field("Watch its file", watch), field("Zoom", zoom)] : [])),
    el("p", { className: "buttons" }, undo, redo, button("Add a label", add), newStep, button("Add the step", more),
      button("Save", save, { className: "main" })),
    film, strip, list, files,
    el("p", { className: "quiet hint" }, timed ? HINT : ""),
  );
  refresh();
}

const HINT = "On the timeline: drag a label or its ends. With the keyboard: arrows move it by a tenth of a second " +
  "(with Shift its end, with Alt its start), Enter accepts a prediction, Delete removes it.";

const round = (seconds) => Math.round(100 * seconds) / 100;
