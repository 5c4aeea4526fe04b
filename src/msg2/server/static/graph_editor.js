// Draw the graph of a task by hand: what steps need, what they come after if both are done, which may be left out, and
// of which only one is done. Every change is laid out by the server, and refused where it closes a circle.
import { get, newId, post } from "./api.js";
import { button, el, field, link, nameElement, reportErrors, select, showError, showStatus } from "./dom.js";
import { markStep, showDiagram } from "./diagram.js";
import { clausesOf, formulaOf, formulaText } from "./formula.js";
import { onUndoKeys, UndoHistory } from "./undo_history.js";

export async function show(screen, id) {
  document.title = "Draw a graph – msg2";
  const query = new URLSearchParams(location.search);
  if (id) {
    const work = await get(`work/${id}`);
    const graph = await get(`work/${id}/as/json`);
    edit(screen, stateOf(graph), work.kind === "drawn" ? work : null);
  } else if (query.has("data")) {
    const data = await get(`data/${query.get("data")}`);
    const task = data.tasks.find((entry) => entry.name === query.get("task")) ?? data.tasks[0];
    edit(screen, newState(task.name, task.steps), null);
  } else {
    showStart(screen);
  }
}

/** The state of the editor: needs[step] is a list of clauses, see formula.js; the rest is as in a graph file. */
const newState = (task, steps) =>
  ({ task, annotator: "", steps, needs: {}, order: [], exclusive: [], optional: [], repeats: {}, responses: [], loops: [] });

const stateOf = (graph) => ({
  task: graph.task,
  annotator: typeof graph.method?.annotator === "string" ? graph.method.annotator : "",
  steps: graph.steps,
  needs: Object.fromEntries(Object.entries(graph.preconditions).map(([step, formula]) => [step, clausesOf(formula)])),
  order: graph.order ?? [],
  exclusive: graph.exclusive ?? [],
  optional: graph.optional ?? [],
  repeats: graph.repeats ?? {},
  responses: graph.responses ?? [],
  loops: graph.loops ?? [],
});

const graphOf = ({ task, annotator, steps, needs, order, exclusive, optional, repeats, responses, loops }) => ({
  format: "msg2.graph/2",
  task,
  steps,
  preconditions: Object.fromEntries(
    Object.entries(needs).filter(([, clauses]) => clauses.length).map(([step, clauses]) => [step, formulaOf(clauses)]),
  ),
  order,
  exclusive,
  optional,
  repeats,
  responses,
  loops,
  method: annotator ? { name: "by hand", annotator } : { name: "by hand" },
});

/** What a new arrow means: its name in the switch, and in full. */
const arrowKinds = {
  needs: ["needs", "Without the first step, the second one cannot be done."],
  after: ["after, if done", "Where both are done, the first one comes first. Neither needs the other."],
};

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
    edit(screen, newState(task.value, names), null);
  });
  screen.replaceChildren(form);
}

/** What is different between two states, in words. */
function differences(before, after) {
  const changed = (values, others) => Object.keys({ ...values, ...others })
    .filter((name) => JSON.stringify(values[name]) !== JSON.stringify(others[name]));
  const { needs, ...rest } = before;
  const { needs: otherNeeds, ...others } = after;
  return [...changed(needs, otherNeeds).map((step) => `what “${step}” needs`), ...changed(rest, others)];
}

