// Which column of a table is which: a dialog with its first rows, and a menu over each column.
import { button, el, nameElement, row, select } from "./dom.js";

const kinds = { steps: "a table of steps: every row is a step of a video", events: "an event log: every row is an event of a case" };
const needed = { steps: ["video", "step"], events: ["case", "activity"] };
/** What a column of the other kind of table is in one of this kind. */
const counterparts = {
  steps: { case: "video", activity: "step", time: "start", start: "start", end: "end" },
  events: { video: "case", step: "activity", start: "time", end: "end" },
};

/**
 * Ask which column is which, and read the table so: `read(columns)` gets what `--columns` takes; what it refuses is shown,
 * and asked again. Returns what it returned, or null where the dialog was closed. `reason` is why there is a question.
 */
export function askColumns(name, preview, read, reason) {
  const { header, choices } = preview;
  let kind = preview.kind;
  let roles = header.map((column) => Object.keys(preview.columns).find((role) => preview.columns[role] === column) ?? "");
  const found = (role) => header[roles.indexOf(role)];
  const menus = el("tr", {});
  const meaning = el("p", { className: "meaning", role: "status" });
  const problem = el("p", { className: "failed", role: "alert" }, reason ?? "");
  const go = button("Read it so", send, { className: "main" });

  function fill() {
    menus.replaceChildren(...header.map((column, place) => el("td", {}, select([["", "not used"], ...choices[kind]], roles[place],
      (role) => choose(place, role), { "aria-label": `What “${column}” is`, disabled: !column,
        onfocus: (event) => event.target.scrollIntoView({ block: "nearest", inline: "nearest" }) }))));
    tell();
  }

  /** One column is one thing: what another one was before, it is no more. */
  function choose(place, role) {
    roles = roles.map((other, at) => (at === place ? role : other === role ? "" : other));
    menus.querySelectorAll("select").forEach((menu, at) => { menu.value = roles[at]; });
    problem.textContent = "";
    tell();
  }

  function tell() {
    const missing = needed[kind].filter((role) => !roles.includes(role));
    go.disabled = missing.length > 0;
    meaning.replaceChildren(...(missing.length ? [`Choose the column that is the ${missing.join(", and the one that is the ")}.`]
      : meaningElements(kind, found, header.filter((_, place) => !roles[place]))));
  }

  const dialog = el("dialog", { className: "columns", "aria-labelledby": "columns-title" },
    el("h2", { id: "columns-title" }, "Which column of ", nameElement(name), " is which?"), problem,
    el("fieldset", { className: "choices" }, el("legend", {}, "It is"), ...Object.entries(kinds).map(([value, text]) =>
      el("label", { className: "choice" }, el("input", { type: "radio", name: "kind", value, checked: value === kind,
        onchange: () => {
          kind = value;
          problem.textContent = "";
          const other = roles.map((role) => counterparts[kind][role] ?? "");
          roles = other.map((role, place) => (other.indexOf(role) === place ? role : ""));
          fill();
        } }), el("span", {}, text)))),
    el("div", { className: "first-rows" }, el("table", {},
      el("thead", {}, el("tr", {}, ...header.map((column) => el("th", { scope: "col" }, nameElement(column)))), menus),
      el("tbody", {}, ...preview.rows.map((cells) => row(...cells.map(nameElement)))))),
    meaning, el("p", { className: "buttons" }, go, button("Cancel", () => dialog.close())));
  let result = null;

  async function send() {
    const columns = choices[kind].map((role) => `${role}=${found(role) ?? ""}`).join(",");
    problem.textContent = "";
    go.disabled = true;
    try {
      result = await read(columns);
      dialog.close();
    } catch (error) {
      const { error: what, where, hint } = error.problem ?? { error: error.message };
      problem.textContent = [where ? `${where}: ${what}` : what, hint?.includes("--") ? null : hint].filter(Boolean).join(" — ");
      go.disabled = false;
    }
  }

  fill();
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(result);
  }));
}

/** What will be read, in a sentence or two. */
function meaningElements(kind, found, unused) {
  const quoted = (column) => ["“", nameElement(column), "”"];
  const listed = (intro, columns) => (columns.length
    ? [intro, ...columns.flatMap((column) => [", ", ...quoted(column)]).slice(1), "."] : []);
  const [group, what] = needed[kind];
  const [start, time, end] = ["start", "time", "end"].map(found);
  const [first, last] = [start ?? time ?? end, (start ?? time) && (end ?? (start && time))];
  const times = first ? [last ? " from " : " at ", ...quoted(first), ...(last ? [" to ", ...quoted(last)] : [])]
    : [" in the order of the rows, for want of times"];
  const others = ["task", "confidence", "source", "transition", "instance"].map(found).filter(Boolean);
  return [`The ${group} is in `, ...quoted(found(group)), `, the ${what} in `, ...quoted(found(what)), ",", ...times, ".",
    ...listed(" Also read: ", others), ...listed(" Not used: ", unused.filter(Boolean))];
}
