// The maps of visited places, summed over all agents and the whole run, on the screens that the
// page has seen, with the agents and the milestones on them.

import {make, setText} from "./elements.js";
import {drawPacked} from "./frames.js";
import {plural} from "./words.js";

const EVERY_MS = 10000;
const MOST_MAPS = 4; // that are shown at once; of more, one is chosen
const MOST_HEIGHT_PX = 480;
const MOST_SCALE = 16;
const MOST_SIDE = 2048; // of a map made of screens, in pixels
const DIMMED = 0.55; // brightness of screens, so that visits are seen on them
const VISITS = 0.6; // opacity of visits on screens

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
    this.grounds = new Map();
    this.flags = []; // milestones
    this.scratch = make("canvas");
    this.observer = new ResizeObserver(() => this.maps.forEach((map) => map.size(this)));
    this.observer.observe(this.body);
  }

  async refresh() {
    const now = performance.now();
    if (this.isAsking || (this.data && now - this.askedAt < EVERY_MS)) return;
    this.askedAt = now;
    this.isAsking = true;
    try {
      const answer = await fetch(this.address);
      if (answer.ok) await this.show(await answer.json());
    } catch {
      // the next look may find the server again
    } finally {
      this.isAsking = false;
    }
  }

  async show(data) {
    this.data = data;
    this.element.hidden = !data.layers?.length;
    if (this.element.hidden) return;
    if (data.screens && data.screens.version !== this.version) {
      this.version = data.screens.version;
      await this.addScreens(data.screens);
    }
    const isChosen = data.layers.length > MOST_MAPS;
    if (this.choice.children.length !== data.layers.length) {
      this.choice.replaceChildren(...data.layers.map(({name}, i) => make("option", {value: i, text: name})));
    }
    this.choice.parentElement.hidden = !isChosen;
    this.at = Math.min(this.at, data.layers.length - 1);
    this.choice.value = String(this.at);
    this.draw();
  }

  // The maps that `game-rl places RUN` or an exploration has joined from screens.
  async addScreens({pixels, names, maps}) {
    for (const {map, x, y, png} of maps) {
      const bytes = Uint8Array.from(atob(png), (character) => character.charCodeAt(0));
      const picture = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
      this.addScreen(map, x, y, picture, {left: 0, top: 0, width: picture.width, height: picture.height}, {pixels, names});
    }
  }

  addScreen(map, x, y, picture, crop, {pixels, names}) {
    const offset = map.length === 1 ? this.data.offsets[map[0]] : null;
    const key = offset ? "world" : String(map);
    if (!this.grounds.has(key)) this.grounds.set(key, new Ground(pixels));
    const [right, down] = offset ?? [0, 0];
    this.grounds.get(key).add(String(map), names[map[0]] ?? "", x + right * pixels, y + down * pixels, picture, crop);
  }

  draw() {
    const {layers, n_places: count} = this.data;
    const shown = layers.length > MOST_MAPS ? [layers[this.at]] : layers;
    while (this.maps.length > shown.length) this.maps.pop().element.remove();
    while (this.maps.length < shown.length) {
      this.maps.push(new LayerMap());
      this.body.append(this.maps.at(-1).element);
    }
    this.maps.forEach((map, i) => {
      map.show(shown[i], {isNamed: layers.length > 1, unit: this.unit});
      map.size(this);
    });
    const dots = this.places.size ? " The dots are the agents now; the white one is shown large." : "";
    const flags = this.flags.some(({place}) => place) ? " A flag is a milestone at its place." : "";
    setText(this.note, `${plural(count, "place")} visited in all; brighter means more often${this.unit === "trip" ? "" : ", fainter means longer ago"}.${dots}${flags}`);
  }

  // Puts the agents where they are, and their screens below: a place is the map's variables, then x and y.
  move(screens, layout) {
    for (const {env, place} of screens) if (place) this.places.set(env, place);
    const area = layout?.map_screen;
    if (area && this.data?.offsets) {
      for (const {place, map_at: at, packed} of screens) {
        if (!place || !at) continue;
        drawPacked(this.scratch, packed, layout);
        this.addScreen(place.slice(0, -2).map(Math.floor), ...at, this.scratch, area, {pixels: area.pixels, names: layout.place_names});
      }
      this.maps.forEach((map) => map.size(this));
    }
    this.maps.forEach((map) => map.mark(this));
  }
}

// A map made of screens: each pixel shows what was there last.
class Ground {
  constructor(pixels) {
    this.pixels = pixels; // of a step of x or y
    this.rooms = new Map();
    this.canvas = null;
  }

