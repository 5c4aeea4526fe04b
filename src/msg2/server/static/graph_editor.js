// Draw the graph of a task by hand: every change is laid out by the server, and refused where it closes a circle.
import { get, post } from "./api.js";
import { button, el, field, link, nameElement, reportErrors, select, showError, showStatus } from "./dom.js";
import { clausesOf, formulaOf, formulaText } from "./formula.js";
import { onUndoKeys, UndoHistory } from "./undo_history.js";

export async function show(screen, id) {
  document.title = "Draw a graph – msg2";
  const query = new URLSearchParams(location.search);
  if (id) {
    const work = await get(`work/${id}`);
    const graph = await get(`work/${id}/as/json`);
    edit(screen, stateOf(graph), work.kind === "drawn" ? id : null);
  } else if (query.has("data")) {
    const data = await get(`data/${query.get("data")}`);
    const task = data.tasks.find((entry) => entry.name === query.get("task")) ?? data.tasks[0];
    edit(screen, { task: task.name, annotator: "", steps: task.steps, needs: {} }, null);
  } else {
    showStart(screen);
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

function showStart(screen) {
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
  const undoHistory = new UndoHistory(first);
  let saved = first;
  let chosen = first.steps[0];
  const diagram = el("figure", { className: "diagram" });
  const panel = el("aside", { className: "box", "aria-label": "What the step needs" });
  const undo = button("Undo", () => travel(() => undoHistory.undo()));
  const redo = button("Redo", () => travel(() => undoHistory.redo()));
  const task = el("input", { value: first.task, size: 30 });
  const annotator = el("input", { value: first.annotator, size: 18, placeholder: "your name" });
  const newStep = el("input", { placeholder: "another step", "aria-label": "Another step" });
  const savedLinks = el("span", { className: "downloads" });

  /** Lay the state out; false where the server refuses it. */
  const draw = async (state) => {
    try {
      const { svg, graph } = await post("draw", { graph: graphOf(state) });
      showDiagram(svg, graph.steps);
      return true;
    } catch (error) {
      showError(error);
      return false;
    }
  };

  const change = async (state) => {
    if (await draw(state)) {
      undoHistory.push(state);
      showStatus("");
      refresh();
    }
  };

  const travel = async (move) => {
    move();
    ({ task: task.value, annotator: annotator.value } = undoHistory.current);
    if (!undoHistory.current.steps.includes(chosen)) chosen = undoHistory.current.steps[0];
    await draw(undoHistory.current);
    showStatus("");
    refresh();
  };

  const setNeeds = (step, clauses) => change({ ...undoHistory.current, needs: { ...undoHistory.current.needs, [step]: clauses } });
  const needsOf = (step) => undoHistory.current.needs[step] ?? [];

  /** Add a step to what the chosen one needs: as one more clause, or to the last one. */
  function addNeed(name, asAlternative) {
    const clauses = needsOf(chosen);
    const last = clauses.at(-1);
    if (name === chosen || !undoHistory.current.steps.includes(chosen)) return;
    if (asAlternative && Array.isArray(last)) setNeeds(chosen, [...clauses.slice(0, -1), [...new Set([...last, name])]]);
    else setNeeds(chosen, [...clauses, [name]]);
  }

  function showDiagram(svg, steps) {
    const svgElement = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    diagram.replaceChildren(document.adoptNode(svgElement));
    steps.forEach((name, place) => {
      const node = diagram.querySelector(`#s${place}`);
      node.dataset.step = name;
      node.setAttribute("tabindex", "0");
      node.setAttribute("role", "button");
      node.setAttribute("aria-label", name);
      node.addEventListener("click", (event) => onNode(name, event));
      node.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") onNode(name, event);
      });
    });
  }

  function onNode(name, event) {
    event.preventDefault();
    if (event.shiftKey || event.altKey) return addNeed(name, event.altKey);
    chosen = name;
    refresh();
  }

  function refresh() {
    undo.disabled = !undoHistory.canUndo;
    redo.disabled = !undoHistory.canRedo;
    for (const node of diagram.querySelectorAll(".node")) node.classList.toggle("chosen", node.dataset.step === chosen);
    panel.replaceChildren(...(chosen === undefined ? [] : panelElements()));
  }

  function panelElements() {
    const clauses = needsOf(chosen);
    const others = undoHistory.current.steps.filter((name) => name !== chosen).toSorted();
    const stepMenu = (text, names, add) =>
      select([["", text], ...names], "", (name) => name && add(name), { "aria-label": text });
    const items = clauses.map((clause, place) => {
      const rest = [...clauses.slice(0, place), ...clauses.slice(place + 1)];
      const put = (changed) => setNeeds(chosen, changed.length ? clauses.with(place, changed) : rest);
      if (!Array.isArray(clause)) return el("li", {}, chip(formulaText(clause), () => setNeeds(chosen, rest)));
      const chips = clause.map((name) => chip(name, () => put(clause.filter((step) => step !== name))));
      const more = others.filter((name) => !clause.includes(name));
      const listed = chips.flatMap((item) => [" or ", item]).slice(1);
      return el("li", {}, ...listed, " ", stepMenu("or …", more, (name) => put([...clause, name])));
    });
    return [
      el("h2", {}, nameElement(chosen)),
      el("p", { className: "quiet" }, clauses.length ? "needs all of these:" : "needs nothing before it."),
      el("ul", { className: "clauses" }, ...items),
      stepMenu(clauses.length ? "and …" : "needs …", others, (name) => addNeed(name, false)),
      el("p", {}, button("Remove this step", () => removeStep(chosen), { className: "link" })),
      el("p", { className: "quiet hint" }, "In the diagram: click a step to choose it; ",
        "Shift-click another to need it as well, Alt-click it as an alternative."),
    ];
  }

  const chip = (name, remove) =>
    el("span", { className: "chip" }, nameElement(name),
      button("×", remove, { className: "remove", "aria-label": `Remove ${name}` }));

  function removeStep(name) {
    const { [name]: _, ...needs } = undoHistory.current.needs;
    const left = Object.entries(needs).map(([step, clauses]) => [step, clauses
      .map((clause) => (Array.isArray(clause) ? clause.filter((other) => other !== name) : clause))
      .filter((clause) => !Array.isArray(clause) || clause.length)]);
    const steps = undoHistory.current.steps.filter((step) => step !== name);
    chosen = steps[0];
    change({ ...undoHistory.current, steps, needs: Object.fromEntries(left) });
  }

  const addStep = () => {
    const name = newStep.value.trim();
    if (!name || undoHistory.current.steps.includes(name)) return;
    chosen = name;
    newStep.value = "";
    change({ ...undoHistory.current, steps: [...undoHistory.current.steps, name] });
  };
  newStep.addEventListener("keydown", (event) => event.key === "Enter" && addStep());
  task.addEventListener("change", () => change({ ...undoHistory.current, task: task.value }));
  annotator.addEventListener("change", () => change({ ...undoHistory.current, annotator: annotator.value.trim() }));

  const save = reportErrors(async () => {
    const record = await post("drawn", { graph: graphOf(undoHistory.current), replaces });
    replaces = record.id;
    saved = undoHistory.current;
    history.replaceState(null, "", `/draw/${record.id}`);
    const file = link("Download", `/api/work/${record.id}/as/json`, { download: "" });
    savedLinks.replaceChildren(link("Show it", `/graph/${record.id}`), file);
    showStatus("Saved.");
  });

  onUndoKeys(() => travel(() => undoHistory.undo()), () => travel(() => undoHistory.redo()));
  addEventListener("beforeunload", (event) => undoHistory.current !== saved && event.preventDefault());
  screen.replaceChildren(
    el("div", { className: "fields" }, field("Task", task), field("Drawn by", annotator)),
    el("p", { className: "buttons" }, undo, redo, newStep, button("Add the step", addStep),
      button("Save", save, { className: "main" }), savedLinks),
    el("div", { className: "editor" }, diagram, panel),
  );
  draw(first).then(refresh);
}
