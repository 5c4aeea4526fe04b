// What is only there with this script is shown, and the page begins.

document.documentElement.classList.add("live");
for (const element of document.querySelectorAll("[data-live]")) element.hidden = false;
PICTURE.setAttribute("preserveAspectRatio", "xMidYMid meet");
FIGURE.tabIndex = 0;

if (VIDEOS.length) {
  at("strip").hidden = false;
  openVideo(Math.max(0, VIDEOS.findIndex((video) => video.steps.length)));
}
resize();
addEventListener("resize", resize);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return closePanel();
  if (event.target.closest?.("input, select, textarea")) return;
  if (event.key === "/") {
    event.preventDefault();
    at("search").focus();
  } else if (event.key === "+" || event.key === "=") zoom(1.3);
  else if (event.key === "-") zoom(1 / 1.3);
  else if (event.key === "0") fit();
  else if (event.key === "f") toggleFullScreen();
});

for (const [event, paper] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => {
    view.paper = paper;
    draw();
  });
}
