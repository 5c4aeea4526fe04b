// States that can be gone back to, and forward again.

export class UndoHistory {
  #states;
  #place = 0;

  constructor(first) {
    this.#states = [first];
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
