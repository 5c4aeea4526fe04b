// One dataset: choose a task and a method, and learn.
import { get, patch, post } from "./api.js";
import { askColumns } from "./column_dialog.js";
import { button, el, field, link, nameElement, plural, reportErrors, select } from "./dom.js";
import { followsBox } from "./graph_tools.js";
import { learningForm } from "./learning_form.js";

export async function show(screen, id) {
  const [data, choices] = await Promise.all([get(`data/${id}`), get("choices")]);
  document.title = `${data.name} – msg2`;
  const form = learningForm(choices);
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
    field("Task", task), steps, findings, follows, el("h2", {}, "Learn a graph"), form.element, buttons,
    el("h2", {}, "All labels as"),
    el("p", { className: "downloads" }, ...choices.label_formats.map((format) =>
      link(`.${format}`, `/api/data/${id}/as/${format}`, { download: "" }))),
  );
}
