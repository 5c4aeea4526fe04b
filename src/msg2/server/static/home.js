// The first screen: data to learn from, and the graphs that are kept.
import { get, post, remove, upload } from "./api.js";
import { askColumns } from "./column_dialog.js";
import { button, dateText, el, field, link, nameElement, numberFrom, plural, reportErrors, row, select, showStatus, table } from "./dom.js";
import { originOf, progressText, rulesOf, titleOf } from "./graph.js";

const chosen = new Set();

export async function show(screen) {
  document.title = "msg2";
  const data = el("section", { "aria-label": "Data" });
  const graphs = el("section", { "aria-label": "Graphs" });
  screen.replaceChildren(uploadForm(() => fill()), data, graphs);

  async function fill() {
    const [datasets, records] = [(await get("data")).data, (await get("work")).work];
    const again = reportErrors(fill);
    data.replaceChildren(...datasetsTable(datasets, again));
    const replaced = new Set(records.map((work) => work.state !== "failed" && work.job?.replaces)); // see their history
    graphs.replaceChildren(...graphsTable(records.filter((work) => !replaced.has(work.id)), again));
    if (records.some(isRunning)) setTimeout(again, 700);
  }

  await fill();
}

const isRunning = (work) => work.state === "waiting" || work.state === "running";

// -- uploading ---------------------------------------------------------------------------------------------------

function uploadForm(done) {
  const reading = { tier: el("input"), fps: el("input", { inputMode: "decimal" }) };
  reading.order = select([["", "as usual"], ["file", "of the file"], ["time", "of time"]], "");
  const send = reportErrors(async (files) => {
    if (reading.fps.value) numberFrom(reading.fps.value, "frames per second");
    for (const file of files) {
      showStatus(`Reading ${file.name} …`);
      const given = Object.entries(reading).filter(([, control]) => control.value !== "");
      const data = await uploadOrAsk(file, Object.fromEntries(given.map(([name, control]) => [name, control.value])));
      const findings = data.tasks.flatMap((task) => task.findings);
      showStatus([`${data.name}: ${data.format}.`, ...data.remarks, ...(findings.length ? [`Worth a look: ${findings.join("; ")}.`] : [])].join(" "));
    }
    await done();
  });
  const input = el("input", { type: "file", multiple: true, id: "upload", className: "unseen" });
  input.addEventListener("change", async () => {
    await send([...input.files]);
    input.value = "";
  });
  const zone = el(
    "label",
    { className: "drop", htmlFor: "upload" },
    el("strong", {}, "Choose data, or drop it here"),
    el("span", { className: "quiet" },
      "A table with the columns video, step and, where known, start and end in seconds; " +
      "an event log, an export of an annotation tool; or a ZIP archive of a folder, of captions (.vtt, .srt) too."),
    input,
  );
  for (const kind of ["dragover", "dragleave", "drop"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.toggle("over", kind === "dragover");
      if (kind === "drop") send([...event.dataTransfer.files]);
    });
  }
  const readSettings = el(
    "details",
    {},
    el("summary", {}, "Options for reading"),
    el("div", { className: "fields" }, field("Order (CaptainCook4D)", reading.order),
      field("Tier (ELAN)", reading.tier), field("Frames per second (CVAT, Label Studio)", reading.fps)),
  );
  const example = button("Try an example", reportErrors(async () => {
    showStatus("Preparing the example …");
    const data = await post("example");
    const job = await post("work", { data: data.id });
    location.assign(`/graph/${job.id}`);
  }));
  return el("section", { "aria-label": "Upload" }, el("h1", { className: "unseen" }, "Data and graphs"), zone,
    el("div", { className: "below-drop" }, readSettings, el("span", {}, "No data at hand? ", example)));
}

/** Upload data; where it is a table that cannot be read as it is, ask which column is which. */
async function uploadOrAsk(file, reading) {
  try {
    return await upload("data", file, reading);
  } catch (error) {
    const preview = await upload("preview", file).catch(() => null);
    if (!preview) throw error;
    const { error: what, where } = error.problem;
    const read = (columns) => upload("data", file, { ...reading, columns });
    const data = await askColumns(file.name, preview, read, preview.problem ?? `${where ?? file.name}: ${what}`);
    if (!data) throw error;
    return data;
  }
}

