// A diagram that the server has laid out, in the page itself: its steps can be chosen by mouse, finger and keyboard.

const SMALLEST = 0.75;

/** Put an SVG into `figure`, as wide as there is room, but never too small to read; `choose(step, event)` is called. */
export function showDiagram(figure, svg, steps, choose) {
  const drawn = document.adoptNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement);
  figure.replaceChildren(drawn);
  const { width, height } = drawn.viewBox.baseVal;
  const scale = Math.min(1.33, Math.max(SMALLEST, (figure.clientWidth - 4) / width));
  drawn.setAttribute("width", Math.round(width * scale));
  drawn.setAttribute("height", Math.round(height * scale));
  steps.forEach((name, place) => {
    const node = drawn.querySelector(`#s${place}`);
    node.dataset.step = name;
    node.setAttribute("tabindex", "0");
    node.setAttribute("role", "button");
    node.setAttribute("aria-label", name);
    node.addEventListener("click", (event) => choose(name, event));
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") choose(name, event);
    });
  });
}

/** Mark a step, and bring it into sight sideways; the page stays where it is. */
export function markStep(figure, step) {
  for (const node of figure.querySelectorAll(".node")) {
    const isChosen = node.dataset.step === step && step !== undefined;
    node.classList.toggle("chosen", isChosen);
    if (node.hasAttribute("tabindex")) node.setAttribute("aria-pressed", isChosen);
    if (!isChosen) continue;
    const [box, frame] = [node, figure].map((element) => element.getBoundingClientRect());
    const hidden = box.left < frame.left || box.right > frame.right;
    if (hidden) figure.scrollLeft += box.left + box.width / 2 - frame.left - frame.width / 2;
  }
}
