// The written procedure of a graph: its texts to edit, its status, how it looks, and files to hand out.
import { get, put } from "./api.js";
import { button, el, field, link, nameElement, reportErrors, showStatus } from "./dom.js";

const FORMATS = [["html", "Web page"], ["docx", "Word"], ["pdf", "PDF"], ["md", "Markdown"]];

export async function show(screen, id) {
  let procedure = await get(`work/${id}/procedure`);
  let changed = false;
  document.title = `${procedure.title} – msg2`;

  const save = button("Save", reportErrors(() => send()), { className: "main" });
  const mark = () => {
    changed = true;
    save.disabled = false;
    showStatus("Not saved yet.");
  };
  const text = (value, label, properties = {}) =>
    el("input", { value: value ?? "", oninput: mark, "aria-label": label, autocomplete: "off", ...properties });
  const lines = (values, label) =>
    el("textarea", { value: values.join("\n"), rows: Math.max(2, values.length + 1), oninput: mark, "aria-label": label });

  const { texts } = procedure;
  const cautions = (step) => texts.warnings.filter((caution) => (caution.step ?? null) === step).map((caution) => caution.text);
  const version = text(texts.version, "Version");
  const tools = lines(texts.tools, "You need, one thing per line");
  const warnings = lines(cautions(null), "Take care, of the whole procedure");
  const reviewer = text(texts.reviewed?.by, "Reviewed by");
  const day = text(texts.reviewed?.on, "On", { type: "date" });
  const steps = procedure.steps.map(({ label, name, notes }) => {
    const description = text(texts.descriptions[name], `What to do in ${name}`, { placeholder: "What to do, in one sentence" });
    const care = text(cautions(name).join(" "), `Take care in ${name}`, { placeholder: "Take care: what can go wrong here?" });
    const item = el("li", {}, el("strong", {}, `${label}. `, nameElement(name)), description, care,
      notes.length ? el("small", { className: "quiet" }, nameElement(notes.join(" "))) : null);
    return { name, description, care, item };
  });

  const linesOf = (control) => control.value.split("\n").map((line) => line.trim()).filter(Boolean);
  const filled = (list, key) => list.map(({ name, [key]: control }) => [name, control.value.trim()]).filter(([, value]) => value);
  const value = () => ({
    descriptions: Object.fromEntries(filled(steps, "description")),
    warnings: [...linesOf(warnings).map((text) => ({ text })), ...filled(steps, "care").map(([step, text]) => ({ text, step }))],
    tools: linesOf(tools),
    version: version.value.trim() || null,
    reviewed: reviewer.value.trim() ? { by: reviewer.value.trim(), on: day.value || null } : null,
  });

  const status = el("p", { className: "status" });
  const preview = el("iframe", { title: "How it looks", src: `/procedure/${id}`, className: "preview" });

  async function send() {
    save.disabled = true;
    try {
      procedure = await put(`work/${id}/procedure`, { version: procedure.version, texts: value() });
    } catch (error) {
      save.disabled = false;
      throw error;
    }
    changed = false;
    showStatus("Saved.");
    update();
  }

  function update() {
    save.disabled = !changed;
    status.textContent = procedure.status;
    status.classList.toggle("draft", !procedure.texts.reviewed);
    preview.src = `/procedure/${id}`;
  }

  addEventListener("beforeunload", (event) => changed && event.preventDefault());
  const form = el("section", { "aria-label": "Texts" },
    el("div", { className: "fields" }, field("Version", version), field("Reviewed by", reviewer), field("On", day)),
    field("You need, one thing per line", tools), field("Take care, of the whole procedure", warnings),
    el("ol", { className: "texts" }, ...steps.map(({ item }) => item)),
    el("p", { className: "save-bar" }, save));
  const files = el("p", { className: "downloads" }, "Download: ", ...FORMATS.map(([format, name]) =>
    link(name, `/api/work/${id}/procedure/as/${format}`, { download: "" })));
  const address = new URL(procedure.link, location.href).href;
  const share = el("details", { className: "box" }, el("summary", {}, "A link for colleagues"),
    el("p", {}, "Whoever has this link reads the procedure, and nothing else: ", link(address, address)),
    el("img", { src: `/api/qr?${new URLSearchParams({ text: address })}`, alt: "The link as a QR code, for a phone", loading: "lazy" }));
  screen.replaceChildren(el("h1", {}, nameElement(procedure.title)), status,
    el("p", { className: "buttons" }, link("Back to the graph", `/graph/${id}`, { className: "as-button" }),
      link("Open as a page of its own", `/procedure/${id}`, { className: "as-button", target: "_blank", rel: "noopener" })),
    files, share, el("div", { className: "publish" }, form, preview));
  update();
}
