// The maps of visited places, summed over all agents and the whole run, with the agents on them.

import {make, setText} from "./elements.js";
import {plural, whole} from "./words.js";

const EVERY_MS = 10000;
const MOST_MAPS = 4; // that are shown at once; of more, one is chosen
const MOST_HEIGHT_PX = 480;
const MOST_SCALE = 16;

export class PlacesMap {
  constructor(run, {title = "Where they have been", unit = "timestep"} = {}) {
    this.unit = unit; // that is counted at the places
    this.address = `api/places?run=${encodeURIComponent(run)}`;
    this.note = make("p", {class: "note"});
    this.choice = make("select", {id: "layer", onchange: () => { this.at = Number(this.choice.value); this.draw(); }});
    this.body = make("div", {class: "maps"});
    this.element = make("section", {class: "card", "aria-labelledby": "places-title", hidden: true},
      make("div", {class: "card-head"}, make("h2", {id: "places-title", text: title}),
        make("label", {class: "check", for: "layer"}, "Map ", this.choice)), this.body, this.note);
    this.at = 0;
    this.maps = [];
    this.places = new Map();
    this.observer = new ResizeObserver(() => this.maps.forEach((map) => map.size(this.places, this.large)));
    this.observer.observe(this.body);
  }

  async refresh() {
    const now = performance.now();
    if (this.isAsking || (this.data && now - this.askedAt < EVERY_MS)) return;
    this.askedAt = now;
    this.isAsking = true;
    try {
      const answer = await fetch(this.address);
      if (answer.ok) this.show(await answer.json());
    } catch {
      // the next look may find the server again
    } finally {
      this.isAsking = false;
    }
  }

  show(data) {
    this.data = data;
    this.element.hidden = !data.layers?.length;
    if (this.element.hidden) return;
    const isChosen = data.layers.length > MOST_MAPS;
    if (this.choice.children.length !== data.layers.length) {
      this.choice.replaceChildren(...data.layers.map(({name}, i) => make("option", {value: i, text: name})));
    }
    this.choice.parentElement.hidden = !isChosen;
    this.at = Math.min(this.at, data.layers.length - 1);
    this.choice.value = String(this.at);
    this.draw();
  }

  draw() {
    const {layers, offsets, n_places: count} = this.data;
    const shown = layers.length > MOST_MAPS ? [layers[this.at]] : layers;
    while (this.maps.length > shown.length) this.maps.pop().element.remove();
    while (this.maps.length < shown.length) {
      this.maps.push(new LayerMap());
      this.body.append(this.maps.at(-1).element);
    }
    this.maps.forEach((map, i) => {
      map.show(shown[i], offsets, {isNamed: layers.length > 1, unit: this.unit});
      map.size(this.places, this.large);
    });
    setText(this.note, `${plural(count, "place")} visited in all; brighter means more often.${this.places.size ? " The dots are the agents now; the white one is shown large." : ""}`);
  }

  // Puts the agents where they are: a place is the map's variables, then x and y.
  move(screens) {
    for (const {env, place} of screens) if (place) this.places.set(env, place);
    this.maps.forEach((map) => map.mark(this.places, this.large));
  }
}

// One map: its canvas, and one above it with the agents.
class LayerMap {
  constructor() {
    this.canvas = make("canvas", {role: "img"});
    this.marks = make("canvas", {"aria-hidden": "true"});
    this.title = make("figcaption");
    this.element = make("figure", {}, this.title, make("div", {class: "map"}, this.canvas, this.marks));
  }

  show(layer, offsets, {isNamed, unit}) {
    Object.assign(this, {layer, offsets});
    const levels = Uint8Array.from(atob(layer.levels), (character) => character.charCodeAt(0));
    [this.canvas.width, this.canvas.height] = [layer.width, layer.height];
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(layer.width, layer.height);
    levels.forEach((level, i) => image.data.set(heat(level), 4 * i));
    context.putImageData(image, 0, 0);
    const seen = levels.reduce((count, level) => count + (level > 0), 0);
    this.canvas.setAttribute("aria-label", `${layer.name}: ${plural(seen, "place")} visited, the most often ${plural(layer.most, unit)}`);
    this.caption = `${isNamed ? `${layer.name}: ` : ""}up to ${plural(layer.most, unit)} at a place`;
  }

  // As large as the card and the height allow; sharp where a place is at least one pixel.
  size(places, large) {
    const available = this.element.clientWidth;
    if (!available || !this.layer) return;
    const {width, height} = this.layer;
    const most = Math.min(available / width, MOST_HEIGHT_PX / height, MOST_SCALE);
    this.scale = most > 2 ? Math.floor(2 * most) / 2 : most;
    for (const canvas of [this.canvas, this.marks]) {
      canvas.style.width = `${width * this.scale}px`;
      canvas.style.height = `${height * this.scale}px`;
    }
    this.mark(places, large);
  }

  mark(places, large) {
    if (!this.scale) return;
    const {layer, scale} = this;
    const ratio = window.devicePixelRatio || 1;
    [this.marks.width, this.marks.height] = [layer.width * scale * ratio, layer.height * scale * ratio];
    const context = this.marks.getContext("2d");
    context.scale(ratio, ratio);
    const side = scale / layer.cell_side; // of one place
    const cells = [...places].map(([env, place]) => [env, this.cell(place)]).filter(([, cell]) => cell);
    cells.sort(([one], [other]) => Number(one === large) - Number(other === large)); // the large one on top
    for (const [env, cell] of cells) {
      const [x, y] = cell.map((each) => (each + 0.5) * side);
      context.beginPath();
      context.arc(x, y, 5, 0, 2 * Math.PI);
      context.fillStyle = env === large ? "#ffffff" : "#ff5d73";
      context.fill();
      context.lineWidth = 1.5;
      context.strokeStyle = "#101316";
      context.stroke();
    }
    const here = places.size ? `; ${cells.length} of ${plural(places.size, "agent")} here` : "";
    setText(this.title, this.caption + here);
  }

  cell(place) {
    const {layer} = this;
    const whole = place.map(Math.floor);
    const [x, y] = whole.length > 1 ? whole.slice(-2) : [whole[0], 0];
    const map = whole.slice(0, -2);
    const offset = map.length === 1 ? this.offsets[map[0]] : null;
    if ((layer.map_id == null) !== Boolean(offset)) return null;
    if (!offset && String(layer.map_id) !== String(map)) return null;
    const [right, down] = offset ?? [0, 0];
    const cell = [x + right - layer.x0, y + down - layer.y0];
    const inside = cell.every((each, axis) => each >= 0 && each < layer.cell_side * [layer.width, layer.height][axis]);
    return inside ? cell : null;
  }
}

// Dark where nobody was, then from blue over green to bright yellow, as in the plots.
const STOPS = [[20, 24, 28], [38, 62, 110], [25, 120, 120], [86, 178, 98], [246, 229, 98]];

function heat(level) {
  if (!level) return [...STOPS[0], 255];
  const place = 1 + ((level - 1) / 254) * (STOPS.length - 2);
  const [low, part] = [Math.floor(place), place % 1];
  const [one, other] = [STOPS[low], STOPS[Math.min(low + 1, STOPS.length - 1)]];
  return [...one.map((value, i) => Math.round(value + part * (other[i] - value))), 255];
}
