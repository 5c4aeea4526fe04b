// One dataset: choose a task and a method, and learn.
import { get, post } from "./api.js";
import { button, choice, el, field, link, named, safely } from "./dom.js";
import { learningForm } from "./learning.js";

export async function show(screen, id) {
  const [data, choices] = await Promise.all([get(`data/${id}`), get("choices")]);
  document.title = `${data.name} – msg2`;
  const form = learningForm(choices);
  const steps = el("p", { className: "quiet names" });
  const buttons = el("p", { className: "buttons" });
  const names = data.tasks.map((task) => [task.name, `${task.name} (${task.videos} videos)`]);
  const task = choice(names, data.tasks[0].name, chosen);

  function chosen() {
    const facts = data.tasks.find((one) => one.name === task.value);
    const listed = facts.steps.flatMap((step) => [" · ", named(step)]).slice(1);
    steps.replaceChildren(`${facts.steps.length} steps: `, ...listed);
    const labels = new URLSearchParams({ task: facts.name });
    const drawing = new URLSearchParams({ data: id, task: facts.name });
    buttons.replaceChildren(
      button("Learn the graph", learn, { className: "main" }),
      link("Correct labels", `/labels/${id}?${labels}`, { className: "as-button" }),
      link("Draw its graph by hand", `/draw?${drawing}`, { className: "as-button" }),
    );
  }

  const learn = safely(async () => {
    const made = await post("work", { data: id, task: task.value, ...form.value() });
    location.assign(`/graph/${made.id}`);
  });

  chosen();
  const remarks = data.remarks.map((remark) => el("li", {}, remark));
  screen.replaceChildren(
    el("h1", {}, named(data.name)),
    el("p", { className: "quiet" }, data.format),
    remarks.length ? el("ul", { className: "remarks" }, ...remarks) : "",
    field("Task", task), steps, form.element, buttons,
    el("h2", {}, "All labels as"),
    el("p", { className: "downloads" }, ...choices.label_formats.map((format) =>
      link(`.${format}`, `/api/data/${id}/as/${format}`, { download: "" }))),
  );
}
