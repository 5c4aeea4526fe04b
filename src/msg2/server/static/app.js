// Which screen to show: the address says it, and the screen's module fills the page.
import { showError } from "./dom.js";

const [, name, id] = location.pathname.split("/");
const screens = { "": "./home.js", data: "./dataset.js", graph: "./graph.js", draw: "./graph_editor.js", labels: "./workbench.js",
  follow: "./follow.js", publish: "./publish.js" };

try {
  const screen = await import(screens[name]);
  await screen.show(document.getElementById("screen"), id);
} catch (error) {
  showError(error);
}
