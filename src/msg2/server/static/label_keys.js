// All keys of the workbench, in one list: what they do, and the page that tells them.
import { button, el } from "./dom.js";

/** [keys as the browser calls them, as they are shown, what they do, name of the action]. */
const KEYS = [
  [[" "], "Space", "play or pause", "toggle"],
  [["ArrowLeft"], "←", "back 2 seconds (with Shift: 10)", "back"],
  [["ArrowRight"], "→", "on 2 seconds (with Shift: 10)", "forward"],
  [["j"], "j", "next label or draft", "nextRow"],
  [["k"], "k", "previous label or draft", "previousRow"],
  [["Enter"], "Enter", "accept the draft, and go to the next one", "accept"],
  [["x", "Backspace", "Delete"], "x, Backspace", "reject the draft, or delete the label", "reject"],
  [["["], "[", "the label starts now (without a chosen one: a new label of the step)", "startNow"],
  [["]"], "]", "the label ends now", "endNow"],
  [[","], ",", "move the label a tenth of a second earlier", "earlier"],
  [["."], ".", "move the label a tenth of a second later", "later"],
  [["<"], "<", "its end a tenth of a second earlier", "endEarlier"],
  [[">"], ">", "its end a tenth of a second later", "endLater"],
  [["ArrowUp"], "↑", "the step above", "stepUp"],
  [["ArrowDown"], "↓", "the step below", "stepDown"],
  [["Escape"], "Esc", "choose no label, so that [ makes a new one", "unchoose"],
  [["u"], "u", "only drafts that are unsure", "unsure"],
  [["n"], "n", "next video", "nextVideo"],
  [["p"], "p", "previous video", "previousVideo"],
  [["N"], "Shift n", "the video that would tell most", "bestVideo"],
  [["z"], "z", "undo", "undo"],
  [["Z"], "Shift z", "do it again", "redo"],
  [["+", "="], "+", "zoom in", "zoomIn"],
  [["-"], "−", "zoom out", "zoomOut"],
  [["?"], "?", "these keys", "help"],
];
const DIGITS = [
  ["1 – 9", "choose a step by its number"],
  ["Shift 1 – 9", "give the chosen label this step"],
];

/** Keys go to `actions` by name, and digits to chooseStep(place) and giveStep(place); not while something is typed. */
export function bindKeys(actions) {
  const overlay = keyPage();
  document.body.append(overlay);
  const byKey = new Map(KEYS.flatMap(([keys, , , name]) => keys.map((key) => [key, name])));
  const all = { ...actions, help: () => overlay.showModal() };
  addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || overlay.open) return;
    if (target.closest("input:not([type=checkbox], [type=range]), textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const onControl = target.closest("button:not(.segment, .lane-name), a, summary, input");
    if (onControl && (event.key === "Enter" || event.key === " ")) return;
    const digit = /^Digit([1-9])$/.exec(event.code)?.[1];
    if (digit) (event.shiftKey ? all.giveStep : all.chooseStep)(Number(digit) - 1);
    else if (byKey.has(event.key)) all[byKey.get(event.key)](event);
    else return;
    event.preventDefault();
  });
  // A button that was clicked would take the next Space or Enter for itself.
  addEventListener("click", (event) => event.detail > 0 && event.target.closest?.("button, summary")?.blur());
  addEventListener("change", (event) => event.target.matches("select, input[type=range], input[type=checkbox]") && event.target.blur());
  return () => overlay.showModal();
}

function keyPage() {
  const line = (keys, text) => el("div", {}, el("dt", {}, el("kbd", {}, keys)), el("dd", {}, text));
  const close = button("Close", () => page.close());
  const page = el("dialog", { className: "keys", "aria-label": "Keys" }, el("h2", {}, "Everything by keyboard"),
    el("dl", {}, ...KEYS.map(([, keys, text]) => line(keys, text)), ...DIGITS.map(([keys, text]) => line(keys, text))),
    el("p", { className: "quiet" }, "With the mouse: drag a label or its ends; click a lane to go there; turn the wheel over the " +
      "time axis (or with Ctrl anywhere) to zoom."), close);
  return page;
}
