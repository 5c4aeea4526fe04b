// States that can be gone back to, and forward again.

const KEPT = 50;

export class UndoHistory {
  #states;
  #place = 0;

  constructor(first) {
    this.#states = [first];
  }

  /** A history that was saved as text, if it stands at this state; else a new one. */
  static restore(text, current) {
    const history = new UndoHistory(current);
    const saved = text ? JSON.parse(text) : null;
    if (saved && JSON.stringify(saved.states[saved.place]) === JSON.stringify(current)) {
      history.#states = saved.states;
      history.#place = saved.place;
    }
    return history;
  }

  /** As text, the oldest states left out. */
  save() {
    const first = Math.max(0, this.#place - KEPT);
    return JSON.stringify({ states: this.#states.slice(first), place: this.#place - first });
  }

  get current() {
    return this.#states[this.#place];
  }

  get canUndo() {
    return this.#place > 0;
  }

  get canRedo() {
    return this.#place < this.#states.length - 1;
  }

  push(state) {
    this.#states.splice(++this.#place, Infinity, state);
  }

  undo() {
    if (this.canUndo) this.#place--;
  }

  redo() {
    if (this.canRedo) this.#place++;
  }
}

/** Undo and redo by Ctrl-Z and Ctrl-Y, except where text is being typed. */
export function onUndoKeys(undo, redo) {
  addEventListener("keydown", (event) => {
    const typing = event.target.matches("input:not([type=checkbox]), textarea");
    if (!(event.ctrlKey || event.metaKey) || typing) return;
    const key = event.key.toLowerCase();
    if (key === "z" || key === "y") {
      event.preventDefault();
      (key === "y" || event.shiftKey ? redo : undo)();
    }
  });
}
