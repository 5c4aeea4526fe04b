// Which screen to show: the address says it, and the screen's module fills the page.
import { problem } from "./dom.js";

const [, name, id] = location.pathname.split("/");
const screens = { "": "./home.js", data: "./data.js", graph: "./graph.js", draw: "./draw.js", labels: "./labels.js" };

try {
  const screen = await import(screens[name]);
  await screen.show(document.getElementById("screen"), id);
} catch (error) {
  problem(error);
}