  add(map, name, x, y, picture, crop) {
    const {width, height} = crop;
    this.cover(x, y, x + width, y + height);
    this.canvas.getContext("2d").drawImage(picture, crop.left, crop.top, width, height,
      (x - this.left) / this.shrink, (y - this.top) / this.shrink, width / this.shrink, height / this.shrink);
    const room = this.rooms.get(map);
    if (!room) this.rooms.set(map, {name, left: x, top: y, right: x + width, bottom: y + height});
    else {
      Object.assign(room, {left: Math.min(room.left, x), top: Math.min(room.top, y),
        right: Math.max(room.right, x + width), bottom: Math.max(room.bottom, y + height)});
    }
  }

  // Makes room for a part of the map.
  cover(left, top, right, bottom) {
    if (this.canvas && left >= this.left && top >= this.top && right <= this.right && bottom <= this.bottom) return;
    const old = this.canvas && {...this};
    this.left = Math.min(left, old?.left ?? left);
    this.top = Math.min(top, old?.top ?? top);
    this.right = Math.max(right, old?.right ?? right);
    this.bottom = Math.max(bottom, old?.bottom ?? bottom);
    const [width, height] = [this.right - this.left, this.bottom - this.top];
    this.shrink = Math.max(1, width / MOST_SIDE, height / MOST_SIDE);
    this.canvas = make("canvas", {width: Math.ceil(width / this.shrink), height: Math.ceil(height / this.shrink)});
    if (!old) return;
    const context = this.canvas.getContext("2d");
    context.imageSmoothingEnabled = this.shrink > old.shrink;
    context.drawImage(old.canvas, (old.left - this.left) / this.shrink, (old.top - this.top) / this.shrink,
      (old.right - old.left) / this.shrink, (old.bottom - old.top) / this.shrink);
  }
}

// One map: its canvas, and one above it with flags and agents.
class LayerMap {
  constructor() {
    this.visits = make("canvas");
    this.canvas = make("canvas", {role: "img"});
    this.marks = make("canvas", {"aria-hidden": "true"});
    this.title = make("figcaption");
    this.element = make("figure", {}, this.title, make("div", {class: "map"}, this.canvas, this.marks));
  }

  show(layer, {isNamed, unit}) {
    this.layer = layer;
    const levels = Uint8Array.from(atob(layer.levels), (character) => character.charCodeAt(0));
    const strengths = Uint8Array.from(atob(layer.strengths), (character) => character.charCodeAt(0));
    [this.visits.width, this.visits.height] = [layer.width, layer.height];
    const context = this.visits.getContext("2d");
    const image = context.createImageData(layer.width, layer.height);
    const stops = visits();
    levels.forEach((level, i) => { if (level) image.data.set([...heat(level, stops), strengths[i]], 4 * i); });
    context.putImageData(image, 0, 0);
    const seen = levels.reduce((count, level) => count + (level > 0), 0);
    this.canvas.setAttribute("aria-label", `${layer.name}: ${plural(seen, "place")} visited, the most often ${plural(layer.most, unit)}`);
    this.caption = `${isNamed ? `${layer.name}: ` : ""}up to ${plural(layer.most, unit)} at a place`;
  }

