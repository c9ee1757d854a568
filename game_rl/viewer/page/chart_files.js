// Charts as files: a picture of what is shown, and its curves as a table.

import {shape} from "./elements.js";

const SCALE = 2; // pixels of the picture for one of the page
const EDGE = 12;
const LINE = 18;
const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "visibility"];

// Writes the curves as CSV, one line a point; low and high are the 95 % interval.
export function saveCurves(title, series) {
  const lines = series.flatMap(({name, timesteps, values, intervals}) =>
    timesteps.map((timestep, i) => [quoted(name || title), timestep, values[i] ?? "", ...(intervals?.[i] ?? ["", ""])].join(",")));
  save(new Blob([["curve,timestep,value,low,high", ...lines, ""].join("\n")], {type: "text/csv"}), title, "csv");
}

// Writes the chart with its title and legend as PNG, in the colours of the page.
export async function saveChart({title, svg, legend, width, height}) {
  const page = getComputedStyle(document.documentElement);
  const entries = [...legend.children].map((entry) => [entry.firstChild.style.background, entry.textContent]);
  const whole = shape("svg", {xmlns: "http://www.w3.org/2000/svg", width: width + 2 * EDGE, height: height + 2 * EDGE + LINE * (entries.length + 1)});
  const colour = (name) => page.getPropertyValue(name).trim();
  const text = (x, y, words, size = 12) => shape("text", {x, y, fill: colour("--text"), "font-size": `${size}px`, "font-family": "system-ui, sans-serif", text: words});
  const moved = shape("g", {transform: `translate(${EDGE} ${EDGE + LINE})`}, ...[...svg.children].map(withStyle));
  const below = entries.map(([background, words], i) => {
    const y = EDGE + LINE * (i + 1.5) + height;
    return shape("g", {}, shape("rect", {x: EDGE, y: y - 9, width: 10, height: 10, rx: 2, fill: colour(background.slice(4, -1))}), text(EDGE + 16, y, words));
  });
  whole.append(shape("rect", {width: "100%", height: "100%", fill: colour("--surface")}), text(EDGE, EDGE + 10, title, 14), moved, ...below);
  const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(whole)], {type: "image/svg+xml"}));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width * SCALE, image.height * SCALE];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    save(await new Promise((done) => { canvas.toBlob(done); }), title, "png");
  } finally {
    URL.revokeObjectURL(address);
  }
}

// A copy whose look no longer depends on the page's style sheet.
function withStyle(element) {
  const copy = element.cloneNode(true);
  const style = getComputedStyle(element);
  for (const name of DRAWN) copy.setAttribute(name, style.getPropertyValue(name));
  return copy;
}

function save(blob, title, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${title.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_|_$/g, "")}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
