// Ticks are kept on this device, so that a phone that was put away goes on where it was.
const { key } = JSON.parse(document.getElementById("data").textContent);
const boxes = [...document.querySelectorAll(".steps input")];
const again = document.querySelector("button");
let ticked = [];
try {
  ticked = JSON.parse(localStorage.getItem(key)) ?? [];
} catch {
  // A page that may not keep anything works all the same.
}

function show() {
  boxes.forEach((box, place) => box.closest("li").classList.toggle("done", (box.checked = ticked.includes(place))));
  again.hidden = !ticked.length;
  try {
    localStorage.setItem(key, JSON.stringify(ticked));
  } catch {
    // As above.
  }
}

boxes.forEach((box, place) =>
  box.addEventListener("change", () => {
    ticked = box.checked ? [...ticked, place] : ticked.filter((other) => other !== place);
    show();
  }),
);
again.addEventListener("click", () => {
  ticked = [];
  show();
  boxes[0]?.focus();
});
for (const link of document.querySelectorAll(".why"))
  link.addEventListener("click", () => (document.querySelector(".evidence").open = true));
show();
