// One dataset: choose a task and a method, and learn; fill in labels that are missing.
import { get, patch, post } from "./api.js";
import { askColumns } from "./column_dialog.js";
import { button, el, field, link, nameElement, plural, reportErrors, select, showStatus } from "./dom.js";
import { followsBox } from "./graph_tools.js";
import { learningForm } from "./learning_form.js";

export async function show(screen, id) {
  const [data, choices] = await Promise.all([get(`data/${id}`), get("choices")]);
  document.title = `${data.name} – msg2`;
  const form = learningForm(choices, data.draft_confidence === null ? {} : { draft_confidence: data.draft_confidence });
  const steps = el("p", { className: "quiet names" });
  const findings = el("section", { "aria-label": "Worth a look" });
  const buttons = el("p", { className: "buttons" });
  const follows = el("div", {});
  const names = data.tasks.map((task) => [task.name, `${task.name} (${plural(task.videos, task.unit)})`]);
  const task = select(names, data.tasks[0].name, showTask);

  function showTask() {
    const facts = data.tasks.find((entry) => entry.name === task.value);
    const listed = facts.steps.flatMap((step) => [" · ", nameElement(step)]).slice(1);
    steps.replaceChildren(`${plural(facts.steps.length, "step")}: `, ...listed);
    const worth = facts.findings.map((finding) => el("li", {}, finding));
    findings.replaceChildren(...(worth.length ? [el("h2", {}, "Worth a look"), el("ul", { className: "remarks" }, ...worth)] : []));
    follows.replaceChildren(facts.steps.length ? followsBox(id, facts.name) : "");
    const labels = new URLSearchParams({ task: facts.name });
    const drawing = new URLSearchParams({ data: id, task: facts.name });
    buttons.replaceChildren(
      button("Learn the graph", learn, { className: "main" }),
      link("Correct labels", `/labels/${id}?${labels}`, { className: "as-button" }),
      link("Draw its graph by hand", `/draw?${drawing}`, { className: "as-button" }),
    );
  }

  const learn = reportErrors(async () => {
    const job = await post("work", { data: id, task: task.value, ...form.value() });
    location.assign(`/graph/${job.id}`);
  });

  const readOtherwise = reportErrors(async () => {
    const read = (columns) => patch(`data/${id}`, { columns });
    if (await askColumns(data.name, await get(`data/${id}/preview`), read)) location.reload();
  });
  const columns = Object.entries(data.columns).flatMap(([role, column]) => [", ", role, " is “", nameElement(column), "”"]).slice(1);

  showTask();
  const messages = data.remarks.map((message) => el("li", {}, message));
  screen.replaceChildren(
    el("h1", {}, nameElement(data.name)),
    el("p", { className: "quiet" }, data.format),
    columns.length ? el("p", { className: "quiet" }, "Columns: ", ...columns, ". ", button("Read it otherwise", readOtherwise, { className: "link" })) : "",
    messages.length ? el("ul", { className: "remarks" }, ...messages) : "",
    field("Task", task), steps, findings, follows, fillBox(data, () => task.value), el("h2", {}, "Learn a graph"), form.element, buttons,
    el("h2", {}, "All labels as"),
    el("p", { className: "downloads" }, ...choices.label_formats.map((format) =>
      link(`.${format}`, `/api/data/${id}/as/${format}`, { download: "" }))),
  );
}

// -- missing labels ------------------------------------------------------------------------------------------------

/** Drafts for the videos without labels; where there is nothing to make them from, why. */
function fillBox(data, chosenTask) {
  const isLog = data.tasks.some((task) => task.unit === "run");
  if (isLog) return ""; // what is not in a log was not done
  const box = el("details", { className: "box" }, el("summary", {}, "Fill in missing labels"));
  if (!data.media) {
    box.append(el("p", {}, "These data are labels only: there is nothing to fill in others from. Add the folder of the videos with " +
      "their captions (.vtt, .srt), or a ZIP archive of the captions, and fill in the labels there: what is said in a video, and these " +
      "labels, tell what was done in it."));
    return box;
  }
  const own = data.tasks.some((task) => task.steps.length);
  const source = el("div", {});
  const names = el("textarea", { rows: 6, cols: 40 });
  const fill = reportErrors(async () => {
    const steps = names.value.split("\n").map((name) => name.trim()).filter(Boolean);
    const [labels, task] = JSON.parse(source.querySelector("select")?.value || "[null, null]");
    if (!own && !labels && !steps.length) throw new Error("Name the steps first, one per line, or choose labels of some videos.");
    showStatus("Filling in, from what is said …");
    const known = labels ? { labels, task } : own ? { task: chosenTask() } : {};
    const filled = await post(`data/${data.id}/workbench/filled`, { steps, ...known });
    location.assign(`/data/${filled.id}`);
  });
  box.append(el("p", {}, "Every video without labels gets drafts, made from what is said in it (its captions)" +
    (own ? " and from the labels that are there." : ".") + " A draft has a confidence; labels that are there stay as they are."), source,
  field("Steps in their usual order, one per line (may be left out where labels of some videos are known)", names),
  el("p", { className: "buttons" }, button("Fill in missing labels", fill, { className: "main" })));
  box.addEventListener("toggle", reportErrors(async () => {
    if (own) return;
    const others = (await get("data")).data.filter((other) => other.id !== data.id).flatMap((other) => other.tasks
      .filter((task) => task.steps.length).map((task) => [JSON.stringify([other.id, task.name]), `${other.name}: ${task.name}`]));
    if (others.length) source.append(field("Labels of some of the videos", select([["", "none"], ...others], "")));
  }), { once: true });
  return box;
}