  // As large as the card and the height allow; sharp where a place is at least one pixel.
  size(all) {
    const available = this.element.clientWidth;
    if (!available || !this.layer) return;
    const {layer} = this;
    const ground = all.grounds.get(layer.map_id == null ? "world" : String(layer.map_id));
    this.box = {left: layer.x0, top: layer.y0, right: layer.x0 + layer.width * layer.cell_side, bottom: layer.y0 + layer.height * layer.cell_side};
    if (ground) {
      const {pixels} = ground;
      this.box = {left: Math.min(this.box.left, ground.left / pixels), top: Math.min(this.box.top, ground.top / pixels),
        right: Math.max(this.box.right, ground.right / pixels), bottom: Math.max(this.box.bottom, ground.bottom / pixels)};
    }
    const width = this.box.right - this.box.left;
    const height = this.box.bottom - this.box.top;
    const most = Math.min(available / width, (ground ? 2 : 1) * MOST_HEIGHT_PX / height, MOST_SCALE);
    this.scale = ground || most <= 2 ? most : Math.floor(2 * most) / 2; // pixels of the page for a place
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.marks]) {
      canvas.style.width = `${width * this.scale}px`;
      canvas.style.height = `${height * this.scale}px`;
      [canvas.width, canvas.height] = [width * this.scale * ratio, height * this.scale * ratio];
    }
    this.paint(ground, ratio);
    this.mark(all);
  }

  paint(ground, ratio) {
    const {layer, box, scale} = this;
    const context = this.canvas.getContext("2d");
    context.fillStyle = `rgb(${UNSEEN})`;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.scale(ratio, ratio);
    context.translate(-box.left * scale, -box.top * scale);
    if (ground) {
      const side = scale / ground.pixels; // of a pixel of the map
      context.filter = `brightness(${DIMMED})`;
      context.drawImage(ground.canvas, ground.left * side, ground.top * side, (ground.right - ground.left) * side, (ground.bottom - ground.top) * side);
      context.filter = "none";
      context.globalAlpha = VISITS;
    }
    context.imageSmoothingEnabled = false;
    const cell = layer.cell_side * scale;
    context.drawImage(this.visits, layer.x0 * scale, layer.y0 * scale, layer.width * cell, layer.height * cell);
    context.globalAlpha = 1;
    if (!ground || ground.rooms.size < 2) return;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    for (const room of ground.rooms.values()) {
      const [left, top, right, bottom] = [room.left, room.top, room.right, room.bottom].map((each) => each * scale / ground.pixels);
      context.strokeStyle = "#101012";
      context.strokeRect(left, top, right - left, bottom - top);
      const width = context.measureText(room.name).width;
      if (!room.name || width + 6 > right - left || bottom - top < 16) continue;
      context.fillStyle = "#101012";
      context.fillRect(left, top, width + 6, 14);
      context.fillStyle = "#f5f5f8";
      context.fillText(room.name, left + 3, top + 1);
    }
  }

  mark(all) {
    if (!this.scale) return;
    const {places, large} = all;
    const ratio = window.devicePixelRatio || 1;
    const context = this.marks.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.marks.width, this.marks.height);
    for (const {place} of all.flags) {
      const at = place && this.point(place, all.data.offsets);
      if (at) drawFlag(context, ...at);
    }
    const points = [...places].map(([env, place]) => [env, this.point(place, all.data.offsets)]).filter(([, point]) => point);
    points.sort(([one], [other]) => Number(one === large) - Number(other === large)); // the large one on top
    for (const [env, [x, y]] of points) {
      context.beginPath();
      context.arc(x, y, 5, 0, 2 * Math.PI);
      context.fillStyle = named(env === large ? "shown-agent" : "agent");
      context.fill();
      context.lineWidth = 1.5;
      context.strokeStyle = "#101316";
      context.stroke();
    }
    const here = places.size ? `; ${points.length} of ${plural(places.size, "agent")} here` : "";
    setText(this.title, this.caption + here);
  }

  // Where the middle of a place is on the canvas; null if it is not on this map.
  point(place, offsets) {
    const {layer, box, scale} = this;
    const numbers = place.map(Math.floor);
    const [x, y] = numbers.length > 1 ? numbers.slice(-2) : [numbers[0], 0];
    const map = numbers.slice(0, -2);
    const offset = map.length === 1 ? offsets[map[0]] : null;
    if ((layer.map_id == null) !== Boolean(offset)) return null;
    if (!offset && String(layer.map_id) !== String(map)) return null;
    const [right, down] = offset ?? [0, 0];
    const at = [x + right, y + down];
    const isInside = at[0] >= box.left && at[0] < box.right && at[1] >= box.top && at[1] < box.bottom;
    return isInside ? [(at[0] - box.left + 0.5) * scale, (at[1] - box.top + 0.5) * scale] : null;
  }
}

function drawFlag(context, x, y) {
  context.strokeStyle = "#101012";
  context.lineWidth = 3;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x, y - 14);
  context.stroke();
  context.strokeStyle = "#f5f5f8";
  context.lineWidth = 1;
  context.stroke();
  context.beginPath();
  context.moveTo(x, y - 14);
  context.lineTo(x + 10, y - 10);
  context.lineTo(x, y - 6);
  context.closePath();
  context.fillStyle = named("flag");
  context.fill();
  context.strokeStyle = "#101012";
  context.stroke();
}

const UNSEEN = [20, 24, 28];

// A colour by its meaning, from look.css.
const named = (meaning) => getComputedStyle(document.documentElement).getPropertyValue(`--${meaning}`).trim();

const visits = () => [1, 2, 3, 4, 5, 6].map((number) => named(`visits-${number}`).match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16)));

// From rarely to often.
function heat(level, stops) {
  const place = ((level - 1) / 254) * (stops.length - 1);
  const [low, part] = [Math.floor(place), place % 1];
  const [one, other] = [stops[low], stops[Math.min(low + 1, stops.length - 1)]];
  return one.map((value, i) => Math.round(value + part * (other[i] - value)));
}