// -- what is there -----------------------------------------------------------------------------------------------

function datasetsTable(datasets, again) {
  const rows = datasets.map((data) =>
    row(
      link(nameElement(data.name), `/data/${data.id}`),
      tasksOf(data),
      videosOf(data),
      el("span", { className: "buttons" },
        hasLabels(data) ? link("Learn a graph", `/data/${data.id}`, { className: "as-button" }) : null,
        link(hasLabels(data) ? "Correct labels" : "Label", `/labels/${data.id}`, { className: "as-button" }),
        removeButton(`data/${data.id}`, data.name, again, ", with all labels that people made of it here")),
    ),
  );
  const none = el("p", { className: "quiet" }, "None yet.");
  return [el("h2", {}, "Data"), rows.length ? table(["Name", "Tasks", "Holds", "What to do"], rows) : none];
}

const hasLabels = (data) => data.tasks.some((task) => task.steps.length);

function tasksOf(data) {
  const names = data.tasks.slice(0, 3).map((task) => task.name).join(", ");
  return data.tasks.length > 3 ? `${names} and ${data.tasks.length - 3} more` : names;
}

const videosOf = (data) => plural(data.tasks.reduce((sum, task) => sum + task.videos, 0), data.tasks[0]?.unit ?? "video");

function graphsTable(records, again) {
  for (const id of chosen) if (!records.some((work) => work.id === id)) chosen.delete(id);
  const merge = button("Merge the chosen ones", reportErrors(async () => {
    const merged = await post("merged", { work: [...chosen] });
    location.assign(`/graph/${merged.id}`);
  }));
  const refresh = () => (merge.disabled = chosen.size < 2);
  const rows = records.map((work) => {
    const box = el("input", { type: "checkbox", checked: chosen.has(work.id), disabled: work.state !== "done",
      "aria-label": `Choose ${titleOf(work)}` });
    box.addEventListener("change", () => {
      chosen[box.checked ? "add" : "delete"](work.id);
      refresh();
    });
    const name = link(nameElement(titleOf(work)), `/graph/${work.id}`);
    return row(box, name, nameElement(originOf(work)), methodOf(work), stateOf(work), dateText(work.made),
      removeButton(`work/${work.id}`, titleOf(work), again));
  });
  refresh();
  const none = el("p", { className: "quiet" }, "None yet. Learn one from data, or draw one by hand.");
  const bar = el("p", { className: "buttons" }, merge, link("Draw a graph", "/draw", { className: "as-button" }),
    graphFileButton(again));
  const columns = ["Chosen", "Name", "From", "Method", "Holds", "Made", "Remove"];
  return [el("h2", {}, "Graphs"), ...(rows.length ? [table(columns, rows)] : [none]), bar];
}

/** Graph files of other people, or of the command line. */
function graphFileButton(again) {
  const input = el("input", { type: "file", multiple: true, accept: ".json", className: "unseen" });
  input.addEventListener("change", reportErrors(async () => {
    for (const file of input.files) {
      const graph = await upload("given", file);
      showStatus(`${graph.name}: the graph of ${graph.task}.`);
    }
    await again();
  }));
  return el("label", { className: "as-button" }, "Add graph files", input);
}

function methodOf(work) {
  const rules = rulesOf(work).length;
  return [work.job?.method, rules ? plural(rules, "rule") : ""].filter(Boolean).join(", ");
}

function stateOf(work) {
  if (work.state === "done") return `${plural(work.steps.length, "step")}, ${plural(work.edges, "arrow")}`;
  const text = work.state === "failed" ? `failed: ${work.problem.error}` : progressText(work) ?? work.state;
  return el("span", { className: work.state }, text);
}

function removeButton(path, name, again, more = "") {
  return button("Remove", reportErrors(async () => {
    if (!confirm(`Remove ${name}${more}?`)) return;
    await remove(path);
    await again();
  }), { className: "link", "aria-label": `Remove ${name}` });
}
