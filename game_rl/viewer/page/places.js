// The map of visited places, summed over all agents and the whole run, with the agents on it.

import {make, setText} from "./elements.js";
import {plural, whole} from "./words.js";

const EVERY_MS = 10000;
const MOST_PX = 560;

export class PlacesMap {
  constructor(run) {
    this.address = `/api/places?run=${encodeURIComponent(run)}`;
    this.canvas = make("canvas", {role: "img"});
    this.marks = make("canvas", {"aria-hidden": "true"});
    this.note = make("p", {class: "note"});
    this.choice = make("select", {id: "layer", onchange: () => this.choose(Number(this.choice.value), true)});
    this.body = make("div", {class: "map"}, this.canvas, this.marks);
    this.element = make("section", {class: "card", "aria-labelledby": "places-title", hidden: true},
      make("div", {class: "card-head"}, make("h2", {id: "places-title", text: "Where they have been"}),
        make("label", {class: "check", for: "layer"}, "Map ", this.choice)), this.body, this.note);
    this.at = 0;
    this.isChosen = false;
    this.places = new Map();
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
    if (this.choice.children.length !== data.layers.length) {
      this.choice.replaceChildren(...data.layers.map(({name}, i) => make("option", {value: i, text: name})));
      this.choice.parentElement.hidden = data.layers.length < 2;
    }
    this.choose(Math.min(this.at, data.layers.length - 1));
  }

  choose(at, isByHand = false) {
    this.at = at;
    this.isChosen ||= isByHand;
    this.choice.value = String(at);
    const layer = this.data.layers[at];
    const levels = Uint8Array.from(atob(layer.levels), (character) => character.charCodeAt(0));
    this.scale = Math.max(1, Math.min(16, Math.floor(Math.min(this.element.clientWidth - 32 || MOST_PX, MOST_PX) / Math.max(layer.width, layer.height))));
    [this.canvas.width, this.canvas.height] = [layer.width, layer.height];
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(layer.width, layer.height);
    levels.forEach((level, i) => image.data.set(heat(level), 4 * i));
    context.putImageData(image, 0, 0);
    for (const canvas of [this.canvas, this.marks]) {
      canvas.style.width = `${layer.width * this.scale}px`;
      canvas.style.height = `${layer.height * this.scale}px`;
    }
    const seen = levels.reduce((count, level) => count + (level > 0), 0);
    this.canvas.setAttribute("aria-label", `${layer.name}: ${plural(seen, "place")} visited, the most often ${whole(layer.most)} timesteps`);
    setText(this.note, `${plural(this.data.n_places, "place")} visited in all; brighter means more often, up to ${whole(layer.most)} timesteps. The dots are the agents now.`);
    this.mark();
  }

  // Puts the agents where they are: a place is the map's variables, then x and y.
  move(screens) {
    for (const {env, place} of screens) if (place) this.places.set(env, place);
    if (this.data?.layers?.length) this.mark();
  }

  mark() {
    const layer = this.data.layers[this.at];
    const ratio = window.devicePixelRatio || 1;
    [this.marks.width, this.marks.height] = [layer.width * this.scale * ratio, layer.height * this.scale * ratio];
    const context = this.marks.getContext("2d");
    context.scale(ratio, ratio);
    const side = this.scale / layer.cell_side; // of one place
    for (const [env, place] of this.places) {
      const cell = this.cell(place, layer);
      if (!cell) continue;
      const [x, y] = [(cell[0] + 0.5) * side, (cell[1] + 0.5) * side];
      context.beginPath();
      context.arc(x, y, 5, 0, 2 * Math.PI);
      context.fillStyle = env === this.large ? "#ffffff" : "#ff5d73";
      context.fill();
      context.lineWidth = 1.5;
      context.strokeStyle = "#101316";
      context.stroke();
    }
  }

  cell(place, layer) {
    const whole = place.map(Math.floor);
    const [x, y] = whole.length > 1 ? whole.slice(-2) : [whole[0], 0];
    const map = whole.slice(0, -2);
    const offset = map.length === 1 ? this.data.offsets[map[0]] : null;
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
