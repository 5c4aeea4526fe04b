// The picture as a file, on paper, and in the light or the dark.

/** The picture alone, in the colours it was drawn in, without what is hidden. */
function standalone() {
  const copy = PICTURE.cloneNode(true);
  for (const element of copy.querySelectorAll(".hidden, .hit")) element.remove();
  for (const element of copy.querySelectorAll("[href], [role], [aria-label]")) {
    for (const name of ["href", "role", "aria-label"]) element.removeAttribute(name);
  }
  copy.removeAttribute("class");
  copy.setAttribute("viewBox", `${DRAWN.x} ${DRAWN.y} ${DRAWN.width} ${DRAWN.height}`);
  return new XMLSerializer().serializeToString(copy);
}

function save(blob, suffix) {
  const address = URL.createObjectURL(blob);
  const name = plain(DATA.task).replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "graph";
  make("a", { href: address, download: `${name}.${suffix}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function savePng() {
  const picture = new Image();
  picture.src = URL.createObjectURL(new Blob([standalone()], { type: "image/svg+xml" }));
  await picture.decode();
  const { width, height } = picture;
  // No more than browsers can draw, in all and on a side.
  const scale = Math.min(2, Math.sqrt(100e6 / (width * height)), 16_000 / Math.max(width, height));
  const canvas = make("canvas", { width: width * scale, height: height * scale });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(picture.src);
  canvas.toBlob((blob) => save(blob, "png"), "image/png");
}

at("save-svg").onclick = () => save(new Blob([standalone()], { type: "image/svg+xml" }), "svg");
at("save-png").onclick = () => savePng().catch(() => say("This browser cannot make a PNG of the picture."));
at("print").onclick = () => print();

const darkness = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (darkness.matches ? "dark" : "light")) === "dark";
const nameTheme = () => (at("theme").textContent = isDark() ? "Light" : "Dark");
at("theme").onclick = () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
};
darkness.onchange = nameTheme;
nameTheme();
