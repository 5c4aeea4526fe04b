// The labels and drafts of a video as a list, with exact times; where labels have no times, this is where they are ordered.
import { button, el, nameElement, row, select, showStatus, table } from "./dom.js";
import { isDraft } from "./label_state.js";

/** `act` has change, choose, accept, reject and reorder; `model` rows, chosen, steps and timed. */
export function labelList({ rows, chosen, steps, timed }, act) {
  const columns = [...(timed ? ["Start", "End"] : []), "Step", "From", ""];
  const lines = rows.map((label, place) => {
    const number = (name) => el("input", { type: "number", min: 0, step: "any", value: label[name], "aria-label": name,
      onchange: (event) => setTime(label, name, event.target) });
    const step = select(steps, label.step, (value) => act.change(label, { step: value }), { "aria-label": "Step" });
    const draft = isDraft(label);
    const percent = label.confidence === undefined ? "" : `, ${Math.round(100 * label.confidence)} % sure`;
    const from = draft ? `draft${percent}` : nameElement(label.source ?? "the data");
    const buttons = el("span", { className: "buttons" },
      draft ? button("Accept", () => act.accept(label)) : null,
      timed || draft ? null : button("↑", () => act.reorder(label, -1), { disabled: place === 0, "aria-label": "Earlier" }),
      timed || draft ? null : button("↓", () => act.reorder(label, 1), { "aria-label": "Later" }),
      button(draft ? "Reject" : "Delete", () => act.reject(label)));
    const line = timed ? row(number("start"), number("end"), step, from, buttons) : row(step, from, buttons);
    line.classList.toggle("chosen", label === chosen);
    line.classList.toggle("draft", draft);
    line.addEventListener("focusin", () => label !== chosen && act.choose(label, false));
    return line;
  });

  function setTime(label, name, input) {
    const { start, end } = { ...label, [name]: input.valueAsNumber };
    if (start >= 0 && end >= start) return act.change(label, { [name]: input.valueAsNumber });
    showStatus("A label ends no earlier than it starts, and starts at 0 or later.", true);
    input.value = label[name];
  }

  return rows.length ? table(columns, lines) : el("p", { className: "quiet" }, "No labels and no drafts yet.");
}
