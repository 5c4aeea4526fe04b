// Draw the graph of a task by hand: every change is laid out by the server, and refused where it closes a circle.
import { get, post } from "./api.js";
import { button, choice, el, field, link, named, problem, safely, say } from "./dom.js";
import { clausesOf, formulaOf, words } from "./formula.js";
import { onKeys, Past } from "./past.js";

export async function show(screen, id) {
  document.title = "Draw a graph – msg2";
  const asked = new URLSearchParams(location.search);
  if (id) {
    const work = await get(`work/${id}`);
    const graph = await get(`work/${id}/as/json`);
    edit(screen, stateOf(graph), work.kind === "drawn" ? id : null);
  } else if (asked.has("data")) {
    const data = await get(`data/${asked.get("data")}`);
    const task = data.tasks.find((one) => one.name === asked.get("task")) ?? data.tasks[0];
    edit(screen, { task: task.name, annotator: "", steps: task.steps, needs: {} }, null);
  } else {
    begin(screen);
  }
}

/** The state of the editor: needs[step] is a list of clauses, see formula.js. */
const stateOf = (graph) => ({
  task: graph.task,
  annotator: typeof graph.method?.annotator === "string" ? graph.method.annotator : "",
  steps: graph.steps,
  needs: Object.fromEntries(Object.entries(graph.preconditions).map(([step, formula]) => [step, clausesOf(formula)])),
});

const graphOf = ({ task, annotator, steps, needs }) => ({
  format: "msg2.graph/1",
  task,
  steps,
  preconditions: Object.fromEntries(
    Object.entries(needs).filter(([, clauses]) => clauses.length).map(([step, clauses]) => [step, formulaOf(clauses)]),
  ),
  method: annotator ? { name: "by hand", annotator } : { name: "by hand" },
});

function begin(screen) {
  const task = el("input", { required: true, size: 40 });
  const placeholder = "boil water\ngrind beans\npour water";
  const steps = el("textarea", { rows: 10, cols: 40, required: true, placeholder });
  const form = el("form", {},
    el("h1", {}, "Draw a graph"),
    el("p", { className: "quiet" }, "Of a task that you know: which steps does it have? What they need comes next."),
    el("div", {}, field("Task", task)),
    el("div", {}, field("Steps, one per line", steps)),
    el("p", {}, el("button", { className: "main" }, "Go on")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const names = [...new Set(steps.value.split("\n").map((line) => line.trim()).filter(Boolean))];
    edit(screen, { task: task.value, annotator: "", steps: names, needs: {} }, null);
  });
  screen.replaceChildren(form);
}