function edit(screen, first, replaces) {
  const undoHistory = new UndoHistory(first);
  let saved = first;
  let chosen = first.steps[0];
  let arrowKind = "needs";
  const diagram = el("figure", { className: "diagram" });
  const panel = el("aside", { className: "box", "aria-label": "The chosen step" });
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
      showDiagram(diagram, svg, graph.steps, onNode);
      return true;
    } catch (error) {
      // Where in a file it would be says nothing to who draws.
      showError(error.problem ? { problem: { ...error.problem, where: null } } : error);
      return false;
    }
  };

  // Every change waits for the server: what is done meanwhile comes after it.
  let lastChange = Promise.resolve();
  const inTurn = (work) => (lastChange = lastChange.then(work));

  const set = (changes) => inTurn(async () => {
    const state = { ...undoHistory.current, ...changes };
    if (await draw(state)) {
      undoHistory.push(state);
      showStatus("");
    }
    refresh();
  });

  const travel = (move) => inTurn(async () => {
    move();
    ({ task: task.value, annotator: annotator.value } = undoHistory.current);
    if (!undoHistory.current.steps.includes(chosen)) chosen = undoHistory.current.steps[0];
    await draw(undoHistory.current);
    showStatus("");
    refresh();
  });

  // An arrow is drawn by dragging from one step to another.
  const stepAt = ({ clientX, clientY }) => document.elementFromPoint(clientX, clientY)?.closest(".node")?.dataset.step;
  let dragged;
  diagram.addEventListener("pointerdown", (event) => {
    dragged = stepAt(event);
    diagram.classList.toggle("dragging", dragged !== undefined);
  });
  addEventListener("pointerup", (event) => {
    const target = stepAt(event);
    const isArrow = dragged !== undefined && target !== undefined && target !== dragged;
    if (isArrow) {
      chosen = target;
      addArrow(dragged, false);
    }
    dragged = undefined;
    diagram.classList.remove("dragging");
  });

  const withNeeds = (step, clauses) => ({ ...undoHistory.current.needs, [step]: clauses });
  const setNeeds = (step, clauses) => set({ needs: withNeeds(step, clauses) });
  const needsOf = (step) => undoHistory.current.needs[step] ?? [];
  const predecessors = (step) => undoHistory.current.order.filter(([, after]) => after === step).map(([before]) => before);
  const withoutPair = (before, after) => undoHistory.current.order.filter(([a, b]) => a !== before || b !== after);

  /** Draw an arrow to the chosen step: of the chosen kind, or as an alternative in the last of its clauses. */
  function addArrow(name, asAlternative) {
    const clauses = needsOf(chosen);
    const last = clauses.at(-1);
    if (name === chosen || !undoHistory.current.steps.includes(chosen)) return;
    if (asAlternative && Array.isArray(last)) {
      setNeeds(chosen, [...clauses.slice(0, -1), [...new Set([...last, name])]]);
      return;
    }
    const isSame = (clause) => Array.isArray(clause) && clause.length === 1 && clause[0] === name;
    const rest = clauses.filter((clause) => !isSame(clause));
    const order = withoutPair(name, chosen);
    if (arrowKind === "needs") set({ needs: withNeeds(chosen, [...rest, [name]]), order });
    else set({ needs: withNeeds(chosen, rest), order: [...order, [name, chosen]] });
  }

  /** Put another group in the place of one, or of none; a group of one step is no group. */
  function setGroup(place, group) {
    const groups = undoHistory.current.exclusive.toSpliced(place, 1, group).filter((names) => names.length > 1);
    set({ exclusive: groups });
  }

  function setOptional(step, isOptional) {
    const others = undoHistory.current.optional.filter((name) => name !== step);
    set({ optional: isOptional ? [...others, step] : others });
  }

  function onNode(name, event) {
    event.preventDefault();
    if (event.shiftKey || event.altKey) return addArrow(name, event.altKey);
    chosen = name;
    refresh();
  }

  function refresh() {
    undo.disabled = !undoHistory.canUndo;
    redo.disabled = !undoHistory.canRedo;
    markStep(diagram, chosen);
    const controls = () => [...panel.querySelectorAll("button, input, select")];
    const focused = controls().indexOf(document.activeElement);
    panel.replaceChildren(...(chosen === undefined ? [] : panelElements()));
    controls()[focused]?.focus();  // who works by keyboard stays where they were
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
    const earlier = predecessors(chosen).toSorted();
    return [
      el("h2", {}, nameElement(chosen)),
      arrowSwitch(),
      el("p", { className: "quiet" }, clauses.length ? "needs all of these:" : "needs nothing before it."),
      el("ul", { className: "clauses" }, ...items),
      ...(earlier.length ? [
        el("p", { className: "quiet" }, "comes after these, where they are done:"),
        el("ul", { className: "clauses" }, ...earlier.map((name) => el("li", {},
          chip(name, () => set({ order: withoutPair(name, chosen) }), `No longer after ${name}`)))),
      ] : []),
      stepMenu(arrowKind === "after" ? "comes after …" : clauses.length ? "and …" : "needs …", others,
        (name) => addArrow(name, false)),
      el("label", { className: "check" },
        el("input", { type: "checkbox", checked: undoHistory.current.optional.includes(chosen),
          onchange: (event) => setOptional(chosen, event.target.checked) }),
        "may be left out"),
      ...groupElements(stepMenu, others),
      el("p", {}, button("Remove this step", () => removeStep(chosen), { className: "link" })),
      el("p", { className: "quiet hint" }, "In the diagram: click a step to choose it, and drag from one step to another to ",
        "draw an arrow. Or Shift-click another step to draw an arrow from it, Alt-click it as an alternative to the last one."),
    ];
  }

  /** What an arrow that is drawn now means. */
  function arrowSwitch() {
    const radios = Object.entries(arrowKinds).map(([kind, [text]]) =>
      el("label", {}, el("input", { type: "radio", name: "arrow-kind", value: kind, checked: kind === arrowKind,
        onchange: () => { arrowKind = kind; refresh(); } }), text));
    return el("fieldset", { className: "switch" }, el("legend", {}, "A new arrow means"), ...radios,
      el("p", { className: "quiet meaning" }, arrowKinds[arrowKind][1]));
  }

  /** The groups of the chosen step, of which only one step is done. */
  function groupElements(stepMenu, others) {
    const groups = [...undoHistory.current.exclusive.entries()].filter(([, group]) => group.includes(chosen));
    const listed = groups.map(([place, group]) => {
      const chips = group.map((name) =>
        chip(name, () => setGroup(place, group.filter((step) => step !== name)), `Take ${name} out of the group`));
      const more = others.filter((name) => !group.includes(name));
      return el("li", {}, ...chips.flatMap((item) => [" ", item]), " ",
        stepMenu("or …", more, (name) => setGroup(place, [...group, name])));
    });
    const free = others.filter((name) => !groups.some(([, group]) => group.includes(name)));
    return [
      ...(listed.length ? [
        el("p", { className: "quiet" }, "Only one of these is done:"),
        el("ul", { className: "clauses" }, ...listed),
      ] : []),
      stepMenu(listed.length ? "another group with …" : "never done with …", free,
        (name) => setGroup(undoHistory.current.exclusive.length, [chosen, name])),
    ];
  }

  const chip = (name, remove, label = `Remove ${name}`) =>
    el("span", { className: "chip" }, nameElement(name),
      button("×", remove, { className: "remove", "aria-label": label }));

  function removeStep(name) {
    const { [name]: _, ...needs } = undoHistory.current.needs;
    const left = Object.entries(needs).map(([step, clauses]) => [step, clauses
      .map((clause) => (Array.isArray(clause) ? clause.filter((other) => other !== name) : clause))
      .filter((clause) => !Array.isArray(clause) || clause.length)]);
    const { order, exclusive, optional, responses, loops, repeats: { [name]: __, ...repeats } } = undoHistory.current;
    const mentions = (value) => JSON.stringify(value).includes(JSON.stringify(name));
    const without = (names) => names.filter((step) => step !== name);
    const steps = without(undoHistory.current.steps);
    chosen = steps[0];
    set({
      steps,
      needs: Object.fromEntries(left),
      order: order.filter((pair) => !pair.includes(name)),
      exclusive: exclusive.map(without).filter((group) => group.length > 1),
      optional: without(optional),
      repeats,
      responses: responses.filter((pair) => !mentions(pair)),
      loops: loops.filter((loop) => !mentions(loop)),
    });
  }

  const addStep = () => {
    const name = newStep.value.trim();
    if (!name || undoHistory.current.steps.includes(name)) return;
    chosen = name;
    newStep.value = "";
    set({ steps: [...undoHistory.current.steps, name] });
  };
  newStep.addEventListener("keydown", (event) => event.key === "Enter" && addStep());
  task.addEventListener("change", () => set({ task: task.value }));
  annotator.addEventListener("change", () => set({ annotator: annotator.value.trim() }));

  const sent = new Set();
  const save = reportErrors(async () => {
    await lastChange;
    const state = undoHistory.current;
    const save_id = newId();
    sent.add(save_id);
    let record;
    try {
      record = await post("drawn", { graph: graphOf(state), save_id,
        ...(replaces ? { replaces: replaces.id, version: replaces.version } : {}) });
    } catch (error) {
      if (error.status !== 409) throw error;
      const { version, save_id: kept, graph } = error.problem.current;
      const changes = differences(stateOf((await post("draw", { graph: graphOf(saved) })).graph), stateOf(graph));
      if (sent.has(kept) || !changes.length) {  // ours, whose answer was lost; or it only has another name
        replaces = { ...replaces, version };
        return save();
      }
      showError(new Error(`Somebody else has changed this graph: ${changes.join(", ")}. Yours is not saved yet.`));
      savedLinks.replaceChildren(
        button("Keep mine as a new graph", () => { replaces = null; return save(); }),
        link("Show theirs", `/graph/${replaces.id}`, { target: "_blank" }));
      return;
    }
    replaces = record;
    saved = state;
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
