// The parts of an observation as the agent gets them: picture, grid, numbers, categories.

import {bar, make, setText} from "./elements.js";
import {number} from "./words.js";

const GRID_PX = 200;

export class PartsView {
  constructor() {
    this.views = new Map();
    this.body = make("div", {class: "parts"});
    this.element = make("details", {open: true, hidden: true}, make("summary", {text: "What the agent sees"}), this.body);
  }

  show(parts, layout) {
    if (!parts.length) return;
    this.element.hidden = false;
    if (!this.element.open) return;
    for (const part of parts) {
      const spec = layout.parts.find(({name}) => name === part.name);
      if (!spec) continue;
      let view = this.views.get(part.name);
      if (!view) {
        view = makeView(spec, part);
        this.views.set(part.name, view);
        this.body.append(view.element);
      }
      view.show(part);
    }
  }
}

function makeView(spec, part) {
  const isFlat = part.shape.length < 2 || part.shape.at(-1) === 1;
  if (spec.kind === "screen" || (spec.kind === "grid" && !isFlat)) return new PictureView(spec, part);
  return new NumbersView(spec);
}

// A picture of grey or RGB pixels, or a grid of values with a colour for each.
class PictureView {
  constructor(spec, part) {
    this.spec = spec;
    [this.height, this.width] = part.shape.slice(-2);
    this.planes = part.shape.length > 2 ? part.shape.slice(0, -2).reduce((a, b) => a * b, 1) : 1;
    this.canvas = make("canvas", {width: this.width, height: this.height, role: "img"});
    const scale = Math.max(1, Math.floor(GRID_PX / Math.max(this.width, this.height)));
    this.canvas.style.width = `${this.width * scale}px`;
    this.canvas.style.height = `${this.height * scale}px`;
    const size = `${this.width} × ${this.height}`;
    this.canvas.setAttribute("aria-label", `${spec.name}, ${size}`);
    this.key = make("ul", {class: "legend"});
    this.element = make("figure", {class: "part"}, make("figcaption", {}, make("b", {text: spec.name}), ` ${size}`), this.canvas, this.key);
    this.colours = spec.kind === "grid" ? coloursOf(spec.n_values) : null;
    if (this.colours) this.showKey();
  }

  showKey() {
    const named = this.spec.labels.map((label, i) => [label, i]).filter(([label]) => label);
    this.key.append(...named.slice(0, 12).map(([label, i]) => {
      const swatch = make("span", {class: "swatch", "aria-hidden": "true"});
      swatch.style.background = css(this.colours[i]);
      return make("li", {}, swatch, label);
    }));
  }

  show({values}) {
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(this.width, this.height);
    const count = this.width * this.height;
    for (let i = 0; i < count; i += 1) {
      let [r, g, b] = [values[i], values[i], values[i]];
      if (this.colours) [r, g, b] = this.colours[values[i] % this.colours.length];
      else if (this.planes === 3) [r, g, b] = [values[i], values[count + i], values[2 * count + i]];
      image.data.set([r, g, b, 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
  }
}

// Numbers with names; categories show the name of the value.
class NumbersView {
  constructor(spec) {
    this.spec = spec;
    this.list = make("ul", {class: "bars"});
    this.element = make("div", {class: "part numbers"}, make("h5", {text: spec.name}), this.list);
  }

  show({values}) {
    const {kind, labels} = this.spec;
    while (this.list.children.length < values.length) {
      this.list.append(make("li", {}, make("span", {class: "key"}), bar(0), make("span", {class: "text"})));
    }
    values.forEach((value, i) => {
      const [key, drawn, text] = this.list.children[i].children;
      const isNamed = kind === "vector" || kind === "numbers";
      setText(key, (isNamed && labels[i]) || `${i + 1}`);
      setText(text, isNamed ? number(value) : labels[value] || String(value));
      const share = isNamed ? Math.abs(value) : value / Math.max(1, this.spec.n_values - 1);
      drawn.firstChild.style.width = `${100 * Math.min(1, share)}%`;
      drawn.firstChild.classList.toggle("bad", value < 0);
    });
  }
}

// Value 0 is dark, most often "nothing"; the others go around the circle of colours.
function coloursOf(count) {
  const found = [[24, 28, 32]];
  for (let i = 1; i < Math.max(2, count); i += 1) {
    const angle = (i * 137.508) % 360;
    found.push(count <= 2 ? [111, 211, 168] : hsl(angle, 0.55, 0.45 + 0.2 * ((i * 7) % 3) / 2));
  }
  return found;
}

function hsl(h, s, l) {
  const part = (n) => {
    const k = (n + h / 30) % 12;
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;