function edit(screen, first, replaces) {
  const past = new Past(first);
  let saved = first;
  let chosen = first.steps[0];
  const picture = el("figure", { className: "picture" });
  const panel = el("aside", { className: "box", "aria-label": "What the step needs" });
  const undo = button("Undo", () => turn(() => past.undo()));
  const redo = button("Redo", () => turn(() => past.redo()));
  const task = el("input", { value: first.task, size: 30 });
  const annotator = el("input", { value: first.annotator, size: 18, placeholder: "your name" });
  const added = el("input", { placeholder: "another step", "aria-label": "Another step" });
  const done = el("span", { className: "downloads" });

  /** Lay the state out; false where the server refuses it. */
  const draw = async (state) => {
    try {
      const { svg, graph } = await post("draw", { graph: graphOf(state) });
      lay(svg, graph.steps);
      return true;
    } catch (error) {
      problem(error);
      return false;
    }
  };

  const change = async (state) => {
    if (await draw(state)) {
      past.add(state);
      say("");
      refresh();
    }
  };

  const turn = async (move) => {
    move();
    ({ task: task.value, annotator: annotator.value } = past.now);
    if (!past.now.steps.includes(chosen)) chosen = past.now.steps[0];
    await draw(past.now);
    say("");
    refresh();
  };

  const withNeeds = (step, clauses) => change({ ...past.now, needs: { ...past.now.needs, [step]: clauses } });
  const needsOf = (step) => past.now.needs[step] ?? [];

  /** Add a step to what the chosen one needs: as one more clause, or to the last one. */
  function need(name, either) {
    const clauses = needsOf(chosen);
    const last = clauses.at(-1);
    if (name === chosen || !past.now.steps.includes(chosen)) return;
    if (either && Array.isArray(last)) withNeeds(chosen, [...clauses.slice(0, -1), [...new Set([...last, name])]]);
    else withNeeds(chosen, [...clauses, [name]]);
  }

  function lay(svg, ordered) {
    const drawn = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    picture.replaceChildren(document.adoptNode(drawn));
    ordered.forEach((name, place) => {
      const node = picture.querySelector(`#s${place}`);
      node.dataset.step = name;
      node.setAttribute("tabindex", "0");
      node.setAttribute("role", "button");
      node.setAttribute("aria-label", name);
      node.addEventListener("click", (event) => pick(name, event));
      node.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") pick(name, event);
      });
    });
  }

  function pick(name, event) {
    event.preventDefault();
    if (event.shiftKey || event.altKey) return need(name, event.altKey);
    chosen = name;
    refresh();
  }

  function refresh() {
    undo.disabled = !past.canUndo;
    redo.disabled = !past.canRedo;
    for (const node of picture.querySelectorAll(".node")) node.classList.toggle("chosen", node.dataset.step === chosen);
    panel.replaceChildren(...(chosen === undefined ? [] : panelOf()));
  }

  function panelOf() {
    const clauses = needsOf(chosen);
    const others = past.now.steps.filter((name) => name !== chosen).toSorted();
    const adding = (text, names, add) =>
      choice([["", text], ...names], "", (name) => name && add(name), { "aria-label": text });
    const items = clauses.map((clause, place) => {
      const rest = [...clauses.slice(0, place), ...clauses.slice(place + 1)];
      const put = (other) => withNeeds(chosen, other.length ? clauses.with(place, other) : rest);
      if (!Array.isArray(clause)) return el("li", {}, chip(words(clause), () => withNeeds(chosen, rest)));
      const chips = clause.map((name) => chip(name, () => put(clause.filter((one) => one !== name))));
      const more = others.filter((name) => !clause.includes(name));
      const listed = chips.flatMap((one) => [" or ", one]).slice(1);
      return el("li", {}, ...listed, " ", adding("or …", more, (name) => put([...clause, name])));
    });
    return [
      el("h2", {}, named(chosen)),
      el("p", { className: "quiet" }, clauses.length ? "needs all of these:" : "needs nothing before it."),
      el("ul", { className: "clauses" }, ...items),
      adding(clauses.length ? "and …" : "needs …", others, (name) => need(name, false)),
      el("p", {}, button("Remove this step", () => without(chosen), { className: "link" })),
      el("p", { className: "quiet hint" }, "In the picture: click a step to choose it; ",
        "Shift-click another to need it as well, Alt-click it as an alternative."),
    ];
  }

  const chip = (name, remove) =>
    el("span", { className: "chip" }, named(name),
      button("×", remove, { className: "gone", "aria-label": `Remove ${name}` }));

  function without(name) {
    const { [name]: _, ...needs } = past.now.needs;
    const left = Object.entries(needs).map(([step, clauses]) => [step, clauses
      .map((clause) => (Array.isArray(clause) ? clause.filter((one) => one !== name) : clause))
      .filter((clause) => !Array.isArray(clause) || clause.length)]);
    const steps = past.now.steps.filter((one) => one !== name);
    chosen = steps[0];
    change({ ...past.now, steps, needs: Object.fromEntries(left) });
  }

  const add = () => {
    const name = added.value.trim();
    if (!name || past.now.steps.includes(name)) return;
    chosen = name;
    added.value = "";
    change({ ...past.now, steps: [...past.now.steps, name] });
  };
  added.addEventListener("keydown", (event) => event.key === "Enter" && add());
  task.addEventListener("change", () => change({ ...past.now, task: task.value }));
  annotator.addEventListener("change", () => change({ ...past.now, annotator: annotator.value.trim() }));

  const save = safely(async () => {
    const made = await post("drawn", { graph: graphOf(past.now), replaces });
    replaces = made.id;
    saved = past.now;
    history.replaceState(null, "", `/draw/${made.id}`);
    const file = link("Download", `/api/work/${made.id}/as/json`, { download: "" });
    done.replaceChildren(link("Show it", `/graph/${made.id}`), file);
    say("Saved.");
  });

  onKeys(() => turn(() => past.undo()), () => turn(() => past.redo()));
  addEventListener("beforeunload", (event) => past.now !== saved && event.preventDefault());
  screen.replaceChildren(
    el("div", { className: "fields" }, field("Task", task), field("Drawn by", annotator)),
    el("p", { className: "buttons" }, undo, redo, added, button("Add the step", add),
      button("Save", save, { className: "main" }), done),
    el("div", { className: "stage" }, picture, panel),
  );
  draw(first).then(refresh);
}
